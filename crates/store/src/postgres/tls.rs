//! An encrypted way to the database, made by the same library as every other one.

use std::{io, path::Path, pin::Pin, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use rialto_model::store::StoreError;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::address::TlsPolicy;
use crate::error::DatabaseError;

/// Encrypts connections, if it may.
#[derive(Clone)]
pub(super) struct PgTls(Option<Arc<ClientConfig>>);

/// Encrypts one connection to a server of this name. It is made for connections that are not encrypted too, and then not used.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    domain: String,
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<TlsStream<S>>);

// === impl PgTls ===

impl PgTls {
    /// Loads the TLS configuration. Nothing is read without encryption.
    pub(super) fn new(trust: Option<&TlsPolicy>) -> Result<Self, StoreError> {
        let Some(trust) = trust else { return Ok(Self(None)) };
        let mut roots = RootCertStore::empty();
        match trust {
            TlsPolicy::Public => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            TlsPolicy::File(file) => add_file(&mut roots, file)?,
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| DatabaseError::new("encryption could not be set up", error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Some(Arc::new(config))))
    }
}

impl<S> MakeTlsConnect<S> for PgTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        Ok(Handshake { config: self.0.clone(), domain: domain.to_owned() })
    }
}

// === impl Handshake ===

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        let connect = async move {
            let config = self.config.ok_or_else(|| io::Error::other("there is no encryption here"))?;
            let name = ServerName::try_from(self.domain).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, stream).await?;
            Ok(Encrypted(Box::new(stream)))
        };
        connect.boxed()
    }
}

// === impl Encrypted ===

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is checked by its name and its authority.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}

fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<(), StoreError> {
    let unusable = |error: Box<dyn std::error::Error + Send + Sync>| {
        let what = format!("{} (sslrootcert of [store] url) holds no certificate", file.display());
        DatabaseError::new(what, io::Error::other(error))
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.into()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.into()))?;
        roots.add(certificate).map_err(|error| unusable(error.into()))?;
    }
    if roots.is_empty() { Err(unusable("the file is empty".into()).into()) } else { Ok(()) }
}
