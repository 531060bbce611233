//! What this server says of itself to clients that look for a way in (OAuth protected resource metadata, RFC 9728).

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Uri, header};
use rialto_model::{ids::Scope, token_scopes::TokenScope};
use serde_json::{Value, json};

use crate::guard::{host_of, name_of};

/// Where that is told.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Who put a proxy in front of us says here how requests came to it.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// How this server is reached from outside.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Its address, when that is another than requests name (`https://bridge.example.com`).
    pub public_url: Option<String>,
    /// Whether there is a proxy in front of it that says whether requests came encrypted.
    pub trust_proxy: bool,
    /// Orgs have names below this one: `<org>.<domain>`.
    pub domain: Option<String>,
    /// Whether it speaks TLS itself.
    pub is_encrypted: bool,
}

// === impl Site ===

impl Site {
    /// Where somebody who sent such a request reaches what belongs to `scope`, without a slash at its end.
    pub fn address(&self, uri: &Uri, headers: &HeaderMap, scope: &Scope) -> String {
        let host = host_of(uri, headers).unwrap_or("localhost");
        let (org, project) = (scope.org.as_str(), scope.project.as_str());
        let is_of_org = self.domain.as_ref().is_some_and(|domain| {
            let name = name_of(host).split_once('.');
            name.is_some_and(|(label, rest)| {
                label.eq_ignore_ascii_case(org) && domain.eq_ignore_ascii_case(rest)
            })
        });
        let base = self.base(host, is_of_org, headers);
        match (org, project) {
            ("default", "main") => base,
            (_, "main") if is_of_org => base,
            (_, "main") => format!("{base}/orgs/{org}"),
            _ => format!("{base}/{org}/{project}"),
        }
    }

    /// Where somebody who asked for `host` reaches us. The host of an org keeps its name.
    pub(crate) fn base(&self, host: &str, is_org: bool, headers: &HeaderMap) -> String {
        match &self.public_url {
            Some(url) if is_org => {
                let scheme = url.split_once("://").map_or("https", |(scheme, _)| scheme);
                format!("{scheme}://{host}")
            }
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("{}://{host}", self.scheme(headers)),
        }
    }

    /// Anybody can send the header, so it counts only where a proxy is known to set it.
    fn scheme(&self, headers: &HeaderMap) -> &'static str {
        let said = headers.get(FORWARDED_PROTO).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let nearest_client = said.split(',').next().unwrap_or_default().trim();
        let is_encrypted = self.trust_proxy && nearest_client.eq_ignore_ascii_case("https");
        if self.is_encrypted || is_encrypted { "https" } else { "http" }
    }
}

/// The path of the resource whose description is asked for, if one is.
pub(crate) fn described(path: &str) -> Option<&str> {
    path.strip_prefix(WELL_KNOWN).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where the resource at `path` is described.
pub(crate) fn description_url(base: &str, path: &str) -> String {
    format!("{base}{WELL_KNOWN}{path}")
}

/// The description of the resource at `path`.
pub(crate) fn description<'a>(base: &str, path: &str, issuers: impl Iterator<Item = &'a str>) -> Response {
    let mut told = json!({
        "resource": format!("{base}{}", path.trim_end_matches('/')),
        "resource_name": "Rialto",
        "scopes_supported": TokenScope::EACH,
        "bearer_methods_supported": ["header"],
    });
    // An empty list is to be left out, by the RFC.
    let issuers: Vec<&str> = issuers.collect();
    if !issuers.is_empty() {
        told["authorization_servers"] = Value::from(issuers);
    }
    ([(header::CACHE_CONTROL, "max-age=300")], Json(told)).into_response()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn base(site: &Site, is_org: bool) -> String {
        let headers = HeaderMap::from_iter([(
            header::HeaderName::from_static(FORWARDED_PROTO),
            HeaderValue::from_static("https, http"),
        )]);
        site.base("acme.bridge.example:8420", is_org, &headers)
    }

    #[test]
    fn the_address_is_the_one_asked_for_unless_it_is_known_better() {
        let plain = Site::default();
        assert_eq!(base(&plain, false), "http://acme.bridge.example:8420");
        let behind = Site { trust_proxy: true, ..Site::default() };
        assert_eq!(base(&behind, false), "https://acme.bridge.example:8420");
        let known = Site { public_url: Some("https://bridge.example/".to_owned()), ..Site::default() };
        assert_eq!(base(&known, false), "https://bridge.example");
        assert_eq!(base(&known, true), "https://acme.bridge.example:8420");
    }

    #[test]
    fn only_the_place_itself_is_a_description() {
        assert_eq!(described("/.well-known/oauth-protected-resource"), Some(""));
        assert_eq!(described("/.well-known/oauth-protected-resource/mcp"), Some("/mcp"));
        assert_eq!(described("/.well-known/oauth-protected-resources"), None);
        assert_eq!(described("/mcp"), None);
    }
}
