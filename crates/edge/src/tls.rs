//! What encryption needs: whom to trust, and who we are.
//!
//! Nothing is read before the first `https` address is called, because a gateway that only talks to its neighbours should
//! not pay for it at every start. For each connection after that, files that have changed are read again; when they
//! cannot be, what was read before goes on to count.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use hyper_rustls::ConfigBuilderExt;
use parking_lot::Mutex;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{
    client::Config,
    rules::{Pattern, plain},
};

/// What encryption needs, made at first use.
pub(crate) struct Tls {
    ca_file: Option<PathBuf>,
    identities: Vec<Identity>,
    /// Half an identity is a mistake, told to whoever wants a connection.
    mistake: Option<String>,
    made: Mutex<HashMap<Option<usize>, Made>>,
}

struct Identity {
    hosts: Pattern,
    cert: PathBuf,
    key: PathBuf,
}

struct Made {
    config: Arc<ClientConfig>,
    /// When the files it was made of were last changed.
    stamps: Vec<Option<SystemTime>>,
}

// === impl Tls ===

impl Tls {
    pub(crate) fn new(config: &Config) -> Self {
        let mut identities: Vec<_> = config
            .identities
            .iter()
            .map(|one| Identity {
                hosts: Pattern::new(&one.host),
                cert: one.cert.clone(),
                key: one.key.clone(),
            })
            .collect();
        let mistake = match (&config.client_cert, &config.client_key) {
            (Some(cert), Some(key)) => {
                identities.push(Identity { hosts: Pattern::new("*"), cert: cert.clone(), key: key.clone() });
                None
            }
            (None, None) => None,
            _ => Some("client_cert and client_key in [outbound] belong together; set both".to_owned()),
        };
        Self { ca_file: config.ca_file.clone(), identities, mistake, made: Mutex::default() }
    }

    /// How to speak with `host`.
    pub(crate) fn config(&self, host: &str) -> Result<Arc<ClientConfig>, String> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let host = plain(host);
        let who = self.identities.iter().position(|identity| identity.hosts.fits(&host));
        let identity = who.map(|at| &self.identities[at]);
        let stamps = self.stamps(identity);
        let mut made = self.made.lock();
        if let Some(known) = made.get(&who).filter(|known| known.stamps == stamps) {
            return Ok(Arc::clone(&known.config));
        }
        match (self.build(identity), made.get(&who)) {
            (Ok(config), _) => {
                let config = Arc::new(config);
                made.insert(who, Made { config: Arc::clone(&config), stamps });
                Ok(config)
            }
            (Err(why), Some(known)) => {
                tracing::warn!(
                    "certificates have changed but cannot be used, the old ones still count: {why}"
                );
                Ok(Arc::clone(&known.config))
            }
            (Err(why), None) => Err(why),
        }
    }

    fn stamps(&self, identity: Option<&Identity>) -> Vec<Option<SystemTime>> {
        let own = identity.into_iter().flat_map(|identity| [&identity.cert, &identity.key]);
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
        self.ca_file.iter().chain(own).map(changed).collect()
    }

    fn build(&self, identity: Option<&Identity>) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("encryption is not available: {error}"))?;
        let builder = match &self.ca_file {
            None => builder.with_webpki_roots(),
            Some(path) => builder.with_root_certificates(roots(path)?),
        };
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { cert, key, .. }) => {
                let (chain, secret) = (chain(cert)?, private_key(key)?);
                builder.with_client_auth_cert(chain, secret).map_err(|error| {
                    format!("{} and {} do not make an identity: {error}", cert.display(), key.display())
                })?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

pub(crate) fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate).map_err(|error| unreadable(path, &error))?;
    }
    Ok(roots)
}

pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(chain) if chain.is_empty() => Err(format!("there is no certificate in {}", path.display())),
        read => read.map_err(|error| unreadable(path, &error)),
    }
}

pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("cannot read a private key from {}: {error}", path.display()))
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> String {
    format!("cannot read certificates from {}: {error}", path.display())
}
