//! TLS of the outbound client: trusted authorities and client certificates.
//!
//! Nothing is read before the first `https` address is called, because a gateway that only calls plain http should not pay for it at every
//! start. For each connection after that, changed files are read again. If they cannot be read, the previous ones stay in use.

use std::{collections::HashMap, fs, path::PathBuf, sync::Arc, time::SystemTime};

use hyper_rustls::ConfigBuilderExt;
use parking_lot::Mutex;
use rustls::{ClientConfig, crypto::aws_lc_rs};

use crate::{
    Config,
    egress_rules::{HostPattern, normalize_host},
    pem::{read_certificates, read_private_key, read_roots},
};

/// TLS settings, with configurations built at first use.
pub(crate) struct ClientTls {
    ca_file: Option<PathBuf>,
    identities: Vec<LoadedIdentity>,
    /// Error for a certificate without its key, returned at each connect.
    invalid: Option<String>,
    cached: Mutex<HashMap<Option<usize>, CachedTlsConfig>>,
}

struct LoadedIdentity {
    hosts: HostPattern,
    cert: PathBuf,
    key: PathBuf,
}

struct CachedTlsConfig {
    config: Arc<ClientConfig>,
    /// Modification times of the files it was built from.
    stamps: Vec<Option<SystemTime>>,
}

// === impl ClientTls ===

impl ClientTls {
    pub(crate) fn new(config: &Config) -> Self {
        let mut identities: Vec<_> = config
            .identities
            .iter()
            .map(|one| LoadedIdentity {
                hosts: HostPattern::new(&one.host),
                cert: one.cert.clone(),
                key: one.key.clone(),
            })
            .collect();
        let invalid = match (&config.client_cert, &config.client_key) {
            (Some(cert), Some(key)) => {
                identities.push(LoadedIdentity {
                    hosts: HostPattern::new("*"),
                    cert: cert.clone(),
                    key: key.clone(),
                });
                None
            }
            (None, None) => None,
            _ => Some("client_cert and client_key in [outbound] belong together; set both".to_owned()),
        };
        Self { ca_file: config.ca_file.clone(), identities, invalid, cached: Mutex::default() }
    }

    /// TLS configuration for `host`.
    pub(crate) fn config(&self, host: &str) -> Result<Arc<ClientConfig>, String> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let host = normalize_host(host);
        let index = self.identities.iter().position(|identity| identity.hosts.matches(&host));
        let identity = index.map(|index| &self.identities[index]);
        let stamps = self.stamps(identity);
        let mut cached = self.cached.lock();
        if let Some(known) = cached.get(&index).filter(|known| known.stamps == stamps) {
            return Ok(Arc::clone(&known.config));
        }
        match (self.build(identity), cached.get(&index)) {
            (Ok(config), _) => {
                let config = Arc::new(config);
                cached.insert(index, CachedTlsConfig { config: Arc::clone(&config), stamps });
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

    fn stamps(&self, identity: Option<&LoadedIdentity>) -> Vec<Option<SystemTime>> {
        let own = identity.into_iter().flat_map(|identity| [&identity.cert, &identity.key]);
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
        self.ca_file.iter().chain(own).map(changed).collect()
    }

    fn build(&self, identity: Option<&LoadedIdentity>) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("encryption is not available: {error}"))?;
        let builder = match &self.ca_file {
            None => builder.with_webpki_roots(),
            Some(path) => builder.with_root_certificates(read_roots(path)?),
        };
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(LoadedIdentity { cert, key, .. }) => {
                let (chain, secret) = (read_certificates(cert)?, read_private_key(key)?);
                builder.with_client_auth_cert(chain, secret).map_err(|error| {
                    format!("{} and {} do not make an identity: {error}", cert.display(), key.display())
                })?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
