//! Certificates and private keys in PEM files.

use std::path::Path;

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Reads the authorities to trust.
pub fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| unreadable(path, &error))?;
    }
    Ok(roots)
}

/// Reads a certificate chain, the end-entity certificate first.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(chain) if chain.is_empty() => Err(format!("there is no certificate in {}", path.display())),
        read => read.map_err(|error| unreadable(path, &error)),
    }
}

/// Reads the private key of a certificate.
pub fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("cannot read a private key from {}: {error}", path.display()))
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> String {
    format!("cannot read certificates from {}: {error}", path.display())
}
