//! Secrets of agents in the store, and their encryption key.
//!
//! The key is outside the data folder: in a file of the user's configuration, or in the environment. It is read with each secret and
//! not cached, so a server continues after a change of the key. During a rotation the new key is beside the old one, and each secret
//! names the one that encrypts it.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rialto_engine::approvals::{SealedCallError, SealedCallStore};
use rialto_model::{
    clock::{Clock, SystemClock},
    credential::Secret,
    store::{SealedSecret, Store, StoreError},
};
use rialto_store::vault::{Key, VaultError};

use crate::private_files;

/// Maximum number of passes over secrets that appear during a rotation.
const MAX_RESEAL_ROUNDS: usize = 10;

/// Secrets, and the key to them.
#[derive(Clone)]
pub struct Vault {
    store: Arc<dyn Store>,
    home: SecretKeyLocation,
}

/// Location of the key.
#[derive(Clone, Debug)]
pub enum SecretKeyLocation {
    /// In an environment variable.
    Variable(Secret),
    /// In a file.
    File(PathBuf),
}

/// Error of reading or writing a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// There is none of this name.
    #[error("there is no secret {0}; set it with `rialto secrets set {0}`")]
    Missing(String),
    /// The key cannot be read or written.
    #[error("the key to the secrets, {path}: {why}")]
    Key {
        /// Path or variable.
        path: String,
        /// Reason.
        why: String,
    },
    /// None of the keys there are opens it.
    #[error("{0} was sealed with another key than {1}; restore that key, or set the secret again")]
    OtherKey(String, String),
    /// The stored value was modified.
    #[error("{0} was modified in the database; set the secret again")]
    Broken(String),
    /// Invalid operation.
    #[error("{0}")]
    Usage(String),
    /// The store did not do its work.
    #[error("the secrets could not be read or written: {0}")]
    Store(#[from] StoreError),
}

// === impl Vault ===

impl Vault {
    /// The secrets of a store, encrypted with the key at `home`.
    pub fn new(store: Arc<dyn Store>, home: SecretKeyLocation) -> Self {
        Self { store, home }
    }

    /// The secret of this name.
    pub async fn read(&self, name: &str) -> Result<Secret, SecretsError> {
        let secrets = self.store.secrets().await?;
        let sealed = secrets.into_iter().find(|sealed| sealed.name == name);
        self.open(&sealed.ok_or_else(|| SecretsError::Missing(name.to_owned()))?)
    }

    /// All encrypted secrets. Sealed calls that wait for approval are excluded.
    pub async fn list(&self) -> Result<Vec<SealedSecret>, SecretsError> {
        let mut secrets = self.store.secrets().await?;
        secrets.retain(|secret| !secret.name.contains(':'));
        Ok(secrets)
    }

    /// Stores a secret. The first one creates the key.
    pub async fn set(&self, name: &str, secret: &Secret) -> Result<(), SecretsError> {
        let key = match self.store.secrets().await?.first() {
            // A second key beside one that others need would only be found out when it is too late.
            Some(other) => self.key_for(other)?,
            None => self.home.read_or_make()?,
        };
        let sealed = key.seal(name, secret, SystemClock.now()).map_err(|error| self.home.key_error(error))?;
        self.store.put_secrets(vec![sealed]).await?;
        Ok(())
    }

    /// Forgets a secret.
    pub async fn remove(&self, name: &str) -> Result<(), SecretsError> {
        match self.store.remove_secret(name).await? {
            Some(_) => Ok(()),
            None => Err(SecretsError::Missing(name.to_owned())),
        }
    }

    /// Encrypts all secrets with another key: a new one in the key's file, or the given one if the key is in the environment. Returns
    /// the number of secrets.
    pub async fn rotate(&self, given: Option<&Secret>) -> Result<usize, SecretsError> {
        let key = match (&self.home, given) {
            (SecretKeyLocation::File(path), None) => {
                // A change that was cut short is finished: some secrets may have that key already.
                if read_key(&pending_key_path(path))?.is_none() {
                    let key = Key::fresh().map_err(|error| self.home.key_error(error))?;
                    write_key(&pending_key_path(path), &key)?;
                }
                read_key(&pending_key_path(path))?
                    .ok_or_else(|| self.home.invalid_key("its successor went away"))?
            }
            (SecretKeyLocation::Variable(_), Some(given)) => {
                Key::parse(given).map_err(|error| self.home.key_error(error))?
            }
            (SecretKeyLocation::File(_), Some(_)) => {
                let why = "the key is in a file, where a new one is created; omit --to-env";
                return Err(SecretsError::Usage(why.to_owned()));
            }
            (SecretKeyLocation::Variable(_), None) => {
                let why = "the key is in RIALTO_SECRET_KEY: put a new one (64 hexadecimal digits) into another \
                           variable and name it with --to-env";
                return Err(SecretsError::Usage(why.to_owned()));
            }
        };
        let count = self.seal_all(&key).await?;
        if let SecretKeyLocation::File(path) = &self.home {
            fs::rename(pending_key_path(path), path)
                .map_err(|error| self.home.invalid_key(error.to_string()))?;
        }
        Ok(count)
    }

    /// Seals with `key` what is not, until nothing is left: others may set secrets meanwhile.
    async fn seal_all(&self, key: &Key) -> Result<usize, SecretsError> {
        for _ in 0..MAX_RESEAL_ROUNDS {
            let all = self.store.secrets().await?;
            let old: Vec<_> = all.iter().filter(|sealed| sealed.key != key.id()).collect();
            if old.is_empty() {
                return Ok(all.len());
            }
            let mut anew = Vec::with_capacity(old.len());
            for sealed in old {
                let secret = self.open(sealed)?;
                let again = key.seal(&sealed.name, &secret, sealed.set_at);
                anew.push(again.map_err(|error| self.home.key_error(error))?);
            }
            self.store.put_secrets(anew).await?;
        }
        let why = "secrets were changed during the rotation; try again".to_owned();
        Err(SecretsError::Usage(why))
    }

    fn open(&self, sealed: &SealedSecret) -> Result<Secret, SecretsError> {
        self.key_for(sealed)?.open(sealed).map_err(|_| SecretsError::Broken(sealed.name.clone()))
    }

    /// The key that opens this: the one in use, or the one that is about to be.
    fn key_for(&self, sealed: &SealedSecret) -> Result<Key, SecretsError> {
        let current = self.home.read();
        if let Ok(Some(key)) = &current
            && key.id() != sealed.key
            && let SecretKeyLocation::File(path) = &self.home
            && let Ok(Some(next)) = read_key(&pending_key_path(path))
            && next.id() == sealed.key
        {
            return Ok(next);
        }
        match current? {
            Some(key) if key.id() == sealed.key => Ok(key),
            Some(_) => Err(SecretsError::OtherKey(sealed.name.clone(), self.home.to_string())),
            None => Err(self.home.invalid_key("the file does not exist; restore it from a copy")),
        }
    }
}

#[async_trait]
impl SealedCallStore for Vault {
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SealedCallError> {
        self.set(name, &secret).await.map_err(|trouble| SealedCallError(trouble.to_string()))
    }

    async fn get(&self, name: &str) -> Result<Secret, SealedCallError> {
        self.read(name).await.map_err(|trouble| SealedCallError(trouble.to_string()))
    }

    async fn forget(&self, name: &str) -> Result<(), SealedCallError> {
        let forgotten = self.store.remove_secret(name).await;
        forgotten.map(drop).map_err(|error| SealedCallError(error.to_string()))
    }
}

// === impl SecretKeyLocation ===

impl SecretKeyLocation {
    /// Location of the key: the environment, which `variable` reads by the names of its variables, or a file of the user's configuration
    /// folder.
    pub fn find<'a>(variable: impl Fn(&str) -> Option<&'a str>, config_dir: &Path) -> Self {
        match (variable("RIALTO_SECRET_KEY"), variable("RIALTO_SECRET_KEY_FILE")) {
            (Some(key), _) => Self::Variable(Secret::from(key)),
            (None, Some(path)) => Self::File(PathBuf::from(path)),
            (None, None) => Self::File(config_dir.join("secret.key")),
        }
    }

    /// The file with the key; none if the environment has the key itself.
    pub fn into_file(self) -> Option<PathBuf> {
        match self {
            Self::Variable(_) => None,
            Self::File(path) => Some(path),
        }
    }

    fn read(&self) -> Result<Option<Key>, SecretsError> {
        match self {
            Self::Variable(text) => Key::parse(text).map(Some).map_err(|error| self.key_error(error)),
            Self::File(path) => read_key(path),
        }
    }

    fn read_or_make(&self) -> Result<Key, SecretsError> {
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        if let Self::File(path) = self {
            write_key(path, &Key::fresh().map_err(|error| self.key_error(error))?)?;
        }
        // A concurrent process created the key first.
        self.read()?.ok_or_else(|| self.invalid_key("it went away as soon as it was written"))
    }

    fn key_error(&self, error: VaultError) -> SecretsError {
        self.invalid_key(error.to_string())
    }

    fn invalid_key(&self, why: impl Into<String>) -> SecretsError {
        SecretsError::Key { path: self.to_string(), why: why.into() }
    }
}

impl std::fmt::Display for SecretKeyLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(_) => f.write_str("RIALTO_SECRET_KEY"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Path of the new key during a rotation.
fn pending_key_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn read_key(path: &Path) -> Result<Option<Key>, SecretsError> {
    let wrong = |why: String| SecretsError::Key { path: path.display().to_string(), why };
    let text = match fs::read_to_string(path) {
        Ok(text) => Secret::from(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if private_files::is_open_to_others(path).map_err(|error| wrong(error.to_string()))? {
        return Err(wrong(format!("others can read it; chmod 600 {}", path.display())));
    }
    Key::parse(&text).map(Some).map_err(|error| wrong(error.to_string()))
}

/// Writes a key whole or not at all. One that is there stays.
fn write_key(path: &Path, key: &Key) -> Result<(), SecretsError> {
    let wrong =
        |error: io::Error| SecretsError::Key { path: path.display().to_string(), why: error.to_string() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_files::make_folder(folder).map_err(wrong)?;
    let draft = folder.join(format!(".secret.key.{}", rialto_model::ids::fresh()));
    let mut file = private_files::create_file(&draft).map_err(wrong)?;
    let written = file
        .write_all(format!("{}\n", key.text().expose()).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(wrong),
    }
}
