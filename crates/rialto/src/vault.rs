//! The agents' secrets in the store, and the key that opens them.
//!
//! The key is outside the data folder: in a file of the user's configuration, or wherever the environment says. It is read
//! when a secret is, and not kept, so a server goes on after the key was changed. While the key is being changed the new one
//! stands beside the old one, and each secret says which of the two opens it.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rialto_engine::approvals::{Safe, SafeError};
use rialto_model::{
    clock::{Clock, SystemClock},
    credential::Secret,
    store::{SealedSecret, Store, StoreError},
};
use rialto_store::vault::{Key, VaultError};

use crate::{environment::Environment, private_files};

/// How often secrets that appear meanwhile are sealed anew before we give up.
const ROUNDS: usize = 10;

/// Secrets, and the key to them.
#[derive(Clone)]
pub(crate) struct Vault {
    store: Arc<dyn Store>,
    home: Home,
}

/// Where the key is.
#[derive(Clone, Debug)]
enum Home {
    /// In an environment variable.
    Variable(Secret),
    /// In a file.
    File(PathBuf),
}

/// Why a secret could not be had or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TroubleWithSecrets {
    /// There is none of this name.
    #[error("there is no secret {0}; set it with `rialto secrets set {0}`")]
    Missing(String),
    /// The key cannot be read or written.
    #[error("the key to the secrets, {path}: {why}")]
    Key {
        /// Where it is.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// None of the keys there are opens it.
    #[error("{0} was sealed with another key than {1}; bring that key back, or set the secret again")]
    OtherKey(String, String),
    /// It was changed by somebody.
    #[error("{0} is not what was sealed: somebody has changed the database; set the secret again")]
    Broken(String),
    /// It cannot be done like this.
    #[error("{0}")]
    Usage(String),
    /// The store did not do its work.
    #[error("the secrets could not be read or written: {0}")]
    Store(#[from] StoreError),
}

/// The file with the key to stored secrets; none when the environment has the key itself.
pub(crate) fn key_file(environment: &Environment) -> Option<PathBuf> {
    match Home::find(environment) {
        Home::Variable(_) => None,
        Home::File(path) => Some(path),
    }
}

// === impl Vault ===

impl Vault {
    pub(crate) fn new(store: Arc<dyn Store>, environment: &Environment) -> Self {
        Self { store, home: Home::find(environment) }
    }

    /// The secret of this name.
    pub(crate) async fn read(&self, name: &str) -> Result<Secret, TroubleWithSecrets> {
        let secrets = self.store.secrets().await?;
        let sealed = secrets.into_iter().find(|sealed| sealed.name == name);
        self.open(&sealed.ok_or_else(|| TroubleWithSecrets::Missing(name.to_owned()))?)
    }

    /// All of them, sealed. What waits for approval lies beside them and is nobody's to use.
    pub(crate) async fn list(&self) -> Result<Vec<SealedSecret>, TroubleWithSecrets> {
        let mut secrets = self.store.secrets().await?;
        secrets.retain(|secret| !secret.name.contains(':'));
        Ok(secrets)
    }

    /// Keeps a secret. The first one makes the key.
    pub(crate) async fn set(&self, name: &str, secret: &Secret) -> Result<(), TroubleWithSecrets> {
        let key = match self.store.secrets().await?.first() {
            // A second key beside one that others need would only be found out when it is too late.
            Some(other) => self.key_to(other)?,
            None => self.home.read_or_make()?,
        };
        let sealed = key.seal(name, secret, SystemClock.now()).map_err(|error| self.home.trouble(error))?;
        self.store.put_secrets(vec![sealed]).await?;
        Ok(())
    }

    /// Forgets a secret.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), TroubleWithSecrets> {
        match self.store.remove_secret(name).await? {
            Some(_) => Ok(()),
            None => Err(TroubleWithSecrets::Missing(name.to_owned())),
        }
    }

    /// Seals everything with another key: a fresh one in the key's file, or the one that is given, when the key is in the
    /// environment. Answers how many secrets there are.
    pub(crate) async fn rotate(&self, given: Option<&Secret>) -> Result<usize, TroubleWithSecrets> {
        let key = match (&self.home, given) {
            (Home::File(path), None) => {
                // A change that was cut short is finished: some secrets may have that key already.
                if read(&pending(path))?.is_none() {
                    let key = Key::fresh().map_err(|error| self.home.trouble(error))?;
                    write(&pending(path), &key)?;
                }
                read(&pending(path))?.ok_or_else(|| self.home.wrong("its successor went away"))?
            }
            (Home::Variable(_), Some(given)) => {
                Key::parse(given).map_err(|error| self.home.trouble(error))?
            }
            (Home::File(_), Some(_)) => {
                let why = "the key is in a file, and a new one is made there; leave --to-env out";
                return Err(TroubleWithSecrets::Usage(why.to_owned()));
            }
            (Home::Variable(_), None) => {
                let why = "the key is in RIALTO_SECRET_KEY: put a new one (64 hexadecimal digits) into another \
                           variable and name it with --to-env";
                return Err(TroubleWithSecrets::Usage(why.to_owned()));
            }
        };
        let count = self.seal_all(&key).await?;
        if let Home::File(path) = &self.home {
            fs::rename(pending(path), path).map_err(|error| self.home.wrong(error.to_string()))?;
        }
        Ok(count)
    }

    /// Seals with `key` what is not, until nothing is left: others may set secrets meanwhile.
    async fn seal_all(&self, key: &Key) -> Result<usize, TroubleWithSecrets> {
        for _ in 0..ROUNDS {
            let all = self.store.secrets().await?;
            let old: Vec<_> = all.iter().filter(|sealed| sealed.key != key.id()).collect();
            if old.is_empty() {
                return Ok(all.len());
            }
            let mut anew = Vec::with_capacity(old.len());
            for sealed in old {
                let secret = self.open(sealed)?;
                let again = key.seal(&sealed.name, &secret, sealed.set_at);
                anew.push(again.map_err(|error| self.home.trouble(error))?);
            }
            self.store.put_secrets(anew).await?;
        }
        let why = "secrets are being set all the time; try again when it is quiet".to_owned();
        Err(TroubleWithSecrets::Usage(why))
    }

    fn open(&self, sealed: &SealedSecret) -> Result<Secret, TroubleWithSecrets> {
        self.key_to(sealed)?.open(sealed).map_err(|_| TroubleWithSecrets::Broken(sealed.name.clone()))
    }

    /// The key that opens this: the one in use, or the one that is about to be.
    fn key_to(&self, sealed: &SealedSecret) -> Result<Key, TroubleWithSecrets> {
        let current = self.home.read();
        if let Ok(Some(key)) = &current
            && key.id() != sealed.key
            && let Home::File(path) = &self.home
            && let Ok(Some(next)) = read(&pending(path))
            && next.id() == sealed.key
        {
            return Ok(next);
        }
        match current? {
            Some(key) if key.id() == sealed.key => Ok(key),
            Some(_) => Err(TroubleWithSecrets::OtherKey(sealed.name.clone(), self.home.to_string())),
            None => Err(self.home.wrong("it is not there; bring it back from where it was copied to")),
        }
    }
}

#[async_trait]
impl Safe for Vault {
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SafeError> {
        self.set(name, &secret).await.map_err(|trouble| SafeError(trouble.to_string()))
    }

    async fn get(&self, name: &str) -> Result<Secret, SafeError> {
        self.read(name).await.map_err(|trouble| SafeError(trouble.to_string()))
    }

    async fn forget(&self, name: &str) -> Result<(), SafeError> {
        let forgotten = self.store.remove_secret(name).await;
        forgotten.map(drop).map_err(|error| SafeError(error.to_string()))
    }
}

// === impl Home ===

impl Home {
    /// The key's place, as the environment says.
    fn find(environment: &Environment) -> Self {
        match (environment.get("RIALTO_SECRET_KEY"), environment.get("RIALTO_SECRET_KEY_FILE")) {
            (Some(key), _) => Self::Variable(Secret::from(key)),
            (None, Some(path)) => Self::File(PathBuf::from(path)),
            (None, None) => Self::File(environment.config_dir().join("secret.key")),
        }
    }

    fn read(&self) -> Result<Option<Key>, TroubleWithSecrets> {
        match self {
            Self::Variable(text) => Key::parse(text).map(Some).map_err(|error| self.trouble(error)),
            Self::File(path) => read(path),
        }
    }

    fn read_or_make(&self) -> Result<Key, TroubleWithSecrets> {
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        if let Self::File(path) = self {
            write(path, &Key::fresh().map_err(|error| self.trouble(error))?)?;
        }
        // Whoever was first, that key counts.
        self.read()?.ok_or_else(|| self.wrong("it went away as soon as it was written"))
    }

    fn trouble(&self, error: VaultError) -> TroubleWithSecrets {
        self.wrong(error.to_string())
    }

    fn wrong(&self, why: impl Into<String>) -> TroubleWithSecrets {
        TroubleWithSecrets::Key { path: self.to_string(), why: why.into() }
    }
}

impl std::fmt::Display for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(_) => f.write_str("RIALTO_SECRET_KEY"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Where a key stands until everything is sealed with it.
fn pending(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn read(path: &Path) -> Result<Option<Key>, TroubleWithSecrets> {
    let wrong = |why: String| TroubleWithSecrets::Key { path: path.display().to_string(), why };
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
fn write(path: &Path, key: &Key) -> Result<(), TroubleWithSecrets> {
    let wrong = |error: io::Error| TroubleWithSecrets::Key {
        path: path.display().to_string(),
        why: error.to_string(),
    };
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
