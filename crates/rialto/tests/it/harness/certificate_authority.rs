//! A certificate authority of one test, made by openssl.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// What certificates say, so that the settings of the machine do not matter.
const SETTINGS: &str = "
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// An authority that no client knows unless it is given its certificate.
pub(crate) struct CertificateAuthority(TempDir);

// === impl CertificateAuthority ===

impl CertificateAuthority {
    /// Makes one with a key of its own.
    pub(crate) fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        fs::write(authority.file("settings"), SETTINGS).unwrap();
        authority.make("authority", &authority.ca(), &authority.file("ca.key"), &[]);
        authority
    }

    /// The file with its certificate.
    pub(crate) fn ca(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// Writes a fresh key, and a certificate for it that is good for this machine.
    pub(crate) fn issue(&self, cert: &Path, key: &Path) {
        let (ca, ca_key) = (self.ca(), self.file("ca.key"));
        self.make("server", cert, key, &["-CA".as_ref(), &ca, "-CAkey".as_ref(), &ca_key]);
    }

    /// The certificate that a server on this machine shows to a new connection, if this authority has signed it.
    pub(crate) fn shown_at(&self, port: u16) -> Result<String, String> {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-verify_return_error", "-verify_ip", "127.0.0.1"]);
        command.args(["-connect", &format!("127.0.0.1:{port}")]).arg("-CAfile").arg(self.ca());
        let said = output(&mut command)?;
        let from = said.find("-----BEGIN").ok_or_else(|| format!("no certificate: {said}"))?;
        let end = said.rfind("-----END CERTIFICATE-----\n").ok_or_else(|| format!("half of one: {said}"))?;
        Ok(format!("{}-----END CERTIFICATE-----\n", &said[from..end]))
    }

    fn make(&self, section: &str, cert: &Path, key: &Path, more: &[&Path]) {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        command.args(["-days", "30", "-subj", &format!("/CN=rialto tests {section}")]);
        command.args(["-extensions", section, "-config"]).arg(self.file("settings"));
        command.arg("-out").arg(cert).arg("-keyout").arg(key).args(more);
        output(&mut command).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// What browsers know a certificate's key by: the SHA-256 of it, in Base64.
pub(crate) fn key_digest(cert: &Path) -> String {
    let script = "openssl x509 -in \"$0\" -noout -pubkey | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | openssl base64";
    output(Command::new("/bin/sh").args(["-c", script]).arg(cert)).unwrap().trim().to_owned()
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
