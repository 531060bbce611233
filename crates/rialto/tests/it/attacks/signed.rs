//! With a token that an issuer has signed, or that only looks like it.

use std::sync::Arc;

use axum::{Json, Router, routing::get};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use rialto_model::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

use super::wire::{RawConnection, exchange, status};
use crate::harness::{agent::SampleAgent, rialto::Rialto};

const RSA: &[u8] = include_bytes!("../../../../http-server/tests/it/keys/rs256.pem");
const RSA_PUBLIC: &[u8] = include_bytes!("../../../../http-server/tests/it/keys/rs256.pub.pem");
const EC: &[u8] = include_bytes!("../../../../http-server/tests/it/keys/es256.pem");

/// A server that publishes a key, as long as this lives.
struct Issuer {
    url: String,
    _runtime: Runtime,
}

// === impl Issuer ===

impl Issuer {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut jwk = Jwk::from_encoding_key(&rsa(), Algorithm::RS256).unwrap();
        jwk.common.key_id = Some("one".to_owned());
        let keys = Arc::new(json!({ "keys": [jwk] }));
        let router = Router::new().route("/keys", get(move || async move { Json(Value::clone(&keys)) }));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, _runtime: runtime }
    }

    /// How a server trusts it. A token is good once if that is wanted.
    fn trusted(&self, replay: &str) -> String {
        let url = &self.url;
        format!(
            "[auth]\nissuers = [{{ issuer = \"{url}\", jwks_url = \"{url}/keys\", audience = \"rialto\", \
             allow_private = true, replay = \"{replay}\" }}]\n"
        )
    }

    /// What it says of ann.
    fn ann(&self) -> Value {
        let end = now() + 600;
        json!({ "iss": self.url, "aud": "rialto", "sub": "ann", "exp": end, "scope": "call", "jti": "1" })
    }

    fn ann_with(&self, name: &str, value: impl Into<Value>) -> Value {
        let mut claims = self.ann();
        claims[name] = value.into();
        claims
    }
}

fn now() -> i64 {
    SystemClock.now().as_second()
}

fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_pem(RSA).unwrap()
}

fn header(algorithm: Algorithm) -> Header {
    Header { kid: Some("one".to_owned()), ..Header::new(algorithm) }
}

fn signed(claims: &Value) -> String {
    encode(&header(Algorithm::RS256), claims, &rsa()).unwrap()
}

/// What `token` says, under another head and signature.
fn forged(head: &Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(head), part(claims))
}

#[test]
fn a_token_that_its_issuer_has_not_signed_for_us_lets_nobody_in() {
    let (issuer, rialto, agent) = (Issuer::start(), Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    std::fs::write(rialto.folder().join("rialto.toml"), issuer.trusted("allow")).unwrap();
    let server = rialto.serve(&[]);
    let host = server.url.strip_prefix("http://").unwrap().to_owned();
    let show = |token: &str| exchange(&host, &RawConnection::call(&host, token).bytes());
    let good = signed(&issuer.ann());
    assert_eq!(status(&show(&good)), 200);

    let ann = issuer.ann();
    let with_public_key =
        encode(&header(Algorithm::HS256), &ann, &EncodingKey::from_secret(RSA_PUBLIC)).unwrap();
    let other_key = encode(&header(Algorithm::ES256), &ann, &EncodingKey::from_ec_pem(EC).unwrap()).unwrap();
    let embedded = forged(
        &json!({ "alg": "RS256", "jwk": { "kty": "RSA", "n": "AQAB", "e": "AQAB" } }),
        &ann,
        good.rsplit('.').next().unwrap(),
    );
    let signature = good.rsplit('.').next().unwrap();
    let now = now();
    for (what, token) in [
        ("no algorithm", forged(&json!({ "alg": "none" }), &ann, "")),
        ("no algorithm, shouted", forged(&json!({ "alg": "NONE", "kid": "one" }), &ann, signature)),
        ("signed with the public key as a password", with_public_key),
        ("signed with another key", other_key),
        ("a key that it brings along", embedded),
        (
            "changed afterwards",
            forged(&json!({ "alg": "RS256", "kid": "one" }), &issuer.ann_with("sub", "eve"), signature),
        ),
        ("expired", signed(&issuer.ann_with("exp", now - 120))),
        ("not valid yet", signed(&issuer.ann_with("nbf", now + 300))),
        ("for somebody else", signed(&issuer.ann_with("aud", "another"))),
        ("of another issuer", signed(&issuer.ann_with("iss", "https://evil.example"))),
        (
            "a key that is nowhere",
            encode(&Header { kid: Some("../../keys".to_owned()), ..header(Algorithm::RS256) }, &ann, &rsa())
                .unwrap(),
        ),
    ] {
        let answer = show(&token);
        assert_eq!(status(&answer), 401, "{what}: {answer}");
        assert!(answer.contains("invalid_token") && !answer.contains(&token), "{what}: {answer}");
        assert!(!server.log().contains(&token), "{what}");
    }
    let looks_only = signed(&issuer.ann_with("scope", "discover"));
    assert_eq!(status(&show(&looks_only)), 403);
    assert_eq!(agent.heard().len(), 1);
}

#[test]
fn a_token_that_was_overheard_is_worth_nothing_where_each_is_good_once() {
    let (issuer, rialto, agent) = (Issuer::start(), Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    std::fs::write(rialto.folder().join("rialto.toml"), issuer.trusted("refuse")).unwrap();
    let server = rialto.serve(&[]);
    let host = server.url.strip_prefix("http://").unwrap().to_owned();
    let call = RawConnection::call(&host, &signed(&issuer.ann())).bytes();
    let statuses = [&call, &call].map(|call| status(&exchange(&host, call)));
    assert_eq!(statuses, [200, 401]);
    assert_eq!(agent.heard().len(), 1);
}
