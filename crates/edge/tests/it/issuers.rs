//! Authentication with tokens of trusted issuers.

use std::sync::Arc;

use futures::future::join_all;
use http::{StatusCode, header};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rialto_http_client::fetch::Fetch;
use rialto_http_server::{
    auth::{Config, IssuerConfig, ReplayPolicy, TrustedIssuers},
    public_url::PublicUrl,
};
use rialto_model::{
    clock::{Clock, SystemClock},
    store::{Token, TokenStore},
};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, noon, token},
    idp::{Idp, Pen, RSA_PUBLIC, tampered, unsigned},
    server::{client, text},
};

async fn fixture(idp: &Idp) -> Fixture {
    Fixture::trusting(vec![idp.config()], &[token("ours", "owner")]).await
}

async fn shown(fixture: &Fixture, token: &str) -> StatusCode {
    fixture.status(&format!("Bearer {token}")).await
}

/// Response to a caller with these claims, for an issuer with this configuration.
async fn who(change: impl FnOnce(&mut IssuerConfig), claims: &[(&str, Value)]) -> String {
    let idp = Idp::with(&[Pen::RSA]).await;
    let mut config = idp.config();
    change(&mut config);
    let fixture = Fixture::trusting(vec![config], &[]).await;
    let mut said = idp.ann();
    for (name, value) in claims {
        said[*name] = value.clone();
    }
    text(fixture.ask(&format!("Bearer {}", Pen::RSA.sign(&said))).await).await
}

#[tokio::test]
async fn a_signed_token_is_its_caller_whatever_the_algorithm() {
    let pss = Pen { algorithm: Algorithm::PS512, ..Pen::RSA };
    let idp = Idp::with(&[Pen::RSA, Pen::EC, Pen::ED]).await;
    let fixture = fixture(&idp).await;
    for pen in [Pen::RSA, pss, Pen::EC, Pen::ED] {
        let answer = fixture.ask(&format!("Bearer {}", pen.sign(&idp.ann()))).await;
        assert_eq!(text(answer).await, "ann", "{:?}", pen.algorithm);
    }
    assert_eq!(shown(&fixture, "ours").await, StatusCode::OK);
    assert_eq!(idp.asked(), 1);
}

#[tokio::test]
async fn an_attack_is_refused_and_says_why() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let end = "2026-08-01T12:00:00Z".parse().unwrap();
    let expired = Token { expires_at: Some(end), ..token("old", "old") };
    let fixture = Fixture::trusting(vec![idp.config()], &[token("gone", "gone"), expired]).await;
    fixture.store.revoke_token("gone", end).await.unwrap();
    let (now, good) = (noon().as_second(), Pen::RSA.sign(&idp.ann()));
    assert_eq!(shown(&fixture, &good).await, StatusCode::OK);

    let symmetric = Header { kid: Some("rsa".to_owned()), ..Header::new(Algorithm::HS256) };
    let with_the_public_key = encode(&symmetric, &idp.ann(), &EncodingKey::from_secret(RSA_PUBLIC)).unwrap();
    let critical = Header {
        crit: Some(vec!["exp".to_owned()]),
        kid: Some("rsa".to_owned()),
        ..Header::new(Algorithm::RS256)
    };
    let other_key = Pen { kid: "rsa", ..Pen::EC };
    let mut without_end = idp.ann();
    without_end.as_object_mut().unwrap().remove("exp");
    let mut for_nobody = idp.ann();
    for_nobody.as_object_mut().unwrap().remove("aud");
    let signed = |claims: &Value| Pen::RSA.sign(claims);
    for (what, token, why) in [
        ("wrong token", "rialto_0000".to_owned(), "not known"),
        ("expired token", "old".to_owned(), "expired"),
        ("revoked token", "gone".to_owned(), "revoked"),
        ("no signature", unsigned(&idp.ann()), "not signed"),
        ("signed with the public key", with_the_public_key, "not signed"),
        ("another audience", signed(&idp.ann_with("aud", "elsewhere")), "audience"),
        ("other audiences", signed(&idp.ann_with("aud", json!(["a", "b"]))), "audience"),
        ("no audience", signed(&for_nobody), "audience"),
        ("another issuer", signed(&idp.ann_with("iss", "https://evil.example")), "issuer"),
        ("an issuer and a slash", signed(&idp.ann_with("iss", idp.url() + "/")), "issuer"),
        ("several issuers", signed(&idp.ann_with("iss", json!([idp.url()]))), "iss"),
        ("expired", signed(&idp.ann_with("exp", now - 60)), "expired"),
        ("no end", signed(&without_end), "exp"),
        ("an end that is a text", signed(&idp.ann_with("exp", "tomorrow")), "exp"),
        ("not yet valid", signed(&idp.ann_with("nbf", now + 61)), "not valid yet"),
        ("unknown key", Pen { kid: "nobody's", ..Pen::RSA }.sign(&idp.ann()), "key"),
        ("a key of another kind", other_key.sign(&idp.ann()), "key"),
        ("critical extension", Pen::RSA.sign_under(&critical, &idp.ann()), "crit"),
        ("tampered", tampered(&good, &idp.ann_with("sub", "owner")), "signature"),
        ("nobody", signed(&idp.ann_with("sub", "")), "name"),
        ("not a token", "a.b.c".to_owned(), "not signed"),
    ] {
        let answer = fixture.ask(&format!("Bearer {token}")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
        let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
        assert!(
            challenge.contains("error=\"invalid_token\"") && challenge.contains(why),
            "{what}: {challenge}"
        );
        assert!(!text(answer).await.contains(&token), "{what}");
    }
    assert_eq!(shown(&fixture, &good).await, StatusCode::OK);
}

#[tokio::test]
async fn clocks_may_differ_by_a_minute() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let (fixture, now) = (fixture(&idp).await, noon().as_second());
    for claims in
        [idp.ann_with("exp", now - 59), idp.ann_with("nbf", now + 60), idp.ann_with("exp", now as f64 + 0.5)]
    {
        assert_eq!(shown(&fixture, &Pen::RSA.sign(&claims)).await, StatusCode::OK, "{claims}");
    }
}

#[tokio::test]
async fn a_token_that_was_good_is_not_good_for_ever() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = fixture(&idp).await;
    let token = Pen::RSA.sign(&idp.ann_with("exp", noon().as_second() + 10));
    assert_eq!(shown(&fixture, &token).await, StatusCode::OK);
    fixture.clock.advance(69);
    assert_eq!(shown(&fixture, &token).await, StatusCode::OK);
    fixture.clock.advance(1);
    assert_eq!(shown(&fixture, &token).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn many_callers_at_once_ask_the_issuer_once() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = fixture(&idp).await;
    let tokens: Vec<_> = (0..20).map(|n| Pen::RSA.sign(&idp.ann_with("sub", format!("ann-{n}")))).collect();
    let answers = join_all(tokens.iter().map(|token| shown(&fixture, token))).await;
    assert_eq!(answers, [StatusCode::OK; 20]);
    assert_eq!(idp.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_found_and_invented_ones_are_not_asked_for() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = fixture(&idp).await;
    assert_eq!(shown(&fixture, &Pen::RSA.sign(&idp.ann())).await, StatusCode::OK);
    idp.change_keys(vec![Pen::EC.jwk()]);
    fixture.clock.advance(29);
    assert_eq!(shown(&fixture, &Pen::EC.sign(&idp.ann())).await, StatusCode::UNAUTHORIZED);
    assert_eq!(idp.asked(), 1);
    fixture.clock.advance(1);
    assert_eq!(shown(&fixture, &Pen::EC.sign(&idp.ann())).await, StatusCode::OK);
    for kid in ["a", "b", "c"] {
        let made_up = Pen { kid, ..Pen::RSA }.sign(&idp.ann());
        assert_eq!(shown(&fixture, &made_up).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(idp.asked(), 2);
    // The old key is gone, and what it signed is not good for longer than the keys were.
    fixture.clock.advance(120);
    assert_eq!(shown(&fixture, &Pen::RSA.sign(&idp.ann())).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn old_keys_serve_for_an_hour_while_the_issuer_does_not_answer() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = fixture(&idp).await;
    let token = |n: i64| Pen::RSA.sign(&idp.ann_with("exp", noon().as_second() + 9_000 + n));
    assert_eq!(shown(&fixture, &token(0)).await, StatusCode::OK);
    idp.is_up(false);
    fixture.clock.advance(120 + 3_599);
    assert_eq!(shown(&fixture, &token(1)).await, StatusCode::OK);
    assert_eq!(shown(&fixture, &token(2)).await, StatusCode::OK);
    assert_eq!(idp.asked(), 2);
    fixture.clock.advance(1);
    assert_eq!(shown(&fixture, &token(3)).await, StatusCode::SERVICE_UNAVAILABLE);
    idp.is_up(true);
    fixture.clock.advance(30);
    assert_eq!(shown(&fixture, &token(3)).await, StatusCode::OK);
}

#[tokio::test]
async fn an_issuer_that_never_answered_is_asked_again_soon() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = fixture(&idp).await;
    idp.is_up(false);
    let token = Pen::RSA.sign(&idp.ann());
    for _ in 0..3 {
        assert_eq!(shown(&fixture, &token).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(idp.asked(), 1);
    idp.is_up(true);
    fixture.clock.advance(5);
    assert_eq!(shown(&fixture, &token).await, StatusCode::OK);
}

#[tokio::test]
async fn keys_of_another_issuer_are_not_accepted() {
    let idp = Idp::with(&[Pen::RSA]).await;
    idp.speaks_for("https://evil.example");
    assert_eq!(
        shown(&fixture(&idp).await, &Pen::RSA.sign(&idp.ann())).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(idp.asked(), 0);
}

#[tokio::test]
async fn a_private_address_is_not_asked_unless_it_is_meant() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let config = IssuerConfig {
        issuer: "https://issuer.example".to_owned(),
        jwks_url: Some(format!("https://{}/keys", idp.url().trim_start_matches("http://"))),
        allow_private: false,
        ..idp.config()
    };
    let fixture = Fixture::trusting(vec![config], &[]).await;
    let token = Pen::RSA.sign(&idp.ann_with("iss", "https://issuer.example"));
    assert_eq!(shown(&fixture, &token).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(idp.asked(), 0);
}

#[tokio::test]
async fn claims_say_who_calls_and_from_where() {
    assert_eq!(who(|_| (), &[]).await, "ann");
    assert_eq!(who(|config| config.caller_claim = "email".into(), &[("email", json!("a@b"))]).await, "a@b");
    assert_eq!(who(|config| config.caller_prefix = "corp:".into(), &[]).await, "corp:ann");
    let by_org = |config: &mut IssuerConfig| config.org_claim = Some("tenant".to_owned());
    assert_eq!(who(by_org, &[("tenant", json!("acme"))]).await, "ann of acme/main");
    for wrong in [json!("a/b"), json!(7), Value::Null] {
        assert!(who(by_org, &[("tenant", wrong.clone())]).await.contains("org"), "{wrong}");
    }
    let by_project = |config: &mut IssuerConfig| config.project_claim = Some("team".to_owned());
    assert_eq!(who(by_project, &[("team", json!("web"))]).await, "ann of default/web");
}

#[tokio::test]
async fn a_token_comes_once_where_that_is_wanted() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let config = IssuerConfig { replay: ReplayPolicy::Refuse, ..idp.config() };
    let fixture = Fixture::trusting(vec![config], &[]).await;
    let token = |jti: &str| Pen::RSA.sign(&idp.ann_with("jti", jti));
    assert_eq!(shown(&fixture, &token("1")).await, StatusCode::OK);
    assert_eq!(shown(&fixture, &token("1")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(shown(&fixture, &token("2")).await, StatusCode::OK);
    assert_eq!(shown(&fixture, &Pen::RSA.sign(&idp.ann())).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_issuer_that_cannot_be_trusted_is_refused_at_the_start() {
    let good = IssuerConfig {
        issuer: "https://a.example".to_owned(),
        allow_private: false,
        ..Idp::with(&[]).await.config()
    };
    let refused = |issuers: Vec<IssuerConfig>| {
        let (fetch, clock) = (Arc::new(client()) as Arc<dyn Fetch>, Arc::new(SystemClock) as Arc<dyn Clock>);
        TrustedIssuers::new(Config { issuers, ..Config::default() }, &fetch, &clock)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(refused(vec![good.clone()]), "");
    for (wrong, why) in [
        (IssuerConfig { audience: String::new(), ..good.clone() }, "`audience`"),
        (IssuerConfig { issuer: "http://a.example".to_owned(), ..good.clone() }, "https"),
        (IssuerConfig { jwks_url: Some("http://a.example".to_owned()), ..good.clone() }, "https"),
        (IssuerConfig { caller_claim: String::new(), ..good.clone() }, "`caller_claim`"),
        (IssuerConfig { default_scope: "everything".to_owned(), ..good.clone() }, "`default_scope`"),
    ] {
        let said = refused(vec![wrong]);
        assert!(said.contains(why), "{why}: {said}");
    }
    assert!(refused(vec![good.clone(), good]).contains("twice"));
}

#[tokio::test]
async fn a_caller_brings_its_token_along_only_where_it_may_be_exchanged() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let signed = Pen::RSA.sign(&idp.ann());
    for exchange_tokens in [false, true] {
        let config = Config { issuers: vec![idp.config()], exchange_tokens };
        let fixture = Fixture::configured(PublicUrl::default(), config, &[token("ours", "owner")]).await;
        for _ in 0..2 {
            let proof = text(fixture.visit("localhost", "/mcp/proof", Some(&signed)).await).await;
            assert_eq!(proof, if exchange_tokens { &signed } else { "none" });
        }
        // Our own tokens are nobody else's business.
        assert_eq!(text(fixture.visit("localhost", "/mcp/proof", Some("ours")).await).await, "none");
    }
}
