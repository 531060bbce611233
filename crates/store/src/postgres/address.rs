//! Address of a database, as in `[store] url`: where the database is, and how the way there is protected.
//!
//! Encryption is either on, and then the server's certificate is checked, or off. There is nothing in between: what gives
//! in to whoever sits on the wire protects from nobody. Without a word about it, it is off for a server on this machine and
//! on for every other.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use rialto_model::store::StoreError;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::{config::StoreUrl, error::DatabaseError};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time without a TCP acknowledgement after which a connection counts as broken.
const UNACKED_TIMEOUT: Duration = Duration::from_secs(15);

/// Idle time after which keepalive probes are sent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Location of the database.
pub(super) struct Address {
    pub(super) config: Config,
    /// True if to encrypt, and whom to trust then instead of the public authorities.
    pub(super) tls: Option<TlsPolicy>,
}

/// Authorities whose certificates are accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TlsPolicy {
    /// Public authorities.
    Public,
    /// Authorities in a file.
    File(PathBuf),
}

// === impl Address ===

impl Address {
    /// Reads the address in a key of `[store]`. The error never repeats what could be a password.
    pub(super) fn parse(url: &StoreUrl, key: &str) -> Result<Self, StoreError> {
        let mistake = |what: &str| mistake(key, what);
        let text = url.secret();
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(mistake("it must look like postgres://user:password@host/database"));
        }
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut authorities, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => authorities = Some(PathBuf::from(value)),
                _ => rest.push(pair),
            }
        }
        let mut config: Config = format!("{place}?{}", rest.join("&"))
            .parse()
            .map_err(|_| mistake("it cannot be read; write `%40` for `@` and `%2F` for `/` in a password"))?;
        if config.get_hosts().is_empty() {
            return Err(mistake("it names no host"));
        }
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains('@'))) {
            return Err(mistake("the password has an `@` in it; write `%40`"));
        }
        let is_encrypted = match mode {
            None => !config.get_hosts().iter().all(is_here),
            Some("disable") => false,
            Some("require" | "verify-full") => true,
            Some(_) => return Err(mistake("sslmode is one of disable, require and verify-full")),
        };
        config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
        config.application_name("rialto").keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKED_TIMEOUT);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let tls = is_encrypted.then(|| authorities.map_or(TlsPolicy::Public, TlsPolicy::File));
        Ok(Self { config, tls })
    }
}

/// Returns whether a server is on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn mistake(key: &str, what: &str) -> StoreError {
    let variable = key.to_uppercase();
    DatabaseError::plain(format!("[store] {key} (RIALTO_STORE_{variable}) is wrong: {what}")).into()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn parsed(url: &str) -> Result<Address, String> {
        Address::parse(&StoreUrl::from(url.to_owned()), "url")
            .map_err(|error| error.source().map(ToString::to_string).unwrap_or_default())
    }

    #[test]
    fn encryption_is_off_on_this_machine_and_on_elsewhere_unless_somebody_says_so() {
        for (url, tls) in [
            ("postgres://ann@localhost/rialto", None),
            ("postgres://ann@127.0.0.1:5433/rialto", None),
            ("postgres://ann@%2Frun%2Fpostgresql/rialto", None),
            ("postgres://ann@localhost,db.example/rialto", Some(TlsPolicy::Public)),
            ("postgres://ann@db.example/rialto", Some(TlsPolicy::Public)),
            ("postgres://ann@db.example/rialto?sslmode=disable", None),
            ("postgres://ann@localhost/rialto?sslmode=require", Some(TlsPolicy::Public)),
            (
                "postgres://ann@db/rialto?sslrootcert=/etc/ca.pem&sslmode=verify-full&connect_timeout=1",
                Some(TlsPolicy::File("/etc/ca.pem".into())),
            ),
        ] {
            assert_eq!(parsed(url).unwrap().tls, tls, "{url}");
        }
    }

    #[test]
    fn what_gives_in_to_whoever_sits_on_the_wire_is_refused() {
        for mode in ["prefer", "allow", "verify-ca"] {
            let told = parsed(&format!("postgres://ann@db/rialto?sslmode={mode}")).err().unwrap();
            assert!(told.contains("disable, require and verify-full"), "{told}");
        }
    }

    #[test]
    fn a_mistake_is_told_without_the_password() {
        for url in [
            "mysql://ann:hunter2@db/rialto",
            "postgres://ann:hunter2@db:port/rialto",
            "postgres://ann:pass@hunter2@db/rialto",
            "postgres://ann:hunter2@/rialto",
            "postgres://ann:hunter2@db/rialto?colour=hunter2",
        ] {
            let told = parsed(url).err().unwrap_or_else(|| panic!("{url} was taken"));
            assert!(told.contains("RIALTO_STORE_URL") && !told.contains("hunter2"), "{told}");
        }
    }
}
