//! OAuth token requests: the client credentials grant (RFC 6749, 4.4) and token exchange (RFC 8693).

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchRequest},
};
use rialto_model::credential::{CallerProof, OAuth, OAuthClientAuth, Secret};
use serde::Deserialize;
use url::{Host, Url, form_urlencoded};

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Timeout of a token request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Default lifetime of a token.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// Maximum lifetime of a cached token.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Time before its expiry from which on a token is not used.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);

/// Parameters of a token request.
pub(super) struct TokenRequest<'a> {
    pub(super) oauth: &'a OAuth,
    /// Client secret.
    pub(super) secret: &'a Secret,
    /// Token to exchange.
    pub(super) subject: Option<&'a CallerProof>,
}

/// Token with its remaining lifetime.
pub(super) struct AccessToken {
    pub(super) secret: Secret,
    pub(super) good_for: Duration,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenErrorResponse {
    error: String,
    error_description: String,
}

/// Requests a token. The error says what to fix.
pub(super) async fn token(
    fetch: &dyn Fetch,
    wish: &TokenRequest<'_>,
    reach: Reach,
) -> Result<AccessToken, String> {
    let url = wish.oauth.token_url.as_deref().unwrap_or_default();
    let request = request(wish, url, reach)?;
    let failed = |why: String| format!("no token for the agent from {url}: {why}");
    let answer = fetch.fetch(request).await.map_err(|error| failed(error.to_string()))?;
    let status = answer.status;
    let body = answer.body.read().await.map_err(|error| failed(error.to_string()))?;
    if status == StatusCode::OK {
        return granted(&body).map_err(failed);
    }
    Err(failed(refusal(status, &body, wish)))
}

fn request(wish: &TokenRequest<'_>, url: &str, reach: Reach) -> Result<FetchRequest, String> {
    let TokenRequest { oauth, secret, subject } = wish;
    let parsed = Url::parse(url).ok().filter(is_safe).ok_or_else(|| {
        format!("\"{url}\" cannot hand out tokens: it must be an https address (http only on this machine)")
    })?;
    let uri = parsed.as_str().parse().map_err(|_| format!("\"{url}\" is not an address"))?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    match subject {
        None => {
            form.append_pair("grant_type", "client_credentials");
        }
        Some(subject) => {
            form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
            form.append_pair("subject_token", subject.expose());
            form.append_pair("subject_token_type", "urn:ietf:params:oauth:token-type:access_token");
        }
    }
    if !oauth.scopes.is_empty() {
        form.append_pair("scope", &oauth.scopes.join(" "));
    }
    if let Some(audience) = &oauth.audience {
        form.append_pair("audience", audience);
    }
    let mut request = FetchRequest::new(Method::POST, uri);
    match oauth.client_auth {
        OAuthClientAuth::Basic => {
            request.headers.insert(header::AUTHORIZATION, basic(&oauth.client_id, secret)?);
        }
        OAuthClientAuth::Post => {
            form.append_pair("client_id", &oauth.client_id);
            form.append_pair("client_secret", secret.expose());
        }
    }
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert(header::CONTENT_TYPE, form_type);
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    request.body = Bytes::from(form.finish());
    request.reach = reach;
    request.patience = REQUEST_TIMEOUT;
    request.total = Some(REQUEST_TIMEOUT);
    request.limit = Some(MAX_RESPONSE_BYTES);
    Ok(request)
}

/// Both halves are encoded before they are joined, or a colon in the name would move the boundary.
fn basic(client: &str, secret: &Secret) -> Result<HeaderValue, String> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Secret::from(format!("{}:{}", encoded(client), encoded(secret.expose())));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.expose())))
        .map_err(|_| "the client's secret does not fit into a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// True for a URL that encrypts the secret, or stays on this machine.
fn is_safe(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

fn granted(body: &[u8]) -> Result<AccessToken, String> {
    let granted: TokenResponse =
        serde_json::from_slice(body).map_err(|_| "its answer holds no access token".to_owned())?;
    if let Some(kind) = granted.token_type.filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(format!("its tokens are of the kind \"{kind}\", which is not known here"));
    }
    let seconds = granted.expires_in.and_then(|life| match life {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    });
    let life = seconds.map_or(DEFAULT_LIFETIME, Duration::from_secs).min(MAX_LIFETIME);
    // A token with a short lifetime keeps most of it.
    let good_for = life.saturating_sub(EXPIRY_MARGIN.min(life / 5));
    Ok(AccessToken { secret: Secret::from(granted.access_token), good_for })
}

fn refusal(status: StatusCode, body: &[u8], wish: &TokenRequest<'_>) -> String {
    let oauth = wish.oauth;
    let refused: TokenErrorResponse = serde_json::from_slice(body).unwrap_or_default();
    let said = [refused.error.as_str(), refused.error_description.as_str()];
    let said: Vec<_> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let mut said = said.join(": ").replace(wish.secret.expose(), "[secret]");
    if let Some(subject) = wish.subject {
        said = said.replace(subject.expose(), "[secret]");
    }
    let said: String = said.chars().filter(|letter| !letter.is_control()).take(200).collect();
    let advice = match refused.error.as_str() {
        "invalid_client" | "unauthorized_client" => {
            format!("; check the client id ({}) and its secret", oauth.client_id)
        }
        "invalid_scope" => format!("; check the scopes ({})", oauth.scopes.join(" ")),
        "" => return format!("it answered with HTTP status {}", status.as_u16()),
        _ => String::new(),
    };
    format!("it refused with \"{said}\"{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oauth(url: &str) -> OAuth {
        OAuth { client_id: "me:too".into(), token_url: Some(url.to_owned()), ..OAuth::default() }
    }

    const URL: &str = "https://id.example/token";

    fn asked(oauth: &OAuth, subject: Option<&CallerProof>) -> FetchRequest {
        request(&TokenRequest { oauth, secret: &"p w".into(), subject }, URL, Reach::Public).unwrap()
    }

    fn refused(status: StatusCode, body: &[u8], secret: &str) -> String {
        refusal(
            status,
            body,
            &TokenRequest { oauth: &oauth(""), secret: &secret.into(), subject: Some(&"eyJhbGc".into()) },
        )
    }

    #[test]
    fn a_callers_token_is_given_in_exchange() {
        let made = asked(&oauth(URL), Some(&"a.b+c".into()));
        assert_eq!(
            made.body,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=a.b%2Bc\
             &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
        );
    }

    #[test]
    fn a_clients_secret_is_only_sent_encrypted() {
        for (url, is_good) in [
            ("https://id.example/token", true),
            ("http://127.0.0.1:9/token", true),
            ("http://localhost/token", true),
            ("http://id.example/token", false),
            ("http://localhost.evil.example/token", false),
            ("ftp://id.example", false),
            ("", false),
        ] {
            let wish = TokenRequest { oauth: &oauth(url), secret: &"s".into(), subject: None };
            let made = request(&wish, url, Reach::Public);
            assert_eq!(made.is_ok(), is_good, "{url}");
        }
    }

    #[test]
    fn both_ways_to_name_the_client_are_spelled_as_they_should() {
        let mut wanted = OAuth { scopes: vec!["a".into(), "b".into()], ..oauth(URL) };
        wanted.audience = Some("https://agent".into());
        let made = asked(&wanted, None);
        assert_eq!(made.body, "grant_type=client_credentials&scope=a+b&audience=https%3A%2F%2Fagent");
        assert_eq!(made.headers[header::AUTHORIZATION], format!("Basic {}", STANDARD.encode("me%3Atoo:p+w")));
        wanted.client_auth = OAuthClientAuth::Post;
        let made = asked(&wanted, None);
        assert!(made.body.ends_with(b"&client_id=me%3Atoo&client_secret=p+w"));
        assert!(!made.headers.contains_key(header::AUTHORIZATION));
    }

    #[test]
    fn a_token_is_not_shown_until_its_very_end() {
        let life = |body: &str| granted(body.as_bytes()).map(|token| token.good_for.as_secs());
        assert_eq!(life(r#"{"access_token":"t","expires_in":3600}"#), Ok(3570));
        assert_eq!(life(r#"{"access_token":"t","expires_in":"100","token_type":"Bearer"}"#), Ok(80));
        assert_eq!(life(r#"{"access_token":"t"}"#), Ok(270));
        assert_eq!(life(r#"{"access_token":"t","expires_in":1e300}"#), Ok(270));
        assert!(life(r#"{"access_token":"t","token_type":"DPoP"}"#).is_err());
        assert!(life("no").is_err());
    }

    #[test]
    fn a_refusal_says_what_to_mend_and_not_the_secret() {
        let body = br#"{"error":"invalid_client","error_description":"no client with hunter2 for eyJhbGc"}"#;
        assert_eq!(
            refused(StatusCode::UNAUTHORIZED, body, "hunter2"),
            "it refused with \"invalid_client: no client with [secret] for [secret]\"; check the client id (me:too) and \
             its secret"
        );
        assert_eq!(refused(StatusCode::BAD_GATEWAY, b"<html>", "x"), "it answered with HTTP status 502");
    }
}
