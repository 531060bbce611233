//! Secret in the shape that its scheme requires in a request.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Uri, header};
use rialto_http_client::fetch::FetchRequest;
use rialto_model::credential::{ApiKeyLocation, CredentialScheme, Secret};
use tokio::time::Instant;
use url::form_urlencoded;

/// Replacement for a secret in text.
const REDACTED: &str = "[secret]";

/// Headers that control how the request is parsed: an API key may not replace them.
const RESERVED_HEADERS: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
];

/// Request authentication for an agent.
#[derive(Debug)]
pub(crate) struct RequestAuth {
    place: AuthPlacement,
    /// Texts that must be redacted from messages.
    hidden: Vec<Secret>,
    /// Time when it was read or requested.
    pub(crate) made: Instant,
    pub(crate) until: Instant,
}

#[derive(Debug)]
enum AuthPlacement {
    Header(HeaderName, HeaderValue),
    /// `name=value`, encoded for a URL.
    Query(Secret),
}

// === impl RequestAuth ===

impl RequestAuth {
    /// Shapes the secret according to `scheme`. A token that must be requested first is sent as a bearer token.
    pub(crate) fn new(scheme: &CredentialScheme, secret: &Secret, until: Instant) -> Result<Self, String> {
        let text = secret.expose();
        let mut hidden = vec![secret.clone()];
        let place = match scheme {
            CredentialScheme::Bearer | CredentialScheme::OAuth2(_) | CredentialScheme::Exchange(_) => {
                sealed(header::AUTHORIZATION, &format!("Bearer {text}"))?
            }
            CredentialScheme::Basic { user } => {
                let pair = match user {
                    Some(user) => Secret::from(format!("{user}:{text}")),
                    None if text.contains(':') => secret.clone(),
                    None => {
                        return Err(
                            "the agent requires a user and a password: name the user with `rialto agents credential AGENT \
                             --user NAME`, or keep user:password as the secret"
                                .into(),
                        );
                    }
                };
                let word = STANDARD.encode(pair.expose());
                hidden.push(Secret::from(word.as_str()));
                hidden.extend(pair.expose().split_once(':').map(|(_, password)| Secret::from(password)));
                sealed(header::AUTHORIZATION, &format!("Basic {word}"))?
            }
            CredentialScheme::ApiKey { place: ApiKeyLocation::Header, name } => {
                sealed(key_header(name)?, text)?
            }
            CredentialScheme::ApiKey { place: ApiKeyLocation::Cookie, name } => {
                if !is_cookie(name, text) {
                    return Err(format!("the agent's key does not fit into a cookie named \"{name}\""));
                }
                sealed(header::COOKIE, &format!("{name}={text}"))?
            }
            CredentialScheme::ApiKey { place: ApiKeyLocation::Query, name } => {
                let pair = form_urlencoded::Serializer::new(String::new()).append_pair(name, text).finish();
                hidden.push(Secret::from(pair.as_str()));
                AuthPlacement::Query(Secret::from(pair))
            }
        };
        hidden.retain(|secret| !secret.expose().is_empty());
        // The longest first: one may be part of another.
        hidden.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Ok(Self { place, hidden, made: Instant::now(), until })
    }

    /// Adds it to a request.
    pub(crate) fn put(&self, request: &mut FetchRequest) -> Result<(), String> {
        match &self.place {
            AuthPlacement::Header(name, value) => {
                request.headers.insert(name.clone(), value.clone());
            }
            AuthPlacement::Query(pair) => request.uri = with_query(&request.uri, pair.expose())?,
        }
        Ok(())
    }

    /// Redacts the secret in a text.
    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.hidden {
            if text.contains(secret.expose()) {
                text = Cow::Owned(text.replace(secret.expose(), REDACTED));
            }
        }
        text
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.hidden == other.hidden
    }
}

fn sealed(name: HeaderName, value: &str) -> Result<AuthPlacement, String> {
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| "the agent's token holds characters that a header cannot carry".to_owned())?;
    value.set_sensitive(true);
    Ok(AuthPlacement::Header(name, value))
}

fn key_header(name: &str) -> Result<HeaderName, String> {
    let header = HeaderName::try_from(name).ok().filter(|header| !RESERVED_HEADERS.contains(header));
    header.ok_or_else(|| format!("\"{name}\" is not a header that a key can be put into"))
}

fn is_cookie(name: &str, value: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"=;,\"\\()<>@:/[]?{}".contains(&byte);
    let is_value = |byte: u8| byte.is_ascii_graphic() && !b";,\"\\".contains(&byte);
    !name.is_empty() && name.bytes().all(is_name) && value.bytes().all(is_value)
}

fn with_query(uri: &Uri, pair: &str) -> Result<Uri, String> {
    let mut parts = uri.clone().into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", |path| path.as_str());
    let joint = if path.contains('?') { '&' } else { '?' };
    let whole = format!("{path}{joint}{pair}").parse();
    parts.path_and_query =
        Some(whole.map_err(|_| "the agent's key does not fit into an address".to_owned())?);
    Uri::from_parts(parts).map_err(|_| "the agent's key does not fit into an address".to_owned())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn shown(scheme: &CredentialScheme, secret: &str) -> Result<RequestAuth, String> {
        RequestAuth::new(scheme, &Secret::from(secret), Instant::now())
    }

    fn key(place: ApiKeyLocation, name: &str) -> CredentialScheme {
        CredentialScheme::ApiKey { place, name: name.to_owned() }
    }

    fn sent(scheme: &CredentialScheme, secret: &str) -> FetchRequest {
        let mut request = FetchRequest::new(Method::POST, Uri::from_static("http://a.example/x?y=1"));
        shown(scheme, secret).unwrap().put(&mut request).unwrap();
        request
    }

    #[tokio::test]
    async fn each_scheme_has_its_shape() {
        let header = |scheme: &CredentialScheme, name: &str, secret: &str| {
            let value = sent(scheme, secret).headers[name].clone();
            assert!(value.is_sensitive());
            value.to_str().unwrap().to_owned()
        };
        assert_eq!(header(&CredentialScheme::Bearer, "authorization", "t"), "Bearer t");
        let ann = CredentialScheme::Basic { user: Some("ann".into()) };
        assert_eq!(header(&ann, "authorization", "pw"), "Basic YW5uOnB3");
        assert_eq!(
            header(&CredentialScheme::Basic { user: None }, "authorization", "ann:pw"),
            "Basic YW5uOnB3"
        );
        assert_eq!(header(&key(ApiKeyLocation::Header, "X-API-Key"), "x-api-key", "t"), "t");
        assert_eq!(header(&key(ApiKeyLocation::Cookie, "sid"), "cookie", "t"), "sid=t");
        let uri = sent(&key(ApiKeyLocation::Query, "api key"), "a&b").uri;
        assert_eq!(uri.to_string(), "http://a.example/x?y=1&api+key=a%26b");
    }

    #[tokio::test]
    async fn a_key_cannot_change_how_a_request_is_read() {
        for (scheme, secret) in [
            (key(ApiKeyLocation::Header, "Transfer-Encoding"), "chunked"),
            (key(ApiKeyLocation::Header, "Host"), "evil"),
            (key(ApiKeyLocation::Header, "a b"), "x"),
            (key(ApiKeyLocation::Header, "x"), "a\r\nb: c"),
            (key(ApiKeyLocation::Cookie, "sid"), "a; admin=1"),
            (key(ApiKeyLocation::Cookie, "a=b"), "x"),
            (CredentialScheme::Basic { user: None }, "no colon"),
        ] {
            let why = shown(&scheme, secret).unwrap_err();
            assert!(!why.contains(secret), "{why}");
        }
    }

    #[tokio::test]
    async fn a_secret_is_hidden_in_every_shape_it_was_shown_in() {
        let basic = shown(&CredentialScheme::Basic { user: None }, "ann:hunter2").unwrap();
        assert_eq!(basic.hide("got YW5uOmh1bnRlcjI= for hunter2"), "got [secret] for [secret]");
        let query = shown(&key(ApiKeyLocation::Query, "k"), "a&b").unwrap();
        assert_eq!(query.hide("/x?k=a%26b says a&b"), "/x?[secret] says [secret]");
        assert!(!format!("{query:?} {basic:?}").contains("hunter2"));
    }
}
