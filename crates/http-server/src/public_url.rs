//! Address of this server as clients reach it, and its OAuth protected resource metadata (RFC 9728).

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Uri, header};
use rialto_model::{ids::Scope, token_scopes::TokenScope};
use serde_json::{Value, json};

use crate::host_check::{host_name, request_host};

/// Path of the metadata.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Header in which a proxy passes on the scheme of a request.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Address of this server as clients reach it.
#[derive(Clone, Debug, Default)]
pub struct PublicUrl {
    /// Configured address, if it is not the one that requests name (`https://bridge.example.com`).
    pub external_url: Option<String>,
    /// True if a trusted proxy says which scheme requests used.
    pub trust_proxy: bool,
    /// Domain of orgs: `<org>.<domain>`.
    pub domain: Option<String>,
    /// True if the server itself speaks TLS.
    pub is_encrypted: bool,
}

// === impl PublicUrl ===

impl PublicUrl {
    /// Address of `scope` for the sender of such a request, without a slash at its end.
    pub fn url_for(&self, uri: &Uri, headers: &HeaderMap, scope: &Scope) -> String {
        let host = request_host(uri, headers).unwrap_or("localhost");
        let (org, project) = (scope.org.as_str(), scope.project.as_str());
        let is_org_host = self.domain.as_ref().is_some_and(|domain| {
            let name = host_name(host).split_once('.');
            name.is_some_and(|(label, rest)| {
                label.eq_ignore_ascii_case(org) && domain.eq_ignore_ascii_case(rest)
            })
        });
        let base = self.base_url(host, is_org_host, headers);
        match (org, project) {
            ("default", "main") => base,
            (_, "main") if is_org_host => base,
            (_, "main") => format!("{base}/orgs/{org}"),
            _ => format!("{base}/{org}/{project}"),
        }
    }

    /// Base address for a request to `host`. The host of an org keeps its name.
    pub(crate) fn base_url(&self, host: &str, is_org: bool, headers: &HeaderMap) -> String {
        match &self.external_url {
            Some(url) if is_org => {
                let scheme = url.split_once("://").map_or("https", |(scheme, _)| scheme);
                format!("{scheme}://{host}")
            }
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("{}://{host}", self.scheme(headers)),
        }
    }

    /// Scheme of a request. The header counts only where a trusted proxy sets it, because any client can send it.
    fn scheme(&self, headers: &HeaderMap) -> &'static str {
        let forwarded =
            headers.get(FORWARDED_PROTO).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let nearest_client = forwarded.split(',').next().unwrap_or_default().trim();
        let is_encrypted = self.trust_proxy && nearest_client.eq_ignore_ascii_case("https");
        if self.is_encrypted || is_encrypted { "https" } else { "http" }
    }
}

/// Path of the resource whose metadata is requested, if it is.
pub(crate) fn resource_of_metadata_path(path: &str) -> Option<&str> {
    path.strip_prefix(WELL_KNOWN).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Address of the metadata of the resource at `path`.
pub(crate) fn metadata_url(base: &str, path: &str) -> String {
    format!("{base}{WELL_KNOWN}{path}")
}

/// Responds with the metadata of the resource at `path`.
pub(crate) fn respond_metadata<'a>(
    base: &str,
    path: &str,
    issuers: impl Iterator<Item = &'a str>,
) -> Response {
    let mut metadata = json!({
        "resource": format!("{base}{}", path.trim_end_matches('/')),
        "resource_name": "Rialto",
        "scopes_supported": TokenScope::EACH,
        "bearer_methods_supported": ["header"],
    });
    // An empty list is to be left out, by the RFC.
    let issuers: Vec<&str> = issuers.collect();
    if !issuers.is_empty() {
        metadata["authorization_servers"] = Value::from(issuers);
    }
    ([(header::CACHE_CONTROL, "max-age=300")], Json(metadata)).into_response()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn base_of(public_url: &PublicUrl, is_org: bool) -> String {
        let headers = HeaderMap::from_iter([(
            header::HeaderName::from_static(FORWARDED_PROTO),
            HeaderValue::from_static("https, http"),
        )]);
        public_url.base_url("acme.bridge.example:8420", is_org, &headers)
    }

    #[test]
    fn the_address_is_the_one_asked_for_unless_it_is_known_better() {
        let plain = PublicUrl::default();
        assert_eq!(base_of(&plain, false), "http://acme.bridge.example:8420");
        let behind = PublicUrl { trust_proxy: true, ..PublicUrl::default() };
        assert_eq!(base_of(&behind, false), "https://acme.bridge.example:8420");
        let known =
            PublicUrl { external_url: Some("https://bridge.example/".to_owned()), ..PublicUrl::default() };
        assert_eq!(base_of(&known, false), "https://bridge.example");
        assert_eq!(base_of(&known, true), "https://acme.bridge.example:8420");
    }

    #[test]
    fn only_the_place_itself_is_a_description() {
        assert_eq!(resource_of_metadata_path("/.well-known/oauth-protected-resource"), Some(""));
        assert_eq!(resource_of_metadata_path("/.well-known/oauth-protected-resource/mcp"), Some("/mcp"));
        assert_eq!(resource_of_metadata_path("/.well-known/oauth-protected-resources"), None);
        assert_eq!(resource_of_metadata_path("/mcp"), None);
    }
}
