//! Proxies that stand between us and the world.
//!
//! Whoever runs this program chose the proxy, so it may be called whatever address it has. What lies behind it may not: an
//! address that is written out is checked as ever, and so is a name, as far as it is known here. A name that only the proxy
//! knows is the proxy's to judge. This machine itself is never called through a proxy.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use crate::{fetch::FetchError, rules::is_here};

/// The proxies to go through.
#[derive(Debug, Default)]
pub struct Proxies(Option<Matcher>);

/// The proxy for one request.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) uri: Uri,
    pub(crate) login: Option<HeaderValue>,
}

// === impl Proxies ===

impl Proxies {
    /// None at all.
    pub const NONE: Self = Self(None);

    /// Those that the environment names, in either case; `get` reads a variable.
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Self {
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

    /// The one that the configuration names, or these.
    pub(crate) fn or_configured(self, proxy: Option<&str>) -> Self {
        match proxy {
            None => self,
            Some("none" | "") => Self::NONE,
            Some(proxy) => Self(Some(Matcher::builder().all(proxy).build())),
        }
    }

    /// Whether to go through a proxy to `to`, and through which.
    pub(crate) fn to(&self, to: &Uri) -> Result<Option<Proxy>, FetchError> {
        let Some(matcher) = &self.0 else { return Ok(None) };
        if is_here(to) {
            return Ok(None);
        }
        let Some(found) = matcher.intercept(to) else { return Ok(None) };
        if found.uri().scheme_str() != Some("http") {
            return Err(FetchError::NotSent(format!(
                "the proxy {} cannot be used: only proxies with an http:// address can",
                found.uri()
            )));
        }
        Ok(Some(Proxy { uri: found.uri().clone(), login: found.basic_auth().cloned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(variables: &[(&str, &str)], to: &str) -> Option<String> {
        let get =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let proxy = Proxies::of(get).to(&to.parse().unwrap()).unwrap();
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
            let proxies = Proxies::default().or_configured(Some(proxy));
            let error = proxies.to(&"http://x.example".parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("://p:") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_configuration_goes_before_the_environment() {
        let environment = || Proxies::of(|name| (name == "ALL_PROXY").then(|| "http://a:1".to_owned()));
        let to: Uri = "http://x.example".parse().unwrap();
        assert!(environment().or_configured(Some("none")).to(&to).unwrap().is_none());
        let proxy = environment().or_configured(Some("http://me:pw@b:2")).to(&to).unwrap().unwrap();
        assert_eq!(
            (proxy.uri.to_string(), proxy.login.unwrap()),
            ("http://b:2/".into(), "Basic bWU6cHc=".parse().unwrap())
        );
    }
}
