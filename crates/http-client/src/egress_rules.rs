//! Egress rules: hosts, ports and schemes that may be called.
//!
//! They are checked for each new connection, not for each request: they never change while the program runs, so they hold for everything
//! that is sent over a connection.

use std::net::IpAddr;

use http::Uri;
use url::Host;

use crate::{Config, address::is_metadata_name, fetch::FetchError};

/// Ports of services that are no agents: mail, shells, files, directories, databases, queues, management interfaces. A caller that can make
/// this server send a request there could misuse the service.
pub(crate) const DEFAULT_DENIED_PORTS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989, 990, 993, 995, 1433, 1521,
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672,
    5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 9200, 9300, 10080, 10250, 11211,
    27017,
];

/// Compiled egress rules.
#[derive(Debug, Default)]
pub(crate) struct EgressRules {
    https_only: bool,
    allowed_ports: Vec<u16>,
    denied_ports: Vec<u16>,
    allowed_hosts: Vec<HostPattern>,
    denied_hosts: Vec<HostPattern>,
}

/// Host pattern: a name or address, everything below a domain (`*.example.com`), or everything (`*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern(String);

// === impl EgressRules ===

impl EgressRules {
    pub(crate) fn new(config: &Config) -> Self {
        let patterns = |texts: &[String]| texts.iter().map(|text| HostPattern::new(text)).collect();
        Self {
            https_only: config.https_only,
            allowed_ports: config.allowed_ports.clone(),
            denied_ports: config.denied_ports.clone(),
            allowed_hosts: patterns(&config.allowed_hosts),
            denied_hosts: patterns(&config.denied_hosts),
        }
    }

    /// Checks whether a connection to `uri` is allowed.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(), FetchError> {
        let deny = |why: String| Err(FetchError::Forbidden(why));
        let host = normalize_host(uri.host().unwrap_or_default());
        let port = port_or_default(uri);
        if is_metadata_name(&host) {
            return deny(format!("{host} is a cloud's metadata service, which is never called"));
        }
        if self.https_only && uri.scheme_str() == Some("http") && !is_loopback(uri) {
            return deny(format!("plain http to {host} is refused by https_only in [outbound]"));
        }
        if self.allowed_ports.is_empty() {
            if self.denied_ports.contains(&port) {
                return deny(format!(
                    "port {port} is not one that agents are called at; to call it, set allowed_ports or denied_ports \
                     in [outbound]"
                ));
            }
        } else if !self.allowed_ports.contains(&port) {
            return deny(format!("port {port} is not among allowed_ports in [outbound]"));
        }
        if self.denied_hosts.iter().any(|pattern| pattern.matches(&host)) {
            return deny(format!("{host} is among denied_hosts in [outbound]"));
        }
        if !self.allowed_hosts.is_empty() && !self.allowed_hosts.iter().any(|pattern| pattern.matches(&host))
        {
            return deny(format!("{host} is not among allowed_hosts in [outbound]"));
        }
        Ok(())
    }
}

// === impl HostPattern ===

impl HostPattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(normalize_host(text.trim()))
    }

    /// True if the pattern matches `host`, spelt as [`normalize_host`] spells it.
    pub(crate) fn matches(&self, host: &str) -> bool {
        match self.0.strip_prefix('*') {
            Some("") => true,
            Some(below) => below.starts_with('.') && host.len() > below.len() && host.ends_with(below),
            None => self.0 == host,
        }
    }
}

/// Normal form of a host: lower case, IP addresses in canonical form.
pub(crate) fn normalize_host(host: &str) -> String {
    if let Some(address) = parse_ip_host(host) {
        return address.to_string();
    }
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// IP address that a host is, in any spelling that a resolver may accept: `127.1`, `0x7f000001`, `2130706433`.
pub(crate) fn parse_ip_host(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Some(address);
    }
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Ok(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Ok(Host::Domain(_)) | Err(_) => None,
    }
}

/// True if `uri` names this machine.
pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    match parse_ip_host(host) {
        Some(address) => address.is_loopback(),
        None => matches!(normalize_host(host).as_str(), "localhost"),
    }
}

pub(crate) fn port_or_default(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(config: &Config, uri: &str) -> bool {
        EgressRules::new(config).check(&uri.parse().unwrap()).is_ok()
    }

    #[test]
    fn ports_of_other_services_are_not_called() {
        let config = Config::default();
        for port in [22, 25, 465, 587, 6379, 5432, 2375, 11211] {
            assert!(!is_allowed(&config, &format!("http://a.example:{port}/")), "{port}");
        }
        for uri in
            ["http://a.example", "https://a.example", "http://a.example:8080", "http://a.example:49152"]
        {
            assert!(is_allowed(&config, uri), "{uri}");
        }
        assert!(is_allowed(&Config { denied_ports: vec![], ..Config::default() }, "http://a.example:22"));
    }

    #[test]
    fn metadata_services_are_not_called_by_name_whatever_is_allowed() {
        let config = Config { allowed_hosts: vec!["*".to_owned()], ..Config::default() };
        for uri in ["http://metadata.google.internal/computeMetadata/v1/", "http://METADATA.goog."] {
            assert!(!is_allowed(&config, uri), "{uri}");
        }
        assert!(is_allowed(&config, "http://metadata.example.com"));
    }

    #[test]
    fn ports_that_are_named_are_the_only_ones() {
        let config = Config { allowed_ports: vec![443, 6379], ..Config::default() };
        assert!(is_allowed(&config, "https://a.example/") && is_allowed(&config, "http://a.example:6379"));
        assert!(!is_allowed(&config, "http://a.example/") && !is_allowed(&config, "https://a.example:8443"));
    }

    #[test]
    fn plain_http_can_be_refused_except_on_this_machine() {
        let config = Config { https_only: true, ..Config::default() };
        for (uri, is_good) in [
            ("https://a.example", true),
            ("http://a.example", false),
            ("http://localhost:9999", true),
            ("http://127.0.0.1:9999", true),
            ("http://[::1]:9999", true),
            ("http://localhost.evil.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_allowed(&config, uri), is_good, "{uri}");
        }
    }

    #[test]
    fn hosts_can_be_named_and_left_out() {
        let hosts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let config = Config {
            allowed_hosts: hosts(&["*.agents.example", "Desk.example", "192.0.2.7"]),
            denied_hosts: hosts(&["old.agents.example"]),
            ..Config::default()
        };
        for (uri, is_good) in [
            ("https://a.agents.example", true),
            ("https://a.b.agents.example.", true),
            ("https://agents.example", false),
            ("https://evilagents.example", false),
            ("https://old.agents.example", false),
            ("https://OLD.agents.example.", false),
            ("https://desk.example", true),
            ("https://desk.example.evil", false),
            ("https://192.0.2.7", true),
            ("https://3221225991", true),
            ("https://192.0.2.8", false),
        ] {
            assert_eq!(is_allowed(&config, uri), is_good, "{uri}");
        }
    }

    #[test]
    fn an_address_is_seen_in_every_spelling() {
        for text in ["127.0.0.1", "127.1", "0x7f000001", "0177.0.0.1", "2130706433", "127.0.0.1."] {
            assert_eq!(parse_ip_host(text), Some(IpAddr::from([127, 0, 0, 1])), "{text}");
        }
        assert_eq!(parse_ip_host("[::1]"), Some("::1".parse().unwrap()));
        for text in ["localhost", "127.0.0.1.example", ""] {
            assert_eq!(parse_ip_host(text), None, "{text}");
        }
    }
}
