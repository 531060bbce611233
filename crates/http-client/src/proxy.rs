//! Outbound proxies.
//!
//! The operator of this program chose the proxy, so it may have any address. The target behind it is checked: an IP address as ever, and a
//! name as far as this machine can resolve it. A name that only the proxy can resolve is the proxy's to check. This machine itself is never
//! called through a proxy.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use crate::{egress_rules::is_loopback, fetch::FetchError};

/// Rules that select a proxy for an address.
#[derive(Debug, Default)]
pub struct ProxyRules(Option<Matcher>);

/// The proxy for one request.
#[derive(Clone, Debug)]
pub(crate) struct SelectedProxy {
    pub(crate) uri: Uri,
    pub(crate) login: Option<HeaderValue>,
}

// === impl ProxyRules ===

impl ProxyRules {
    /// No proxy.
    pub const NONE: Self = Self(None);

    /// Reads the proxy variables of the environment, in either case; `get` reads a variable.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        let either =
            |upper: &str| get(upper).or_else(|| get(&upper.to_ascii_lowercase())).unwrap_or_default();
        // Where a web server starts programs for its visitors, HTTP_PROXY is what a visitor sent as a header.
        let is_cgi = get("REQUEST_METHOD").is_some();
        let http = if is_cgi { get("http_proxy").unwrap_or_default() } else { either("HTTP_PROXY") };
        let (https, all) = (either("HTTPS_PROXY"), either("ALL_PROXY"));
        if [&http, &https, &all].iter().all(|text| text.is_empty()) {
            return Self::NONE;
        }
        let matcher = Matcher::builder().http(http).https(https).all(all).no(either("NO_PROXY")).build();
        Self(Some(matcher))
    }

    /// Replaces these rules by the configured proxy, if there is one.
    pub(crate) fn or_configured(self, proxy: Option<&str>) -> Self {
        match proxy {
            None => self,
            Some("none" | "") => Self::NONE,
            Some(proxy) => Self(Some(Matcher::builder().all(proxy).build())),
        }
    }

    /// Selects the proxy for `to`, if there is one.
    pub(crate) fn for_uri(&self, to: &Uri) -> Result<Option<SelectedProxy>, FetchError> {
        let Some(matcher) = &self.0 else { return Ok(None) };
        if is_loopback(to) {
            return Ok(None);
        }
        let Some(found) = matcher.intercept(to) else { return Ok(None) };
        if found.uri().scheme_str() != Some("http") {
            return Err(FetchError::NotSent(format!(
                "the proxy {} cannot be used: only proxies with an http:// address can",
                found.uri()
            )));
        }
        Ok(Some(SelectedProxy { uri: found.uri().clone(), login: found.basic_auth().cloned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(variables: &[(&str, &str)], to: &str) -> Option<String> {
        let get =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let proxy = ProxyRules::from_env(get).for_uri(&to.parse().unwrap()).unwrap();
        proxy.map(|proxy| proxy.uri.to_string())
    }

    const BOTH: [(&str, &str); 2] = [("HTTP_PROXY", "http://a:1"), ("https_proxy", "http://b:2")];

    #[test]
    fn each_scheme_has_its_proxy() {
        assert_eq!(through(&BOTH, "http://x.example").as_deref(), Some("http://a:1/"));
        assert_eq!(through(&BOTH, "https://x.example").as_deref(), Some("http://b:2/"));
        assert_eq!(through(&[("ALL_PROXY", "c:3")], "http://x.example").as_deref(), Some("http://c:3/"));
        assert_eq!(through(&[], "http://x.example"), None);
    }

    #[test]
    fn some_places_are_reached_without() {
        let some = [BOTH[0], BOTH[1], ("no_proxy", "example.org, .inner.example, 192.0.2.0/24")];
        for (to, is_direct) in [
            ("http://example.org", true),
            ("https://a.example.org", true),
            ("http://notexample.org", false),
            ("http://a.inner.example", true),
            ("http://192.0.2.9", true),
            ("http://192.0.3.9", false),
            ("http://localhost:8080", true),
            ("http://127.0.0.1:8080", true),
            ("https://[::1]:8443", true),
        ] {
            assert_eq!(through(&some, to).is_none(), is_direct, "{to}");
        }
        assert_eq!(through(&[BOTH[0], ("NO_PROXY", "*")], "http://x.example"), None);
    }

    #[test]
    fn a_visitors_header_is_not_taken_for_a_proxy() {
        let cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://evil:1")];
        assert_eq!(through(&cgi, "http://x.example"), None);
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_and_its_password_is_not() {
        for proxy in ["socks5://me:hunter2@p:1080", "https://me:hunter2@p:443"] {
            let proxies = ProxyRules::default().or_configured(Some(proxy));
            let error = proxies.for_uri(&"http://x.example".parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("://p:") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_configuration_goes_before_the_environment() {
        let environment =
            || ProxyRules::from_env(|name| (name == "ALL_PROXY").then(|| "http://a:1".to_owned()));
        let to: Uri = "http://x.example".parse().unwrap();
        assert!(environment().or_configured(Some("none")).for_uri(&to).unwrap().is_none());
        let proxy = environment().or_configured(Some("http://me:pw@b:2")).for_uri(&to).unwrap().unwrap();
        assert_eq!(
            (proxy.uri.to_string(), proxy.login.unwrap()),
            ("http://b:2/".into(), "Basic bWU6cHc=".parse().unwrap())
        );
    }
}
