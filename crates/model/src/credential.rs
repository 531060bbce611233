//! Credentials sent to agents: the source of the secret and its scheme.
//!
//! A row says where to look, never what is found there. The secret itself is read when a call needs it, by the component that
//! sends, and passes through nothing that prints or stores.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::call::CallerId;

/// A text that is never shown, and wiped from memory when nobody needs it any more.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// The signed token a caller came with, for as long as its call lasts. It says nothing about who the caller is that the
/// caller does not say, so callers that differ in it only are the same.
#[derive(Clone, Debug)]
pub struct CallerProof(Arc<Secret>);

/// Source of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// An environment variable of the process that calls.
    Env(String),
    /// A file.
    File(String),
    /// The encrypted secret of this name in the store.
    #[serde(alias = "secret")]
    Store(String),
    /// Given for this process only; never written down.
    #[serde(skip)]
    Held(Secret),
}

/// Location of an API key in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiKeyLocation {
    /// In a header of its own.
    Header,
    /// In the address.
    Query,
    /// Among the cookies.
    Cookie,
}

/// Authentication of the client at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OAuthClientAuth {
    /// In the `Authorization` header.
    #[default]
    Basic,
    /// Among the fields of the request.
    Post,
}

/// A token to be asked for with the client credentials grant of OAuth 2; the secret is the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuth {
    /// Our name there.
    pub client_id: String,
    /// Token endpoint; none is the one that the agent's card names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// Requested scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Requested audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Authentication at the token endpoint.
    pub client_auth: OAuthClientAuth,
}

/// Scheme by which a secret is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum CredentialScheme {
    /// `Authorization: Bearer …`
    Bearer,
    /// A key under a name.
    ApiKey {
        /// URL.
        place: ApiKeyLocation,
        /// The header's, parameter's or cookie's name.
        name: String,
    },
    /// `Authorization: Basic …`
    Basic {
        /// The user; none when the secret is `user:password`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// `Authorization: Bearer …`, with a token that is asked for and kept until it expires.
    OAuth2(OAuth),
    /// `Authorization: Bearer …`, with a token that is asked for in exchange for the caller's own (RFC 8693).
    Exchange(OAuth),
}

/// Credential sent to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// Source of the secret.
    #[serde(flatten)]
    pub source: SecretSource,
    /// Scheme; none is the one that the agent's card names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<CredentialScheme>,
    /// Hosts besides the agent's own that may see it, as `host` or `host:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Callers that have a secret of their own, shown in place of the agent's for their calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, SecretSource>,
    /// True if everybody else is refused, in place of going with the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named_callers_only: bool,
}

// === impl Secret ===

impl Secret {
    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(Zeroizing::new(text.into()))
    }
}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

// === impl CallerProof ===

impl CallerProof {
    /// The token, for the one place that it is exchanged at.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl From<&str> for CallerProof {
    fn from(token: &str) -> Self {
        Self(Arc::new(Secret::from(token)))
    }
}

impl PartialEq for CallerProof {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CallerProof {}

impl Hash for CallerProof {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

// === impl SecretSource ===

impl SecretSource {
    /// Reads `env:NAME`, `file:PATH` or `store:NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty())?;
        match kind {
            "env" => Some(Self::Env(name.to_owned())),
            "file" => Some(Self::File(name.to_owned())),
            "store" => Some(Self::Store(name.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Store(name) => write!(f, "store:{name}"),
            Self::Held(_) => f.write_str("given for this session"),
        }
    }
}

// === impl CredentialScheme ===

impl fmt::Display for CredentialScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer token"),
            Self::ApiKey { place, name } => {
                let place = match place {
                    ApiKeyLocation::Header => "header",
                    ApiKeyLocation::Query => "query parameter",
                    ApiKeyLocation::Cookie => "cookie",
                };
                write!(f, "API key in the {place} {name}")
            }
            Self::Basic { user: Some(user) } => write!(f, "password of {user}"),
            Self::Basic { user: None } => f.write_str("user and password"),
            Self::OAuth2(oauth) => {
                write!(f, "OAuth 2 token for the client {}", oauth.client_id)?;
                oauth.token_url.as_ref().map_or(Ok(()), |url| write!(f, " from {url}"))
            }
            Self::Exchange(oauth) => {
                write!(f, "token in exchange for the caller's own")?;
                oauth.token_url.as_ref().map_or(Ok(()), |url| write!(f, ", from {url}"))
            }
        }
    }
}

// === impl Credential ===

impl Credential {
    /// The secret from `source`, shown as the agent's card says.
    pub const fn new(source: SecretSource) -> Self {
        Self { source, scheme: None, hosts: Vec::new(), callers: BTreeMap::new(), named_callers_only: false }
    }

    /// Source of the secret for this caller's calls; none when this caller has none.
    pub fn source_for(&self, caller: &CallerId) -> Option<&SecretSource> {
        match self.callers.get(caller.as_str()) {
            Some(own) => Some(own),
            None if self.named_callers_only => None,
            None => Some(&self.source),
        }
    }

    /// Returns whether it matters who calls.
    pub fn is_personal(&self) -> bool {
        self.named_callers_only
            || !self.callers.is_empty()
            || matches!(self.scheme, Some(CredentialScheme::Exchange(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Caller;

    #[test]
    fn a_secret_is_never_shown() {
        let held = Credential::new(SecretSource::Held(Secret::from("hunter2")));
        assert!(!format!("{held:?} {}", held.source).contains("hunter2"));
        assert!(serde_json::to_string(&held).is_err());
    }

    #[test]
    fn what_a_caller_came_with_is_not_shown_and_does_not_make_it_another() {
        let [one, two] = ["hunter2", "hunter3"]
            .map(|token| Caller { proof: Some(CallerProof::from(token)), ..Caller::user("ann") });
        assert_eq!(one, two);
        let shown = format!("{one:?} {}", serde_json::to_string(&one).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_row_says_no_more_than_it_was_told() {
        let credential = Credential::new(SecretSource::Env("TOKEN".into()));
        let text = serde_json::to_string(&credential).unwrap();
        assert_eq!(text, r#"{"env":"TOKEN"}"#);
        assert_eq!(serde_json::from_str::<Credential>(&text).unwrap(), credential);
    }

    #[test]
    fn a_full_row_comes_back_as_it_was() {
        let oauth = OAuth { client_id: "rialto".into(), scopes: vec!["a".into()], ..OAuth::default() };
        for scheme in [
            CredentialScheme::Bearer,
            CredentialScheme::ApiKey { place: ApiKeyLocation::Cookie, name: "key".into() },
            CredentialScheme::Basic { user: Some("ann".into()) },
            CredentialScheme::OAuth2(oauth.clone()),
            CredentialScheme::Exchange(oauth),
        ] {
            let credential = Credential {
                scheme: Some(scheme),
                hosts: vec!["rpc.example:8443".into()],
                callers: [("ann".to_owned(), SecretSource::File("/ann".into()))].into(),
                named_callers_only: true,
                ..Credential::new(SecretSource::Store("desk".into()))
            };
            let text = serde_json::to_string(&credential).unwrap();
            assert_eq!(serde_json::from_str::<Credential>(&text).unwrap(), credential, "{text}");
        }
    }

    #[test]
    fn a_caller_with_a_secret_of_its_own_uses_that() {
        let own = SecretSource::Env("ANN".into());
        let mut credential = Credential::new(SecretSource::Env("ALL".into()));
        credential.callers.insert("ann".into(), own.clone());
        assert_eq!(credential.source_for(&"ann".into()), Some(&own));
        assert_eq!(credential.source_for(&"bob".into()), Some(&SecretSource::Env("ALL".into())));
        credential.named_callers_only = true;
        assert_eq!(credential.source_for(&"bob".into()), None);
    }

    #[test]
    fn a_source_is_a_kind_and_a_name() {
        for text in ["env:TOKEN", "file:/run/secrets/desk", "store:desk"] {
            assert_eq!(SecretSource::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "env:", "TOKEN", "vault:x"] {
            assert_eq!(SecretSource::parse(text), None, "{text}");
        }
    }
}
