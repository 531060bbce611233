//! TLS of the server: its certificate, and the certificates of its clients.
//!
//! Changed files are read by [`ServerTls::reload`] and apply to new connections; open ones stay as they are. Files that cannot be used
//! change nothing.
//!
//! A client's certificate must be signed by an authority of `client_ca`. A table ([`ClientCertificate`]) maps it to a caller, by a name in
//! the certificate or by its fingerprint. A certificate that is not in the table needs a token like any other client.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rialto_model::{
    call::{Caller, CallerKind},
    ids::Scope,
    token_scopes::{TokenScope, TokenScopes},
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::CertificateDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use webpki::EndEntityCert;

use rialto_http_client::pem::{read_certificates, read_private_key, read_roots};

use crate::auth::TokenCallerKind;

/// Prefix of a fingerprint, where a name could be too.
const FINGERPRINT_PREFIX: &str = "sha256:";

/// TLS of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file with the certificate chain of this server.
    pub cert: PathBuf,
    /// PEM file with its private key.
    pub key: PathBuf,
    /// PEM file with the authorities that sign certificates of clients. Without it, clients are asked for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// Client certificates: optional or required, once there is a `client_ca`.
    #[serde(default)]
    pub client_auth: ClientCertificateMode,
    /// Callers by client certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientCertificate>,
}

/// Mode of client certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificateMode {
    /// Optional: a client without one needs a token.
    #[default]
    Optional,
    /// Required: without one there is no connection.
    Required,
}

/// Client certificate, and the caller that it identifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// A DNS name or URI among the certificate's subject alternative names (`ci.example.com`, `spiffe://example.com/ci`), or its
    /// fingerprint (`sha256:` and 64 hexadecimal digits).
    pub certificate: String,
    /// The caller's name.
    pub caller: String,
    /// The caller's org (default: `default`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// The caller's project (default: `main`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Kind of the caller.
    #[serde(default)]
    pub kind: TokenCallerKind,
    /// Scopes of the caller: `call`, `discover`, `admin`, with spaces between them.
    #[serde(default = "default_scope")]
    pub scope: String,
}

/// Loaded TLS files of a server.
pub struct ServerTls {
    config: TlsConfig,
    clients: Vec<(String, Caller)>,
    current: ArcSwap<ServerConfig>,
    stamps: Mutex<Vec<FileStamp>>,
}

/// Modification time and length of a file; none if it does not exist.
pub type FileStamp = Option<(Option<SystemTime>, u64)>;

// === impl ServerTls ===

impl ServerTls {
    /// Reads the files.
    pub fn open(config: TlsConfig) -> Result<Self, String> {
        let clients = config.clients.iter().map(ClientCertificate::parse).collect::<Result<_, _>>()?;
        if config.client_ca.is_none() && !config.clients.is_empty() {
            let fix = "name the file with the authorities that sign these certificates";
            return Err(format!("[[server.tls.clients]] needs [server.tls] client_ca; {fix}"));
        }
        if config.client_ca.is_none() && config.client_auth == ClientCertificateMode::Required {
            let fix = "name the file with the authorities that sign certificates of clients";
            return Err(format!("[server.tls] client_auth = \"required\" needs client_ca; {fix}"));
        }
        let stamps = stamps(&config);
        let current = ArcSwap::from_pointee(build(&config)?);
        Ok(Self { config, clients, current, stamps: Mutex::new(stamps) })
    }

    /// True if the files have changed since they were read.
    pub fn is_outdated(&self) -> bool {
        self.file_stamps() != *self.stamps.lock()
    }

    /// Modification times and lengths of its files.
    pub fn file_stamps(&self) -> Vec<FileStamp> {
        stamps(&self.config)
    }

    /// Reads the files again. Open connections stay as they are; if the files cannot be used, so does everything.
    pub fn reload(&self) -> Result<(), String> {
        // Noted first: a file that changes meanwhile is read once more.
        *self.stamps.lock() = self.file_stamps();
        self.current.store(Arc::new(build(&self.config)?));
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }

    /// Caller of these certificates, the client's own first.
    pub(super) fn caller_of(&self, certificates: Option<&[CertificateDer<'_>]>) -> Option<Caller> {
        let own = certificates?.first()?;
        let digest = Sha256::digest(own.as_ref());
        let fingerprint: String =
            FINGERPRINT_PREFIX.chars().chain(digest.iter().flat_map(|byte| hex(*byte))).collect();
        let parsed = EndEntityCert::try_from(own).ok();
        let names: Vec<&str> = parsed
            .iter()
            .flat_map(|certificate| certificate.valid_dns_names().chain(certificate.valid_uri_names()))
            .collect();
        let is_own = |known: &str| known == fingerprint || names.contains(&known);
        self.clients.iter().find(|(known, _)| is_own(known)).map(|(_, caller)| caller.clone())
    }
}

// === impl ClientCertificate ===

impl ClientCertificate {
    fn parse(&self) -> Result<(String, Caller), String> {
        let invalid = |what: String| format!("[[server.tls.clients]] of caller \"{}\": {what}", self.caller);
        let mut certificate = self.certificate.trim().to_owned();
        if let Some(digits) = certificate.strip_prefix(FINGERPRINT_PREFIX) {
            let digits: String = digits.chars().filter(|c| *c != ':').collect::<String>().to_lowercase();
            if digits.len() != 64 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(invalid("a fingerprint is `sha256:` and 64 hexadecimal digits".to_owned()));
            }
            certificate = format!("{FINGERPRINT_PREFIX}{digits}");
        }
        if certificate.is_empty() || self.caller.is_empty() {
            return Err(invalid("certificate and caller must not be empty".to_owned()));
        }
        let words =
            self.scope.split_whitespace().map(str::parse::<TokenScope>).collect::<Result<Vec<_>, _>>();
        let rights = TokenScopes::from_scopes(words.map_err(|error| invalid(format!("scope: {error}")))?);
        let mut scope = Scope::default();
        if let Some(org) = &self.org {
            scope.org = org.as_str().into();
        }
        if let Some(project) = &self.project {
            scope.project = project.as_str().into();
        }
        let caller = Caller {
            scope,
            kind: CallerKind::from(self.kind),
            id: self.caller.as_str().into(),
            rights,
            token: None,
            proof: None,
            hops: 0,
        };
        Ok((certificate, caller))
    }
}

fn default_scope() -> String {
    TokenScopes::default().to_string()
}

fn hex(byte: u8) -> impl Iterator<Item = char> {
    [byte >> 4, byte & 15].into_iter().filter_map(|digit| char::from_digit(u32::from(digit), 16))
}

fn stamps(config: &TlsConfig) -> Vec<FileStamp> {
    let stamp = |path: &PathBuf| {
        let about = fs::metadata(path).ok()?;
        Some((about.modified().ok(), about.len()))
    };
    [&config.cert, &config.key].into_iter().chain(&config.client_ca).map(stamp).collect()
}

fn build(config: &TlsConfig) -> Result<ServerConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS is not available: {error}"))?;
    let builder = match &config.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => builder.with_client_cert_verifier(verifier(path, config.client_auth, provider)?),
    };
    let (cert, key) = (&config.cert, &config.key);
    let (chain, secret) = (
        read_certificates(cert).map_err(|why| format!("[server.tls] cert: {why}"))?,
        read_private_key(key).map_err(|why| format!("[server.tls] key: {why}"))?,
    );
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| {
        format!("[server.tls]: {} is not the private key of {}: {error}", key.display(), cert.display())
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn verifier(
    path: &Path,
    auth: ClientCertificateMode,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let invalid = |why: String| format!("[server.tls] client_ca: {why}");
    let roots: RootCertStore = read_roots(path).map_err(invalid)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = match auth {
        ClientCertificateMode::Optional => verifier.allow_unauthenticated(),
        ClientCertificateMode::Required => verifier,
    };
    verifier.build().map_err(|error| invalid(format!("{} cannot be used: {error}", path.display())))
}
