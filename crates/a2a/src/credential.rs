//! Credentials for agents: resolves secrets and shapes them for requests.
//!
//! A row names the source of a secret ([`SecretSource`]) and optionally its scheme; otherwise the agent's card names the scheme. Secrets in
//! files and in the store are read for every call (once for concurrent ones), so a rotated secret is used by the next call. OAuth tokens
//! are cached until they expire or the agent rejects them. The environment and the store belong to the program, so both are injected.

mod cache;
mod oauth;
mod request_auth;

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use rialto_a2a_codec::card::security;
use rialto_http_client::{address::Reach, fetch::Fetch};
use rialto_model::{
    card::Card,
    credential::{CallerProof, Credential, CredentialScheme, OAuth, Secret, SecretSource},
};
use tokio::time::Instant;
use url::Url;

use self::oauth::TokenRequest;
pub(crate) use self::{
    cache::{CredentialCache, CredentialOwner},
    request_auth::RequestAuth,
};
use crate::endpoints::may_see;

pub use rialto_model::secret_templates::SecretResolver;

/// Resolves credentials to request authentication.
#[derive(Clone)]
pub(crate) struct CredentialResolver {
    resolve: SecretResolver,
    fetch: Arc<dyn Fetch>,
}

/// Agent that receives a credential.
pub(crate) struct CredentialTarget<'a> {
    /// The agent's base URL.
    pub(crate) url: &'a str,
    /// Its card, if known.
    pub(crate) card: Option<&'a Card>,
    pub(crate) reach: Reach,
    /// Signed token of the caller.
    pub(crate) proof: Option<&'a CallerProof>,
}

/// Creates a resolver that reads variables from `env` and secrets from `store`.
pub fn resolver(
    env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    store: impl Fn(&str) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync + 'static,
) -> SecretResolver {
    Arc::new(move |source| match source {
        SecretSource::Held(secret) => {
            let why = "the agent's token is empty: load the agent again with a token";
            ready(filled(secret.clone()).ok_or_else(|| why.to_owned()))
        }
        SecretSource::Env(name) => {
            let found = env(name).and_then(|text| filled(Secret::from(text)));
            ready(found.ok_or_else(|| missing(&format!("set the environment variable {name}"))))
        }
        SecretSource::File(path) => file(path.clone()).boxed(),
        SecretSource::Store(name) => store(name),
    })
}

/// Store lookup for programs without a secret store.
pub fn no_store(name: &str) -> BoxFuture<'static, Result<Secret, String>> {
    ready(Err(missing(&format!("there is no store to look for {name} in"))))
}

/// Scheme of a credential for the agent with this URL and card, or the reason why there is none.
pub fn scheme(credential: &Credential, url: &str, card: Option<&Card>) -> Result<CredentialScheme, String> {
    let offered = || card.map(security::offered).unwrap_or_default();
    match &credential.scheme {
        Some(CredentialScheme::OAuth2(oauth)) if oauth.token_url.is_none() => {
            let offer = offered().into_iter().find_map(|scheme| match scheme {
                CredentialScheme::OAuth2(offer) => Some(offer),
                _ => None,
            });
            completed(oauth, offer, credential, url).map(CredentialScheme::OAuth2)
        }
        Some(scheme) => Ok(scheme.clone()),
        // A token from another source is sent as a bearer token.
        None => Ok(match offered().into_iter().next() {
            None | Some(CredentialScheme::OAuth2(_)) => CredentialScheme::Bearer,
            Some(scheme) => scheme,
        }),
    }
}

// === impl CredentialResolver ===

impl CredentialResolver {
    pub(crate) const fn new(resolve: SecretResolver, fetch: Arc<dyn Fetch>) -> Self {
        Self { resolve, fetch }
    }

    /// Resolves the credential for `target` without the cache.
    pub(crate) async fn show(
        &self,
        credential: &Credential,
        source: &SecretSource,
        target: &CredentialTarget<'_>,
    ) -> Result<RequestAuth, String> {
        let scheme = scheme(credential, target.url, target.card)?;
        let secret = (self.resolve)(source).await?;
        match &scheme {
            CredentialScheme::OAuth2(oauth) => {
                self.token(&TokenRequest { oauth, secret: &secret, subject: None }, source, target).await
            }
            CredentialScheme::Exchange(oauth) => {
                let subject = Some(target.proof.ok_or(NO_PROOF)?);
                self.token(&TokenRequest { oauth, secret: &secret, subject }, source, target).await
            }
            scheme => RequestAuth::new(scheme, &secret, Instant::now() + cache::span(source)),
        }
    }

    async fn token(
        &self,
        request: &TokenRequest<'_>,
        source: &SecretSource,
        target: &CredentialTarget<'_>,
    ) -> Result<RequestAuth, String> {
        let token = oauth::token(&*self.fetch, request, target.reach)
            .await
            .map_err(|why| format!("{why}; the secret is {source}"))?;
        RequestAuth::new(&CredentialScheme::Bearer, &token.secret, Instant::now() + token.good_for)
    }
}

/// Error when there is no token to exchange.
const NO_PROOF: &str = "the agent is shown a token in exchange for the caller's own, and this caller came without a signed \
                        one; set exchange_tokens in [auth], and call with a token of one of its issuers";

/// Completes the operator's OAuth settings from the card. A card may not redirect the client secret to another host.
fn completed(
    oauth: &OAuth,
    offer: Option<OAuth>,
    credential: &Credential,
    url: &str,
) -> Result<OAuth, String> {
    let Some(offer) = offer else {
        return Err(
            "the agent's card does not say where its tokens are handed out; name it with `rialto agents credential AGENT --token-url URL`".into(),
        );
    };
    let token_url = offer.token_url.unwrap_or_default();
    let is_known = Url::parse(&token_url).is_ok_and(|there| may_see(url, &there, &credential.hosts));
    if !is_known {
        return Err(format!(
            "the agent's card wants its tokens to be got from {token_url}, which is another host than the agent's; if that \
             is right, say so with `rialto agents credential AGENT --token-url {token_url}`"
        ));
    }
    let scopes = if oauth.scopes.is_empty() { offer.scopes } else { oauth.scopes.clone() };
    Ok(OAuth { token_url: Some(token_url), scopes, ..oauth.clone() })
}

async fn file(path: String) -> Result<Secret, String> {
    let text = tokio::fs::read_to_string(&path).await.map(Secret::from).ok();
    text.and_then(filled).ok_or_else(|| missing(&format!("{path} cannot be read or is empty")))
}

fn missing(fix: &str) -> String {
    format!("the agent's token is missing: {fix}")
}

fn filled(secret: Secret) -> Option<Secret> {
    let text = secret.expose().trim();
    if text.is_empty() {
        return None;
    }
    if text.len() == secret.expose().len() { Some(secret) } else { Some(Secret::from(text)) }
}

fn ready(result: Result<Secret, String>) -> BoxFuture<'static, Result<Secret, String>> {
    std::future::ready(result).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_wherever_it_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from a file\n").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let env = |name: &str| (name == "TOKEN").then(|| "from the environment".to_owned());
        let read = resolver(env, |name| ready(Ok(Secret::from(format!("{name} from the store")))));
        for (source, token) in [
            (SecretSource::Env("TOKEN".into()), Some("from the environment")),
            (SecretSource::Env("OTHER".into()), None),
            (SecretSource::File(path), Some("from a file")),
            (SecretSource::File("/nowhere".into()), None),
            (SecretSource::Store("desk".into()), Some("desk from the store")),
            (SecretSource::Held("held".into()), Some("held")),
            (SecretSource::Held(" ".into()), None),
        ] {
            assert_eq!(read(&source).await.as_ref().map(Secret::expose).ok(), token, "{source:?}");
        }
    }

    #[tokio::test]
    async fn a_missing_secret_is_named() {
        let read = resolver(|_| None, no_store);
        for (source, word) in [
            (SecretSource::Env("TOKEN".into()), "set the environment variable TOKEN"),
            (SecretSource::File("/nowhere".into()), "/nowhere cannot be read"),
            (SecretSource::Store("desk".into()), "desk"),
        ] {
            let why = read(&source).await.unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    fn card(members: &str) -> Card {
        rialto_a2a_codec::card::decode(&format!(r#"{{"name":"A","skills":[],{members}}}"#)).unwrap()
    }

    fn oauth_card(token_url: &str) -> Card {
        card(&format!(
            r#""securitySchemes":{{"o":{{"type":"oauth2","flows":{{"clientCredentials":{{"tokenUrl":"{token_url}"}}}}}}}},
               "security":[{{"o":["read"]}}]"#
        ))
    }

    #[test]
    fn a_credential_is_shown_as_the_card_says_unless_a_person_says_otherwise() {
        let mut credential = Credential::new(SecretSource::Env("TOKEN".into()));
        let basic = card(r#""securitySchemes":{"b":{"type":"http","scheme":"basic"}}"#);
        let shown = |credential: &Credential, card: Option<&Card>| {
            scheme(credential, "https://a.example", card).unwrap()
        };
        assert_eq!(shown(&credential, Some(&basic)), CredentialScheme::Basic { user: None });
        assert_eq!(shown(&credential, None), CredentialScheme::Bearer);
        assert_eq!(
            shown(&credential, Some(&oauth_card("https://a.example/token"))),
            CredentialScheme::Bearer
        );
        credential.scheme = Some(CredentialScheme::Bearer);
        assert_eq!(shown(&credential, Some(&basic)), CredentialScheme::Bearer);
    }

    #[test]
    fn a_card_cannot_send_the_clients_secret_to_another_host() {
        let oauth = OAuth { client_id: "me".into(), ..OAuth::default() };
        let mut credential = Credential::new(SecretSource::Env("SECRET".into()));
        credential.scheme = Some(CredentialScheme::OAuth2(oauth));
        let asked = |credential: &Credential, url: &str| {
            scheme(credential, "https://a.example", Some(&oauth_card(url)))
        };
        let Ok(CredentialScheme::OAuth2(oauth)) = asked(&credential, "https://a.example/token") else {
            panic!()
        };
        assert_eq!(
            (oauth.token_url.as_deref(), oauth.scopes),
            (Some("https://a.example/token"), vec!["read".into()])
        );
        let why = asked(&credential, "https://evil.example/token").unwrap_err();
        assert!(why.contains("evil.example") && why.contains("--token-url"), "{why}");
        credential.hosts = vec!["evil.example".into()];
        assert!(asked(&credential, "https://evil.example/token").is_ok());
    }
}
