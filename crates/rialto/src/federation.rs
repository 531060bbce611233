//! Federation: the registry of another Rialto, asked for agents that match work.
//!
//! Requests go to `/api/v1/resolve` with a token; the other side's policies decide which agents it names. Each of them is called
//! through it, at `/a2a/agents/<slug>`, with that token.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a::{credential::SecretResolver, server::AGENTS};
use rialto_engine::routing::{Mesh, Proposal};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchRequest},
};
use rialto_model::{
    credential::{Credential, SecretSource},
    routing::{CandidateVerdict, Dispatch, WorkDescription},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Path of routing requests.
const RESOLVE_PATH: &str = "/api/v1/resolve";

/// Registry of another Rialto.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// URL of another Rialto whose registry is asked when no local agent matches: `https://bridge.example.com`, or
    /// `https://bridge.example.com/orgs/acme` for an org there.
    pub(crate) registry_url: Option<String>,
    /// Source of the token: `env:NAME`, `file:PATH` or `store:NAME`. It needs the scopes `call` and `discover`.
    pub(crate) token: Option<String>,
    /// Lifetime of cached responses, in seconds.
    pub(crate) ttl_secs: u64,
    /// Timeout of a request, in milliseconds.
    pub(crate) timeout_ms: u64,
    /// Allow private and loopback addresses.
    pub(crate) allow_private: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { registry_url: None, token: None, ttl_secs: 60, timeout_ms: 2_000, allow_private: false }
    }
}

impl Config {
    /// Validates the options; the error names one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_address = |url: &String| {
            url.parse::<Url>().is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.username().is_empty()
            })
        };
        if self.registry_url.as_ref().is_some_and(|url| !is_address(url)) {
            return Err("registry_url: expected an address like https://bridge.example.com".to_owned());
        }
        if self.token.as_ref().is_some_and(|token| SecretSource::parse(token).is_none()) {
            return Err(
                "token: expected its source, env:NAME, file:PATH or store:NAME, not the token itself"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Opens the registry, if one is configured.
    pub(crate) fn open(&self, fetch: &Arc<dyn Fetch>, secrets: &SecretResolver) -> Option<Mesh> {
        let base = self.registry_url.as_ref()?.trim_end_matches('/').to_owned();
        let ask = Arc::new(ResolveRequest {
            base,
            token: self.token.as_deref().and_then(SecretSource::parse),
            timeout: Duration::from_millis(self.timeout_ms),
            allow_private: self.allow_private,
            fetch: Arc::clone(fetch),
            secrets: Arc::clone(secrets),
        });
        let lookup = move |work: WorkDescription| {
            let ask = Arc::clone(&ask);
            async move { ask.resolve(&work).await }.boxed()
        };
        Some(Mesh::new(Box::new(lookup), Duration::from_secs(self.ttl_secs)))
    }
}

/// Parameters of a request.
struct ResolveRequest {
    base: String,
    token: Option<SecretSource>,
    timeout: Duration,
    allow_private: bool,
    fetch: Arc<dyn Fetch>,
    secrets: SecretResolver,
}

// === impl ResolveRequest ===

impl ResolveRequest {
    async fn resolve(&self, work: &WorkDescription) -> Result<Vec<Proposal>, String> {
        let uri: Uri =
            format!("{}{RESOLVE_PATH}", self.base).parse().map_err(|_| "its address is none".to_owned())?;
        let mut request = FetchRequest::new(Method::POST, uri)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(source) = &self.token {
            let token = (self.secrets)(source).await?;
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))
                .map_err(|_| format!("{source} holds what no header can"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body = serde_json::to_vec(work).map_err(|error| error.to_string())?.into();
        request.reach = if self.allow_private { Reach::Private } else { Reach::Public };
        (request.patience, request.total, request.limit) =
            (self.timeout, Some(self.timeout), Some(MAX_RESPONSE_BYTES));
        let answer = self.fetch.fetch(request).await.map_err(|error| error.to_string())?;
        if answer.status != StatusCode::OK {
            return Err(format!("it answered with HTTP status {}", answer.status.as_u16()));
        }
        let body = answer.body.read().await.map_err(|error| error.to_string())?;
        let record: Dispatch = serde_json::from_slice(&body)
            .map_err(|error| format!("its answer is not a list of candidates: {error}"))?;
        Ok(self.proposals(&record))
    }

    /// Agents in the response that can be called through it.
    fn proposals(&self, record: &Dispatch) -> Vec<Proposal> {
        let is_plain = |slug: &str| slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let free = record.candidates.iter().filter(|one| !matches!(one.verdict, CandidateVerdict::Out(_)));
        free.filter(|one| is_plain(&one.agent))
            .map(|one| Proposal {
                url: format!("{}{AGENTS}/{}", self.base, one.agent),
                credential: self.token.clone().map(Credential::new),
                allow_private: self.allow_private,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        assert!(Config::default().check().is_ok());
        let with = |registry_url: &str, token: &str| Config {
            registry_url: Some(registry_url.to_owned()),
            token: Some(token.to_owned()),
            ..Config::default()
        };
        assert!(with("https://bridge.example.com/orgs/acme", "env:MESH").check().is_ok());
        assert!(with("bridge", "env:MESH").check().unwrap_err().contains("registry_url"));
        let secret = with("https://bridge.example.com", "hunter2").check().unwrap_err();
        assert!(secret.contains("token") && !secret.contains("hunter2"), "{secret}");
    }
}
