//! What agents are shown at their doors, and what nobody else is shown.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::{Call, Caller},
    card::{Binding, Card, Dialect, Interface},
    credential::{
        ApiKeyLocation, CallerProof, Credential, CredentialScheme, OAuth, OAuthClientAuth, SecretSource,
    },
    event::Event,
    failure::FailureKind,
    json::Json,
};

use crate::{
    rows::{Desk, agent, call, failure, row},
    script::{Answer, Heard, Script, http, json, result},
};

const DONE: &str = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;

fn done() -> Answer {
    result(DONE)
}

fn held(secret: &str) -> Credential {
    Credential::new(SecretSource::Held(secret.into()))
}

fn with(agent: &Agent, credential: Credential) -> Arc<Agent> {
    Arc::new(Agent { credential: Some(credential), ..agent.clone() })
}

fn plain(script: &Script) -> Arc<Agent> {
    agent(script, Dialect::V03, Binding::JsonRpc)
}

/// The same agent with a card that says this about logging in.
fn saying(agent: &Agent, security: &str) -> Arc<Agent> {
    let card = Card { raw: Json::parse(format!("{{{security}}}")).unwrap(), ..Card::clone(&agent.card) };
    Arc::new(Agent { card: Arc::new(card), ..agent.clone() })
}

fn by_client(url: &str) -> Credential {
    let oauth =
        OAuth { client_id: "rialto".into(), token_url: Some(format!("{url}/token")), ..OAuth::default() };
    Credential { scheme: Some(CredentialScheme::OAuth2(oauth)), ..held("hunter2") }
}

fn granted(token: &str) -> Answer {
    json(&format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":3600}}"#))
}

fn is_done(events: &[Event]) {
    assert_eq!(events.last().unwrap().name(), "finished", "{events:?}");
}

/// What was shown, wherever it may have been put.
fn shown(heard: &Heard) -> Vec<String> {
    let headers = ["authorization", "x-api-key", "cookie"].map(|name| heard.header(name).to_owned());
    let query = heard.path.split_once('?').map(|(_, query)| query.to_owned());
    headers.into_iter().filter(|text| !text.is_empty()).chain(query).collect()
}

#[tokio::test]
async fn a_secret_is_shown_as_the_agents_card_says() {
    for (security, secret, expected) in [
        ("", "hunter2", "Bearer hunter2"),
        (r#""securitySchemes":{"a":{"type":"http","scheme":"bearer"}}"#, "hunter2", "Bearer hunter2"),
        (
            r#""securitySchemes":{"a":{"type":"http","scheme":"basic"}}"#,
            "ann:hunter2",
            "Basic YW5uOmh1bnRlcjI=",
        ),
        (
            r#""securitySchemes":{"a":{"type":"apiKey","in":"header","name":"X-API-Key"}}"#,
            "hunter2",
            "hunter2",
        ),
        (r#""securitySchemes":{"a":{"type":"apiKey","in":"query","name":"key"}}"#, "hunter2", "key=hunter2"),
        (r#""securitySchemes":{"a":{"type":"apiKey","in":"cookie","name":"sid"}}"#, "hunter2", "sid=hunter2"),
        (
            r#""securitySchemes":{"a":{"httpAuthSecurityScheme":{"scheme":"Bearer"}},"b":{"apiKeySecurityScheme":{"location":"query","name":"k"}}},
               "securityRequirements":[{"schemes":{"b":{"list":[]}}}]"#,
            "hunter2",
            "k=hunter2",
        ),
    ] {
        let script = Script::start([done()]).await;
        let agent = with(&saying(&plain(&script), security), held(secret));
        is_done(&Desk::new().send(call(&agent)).await);
        assert_eq!(shown(&script.heard()[0]), [expected], "{security}");
    }
}

#[tokio::test]
async fn a_person_knows_better_than_the_card() {
    let script = Script::start([done()]).await;
    let scheme = Some(CredentialScheme::ApiKey { place: ApiKeyLocation::Header, name: "X-API-Key".into() });
    let said = saying(&plain(&script), r#""securitySchemes":{"a":{"type":"http","scheme":"bearer"}}"#);
    is_done(&Desk::new().send(call(&with(&said, Credential { scheme, ..held("hunter2") }))).await);
    assert_eq!(shown(&script.heard()[0]), ["hunter2"]);
}

#[tokio::test]
async fn a_refusal_never_repeats_what_was_shown_in_any_shape() {
    for (scheme, echo) in [
        (CredentialScheme::Basic { user: Some("ann".into()) }, "Basic YW5uOmh1bnRlcjI= is wrong"),
        (
            CredentialScheme::ApiKey { place: ApiKeyLocation::Query, name: "key".into() },
            "/?key=hunter2 is wrong",
        ),
        (
            CredentialScheme::ApiKey { place: ApiKeyLocation::Cookie, name: "sid".into() },
            "sid=hunter2 is wrong",
        ),
    ] {
        let script = Script::start([http(403, echo)]).await;
        let agent = with(&plain(&script), Credential { scheme: Some(scheme), ..held("hunter2") });
        let all = format!("{:?}", Desk::new().send(call(&agent)).await);
        assert!(all.contains("[secret]"), "{all}");
        assert!(!all.contains("hunter2") && !all.contains("YW5uOmh1bnRlcjI"), "{all}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_shown_until_it_expires() {
    let issuer = Script::start([granted("first")]).await;
    let script = Script::start((0..20).map(|_| done())).await;
    let agent = with(&plain(&script), by_client(&issuer.url()));
    let desk = Desk::new();
    let calls = futures::future::join_all((0..20).map(|_| desk.send(call(&agent)))).await;
    calls.iter().for_each(|events| is_done(events));
    assert!(script.heard().iter().all(|heard| heard.header("authorization") == "Bearer first"));
    let asked = issuer.heard();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), "Basic cmlhbHRvOmh1bnRlcjI=");
    assert_eq!(asked[0].body, "grant_type=client_credentials");
}

#[tokio::test]
async fn the_client_can_name_itself_among_the_fields() {
    let issuer = Script::start([granted("first")]).await;
    let script = Script::start([done()]).await;
    let mut credential = by_client(&issuer.url());
    if let Some(CredentialScheme::OAuth2(oauth)) = &mut credential.scheme {
        oauth.client_auth = OAuthClientAuth::Post;
        oauth.scopes = vec!["agents".into()];
        oauth.audience = Some("weather".into());
    }
    is_done(&Desk::new().send(call(&with(&plain(&script), credential))).await);
    assert_eq!(
        issuer.heard()[0].body,
        "grant_type=client_credentials&scope=agents&audience=weather&client_id=rialto&client_secret=hunter2"
    );
}

#[tokio::test]
async fn a_token_that_is_refused_after_it_was_good_is_replaced_once() {
    let issuer = Script::start([granted("first"), granted("second"), granted("third")]).await;
    let script = Script::start([done(), http(401, ""), done(), http(401, ""), http(401, "")]).await;
    let agent = with(&plain(&script), by_client(&issuer.url()));
    let desk = Desk::new();
    is_done(&desk.send(call(&agent)).await);
    is_done(&desk.send(call(&agent)).await);
    let failure = failure(&desk.send(call(&agent)).await);
    assert!(failure.message.contains("401"), "{failure}");
    let tokens: Vec<_> =
        script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(
        tokens,
        ["first", "first", "second", "second", "third"].map(|token| format!("Bearer {token}"))
    );
}

#[tokio::test]
async fn a_token_from_an_earlier_call_is_replaced_when_it_is_refused_though_it_never_was_good() {
    let issuer = Script::start([granted("first"), granted("second")]).await;
    let script = Script::start([http(401, ""), http(401, ""), done()]).await;
    let agent = with(&plain(&script), by_client(&issuer.url()));
    let desk = Desk::new();
    let failure = failure(&desk.send(call(&agent)).await);
    assert!(failure.message.contains("401"), "{failure}");
    is_done(&desk.send(call(&agent)).await);
    let tokens: Vec<_> =
        script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer first", "Bearer first", "Bearer second"]);
}

#[tokio::test]
async fn a_token_that_cannot_be_had_says_what_to_mend() {
    let refusal = r#"{"error":"invalid_client","error_description":"hunter2 is wrong"}"#;
    let issuer = Script::start([http(401, refusal)]).await;
    let script = Script::start([]).await;
    let mut credential = by_client(&issuer.url());
    credential.source = SecretSource::Env("TOKEN".into());
    let failure = failure(&Desk::new().send(call(&with(&plain(&script), credential))).await);
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert_eq!(
        failure.message,
        format!(
            "no token for the agent from {}/token: it refused with \"invalid_client: [secret] is wrong\"; check the client \
             id (rialto) and its secret; the secret is env:TOKEN",
            issuer.url()
        )
    );
    assert!(script.heard().is_empty());
}

#[tokio::test]
async fn a_card_that_sends_the_clients_secret_elsewhere_is_not_obeyed() {
    let (issuer, script) = (Script::start([granted("t")]).await, Script::start([done()]).await);
    let security = format!(
        r#""securitySchemes":{{"o":{{"type":"oauth2","flows":{{"clientCredentials":{{"tokenUrl":"{}/token"}}}}}}}}"#,
        issuer.url()
    );
    let oauth = OAuth { client_id: "rialto".into(), ..OAuth::default() };
    let mut credential = Credential { scheme: Some(CredentialScheme::OAuth2(oauth)), ..held("hunter2") };
    let said = saying(&plain(&script), &security);
    let failure = failure(&Desk::new().send(call(&with(&said, credential.clone()))).await);
    assert!(failure.message.contains("--token-url"), "{failure}");
    assert!(issuer.heard().is_empty() && script.heard().is_empty());
    credential.hosts = vec![issuer.address.to_string()];
    is_done(&Desk::new().send(call(&with(&said, credential))).await);
    assert_eq!(script.heard()[0].header("authorization"), "Bearer t");
}

#[tokio::test]
async fn a_rotated_file_counts_at_the_very_next_call() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "old\n").unwrap();
    let script = Script::start([done(), done()]).await;
    let source = SecretSource::File(file.path().to_str().unwrap().to_owned());
    let agent = with(&plain(&script), Credential::new(source));
    let desk = Desk::new();
    is_done(&desk.send(call(&agent)).await);
    std::fs::write(file.path(), "new\n").unwrap();
    is_done(&desk.send(call(&agent)).await);
    let tokens: Vec<_> =
        script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn a_secret_that_is_refused_is_read_again_once() {
    let script = Script::start([http(401, ""), done(), http(401, ""), http(401, "")]).await;
    let agent = with(&plain(&script), Credential::new(SecretSource::Env("ROTATING".into())));
    let desk = Desk::new();
    is_done(&desk.send(call(&agent)).await);
    let failure = failure(&desk.send(call(&agent)).await);
    assert!(failure.message.contains("401"), "{failure}");
    let tokens: Vec<_> =
        script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(tokens, [1, 2, 2, 3].map(|n| format!("Bearer secret-{n}")));
}

#[tokio::test]
async fn another_port_sees_nothing_unless_a_person_said_so() {
    for is_meant in [false, true] {
        let (home, other) = (Script::start([]).await, Script::start([done()]).await);
        let interface =
            Interface { url: other.url(), binding: Binding::JsonRpc, dialect: Dialect::V03, tenant: None };
        let agent = row(&home.url(), vec![interface], false);
        for scheme in [
            CredentialScheme::Bearer,
            CredentialScheme::ApiKey { place: ApiKeyLocation::Query, name: "key".into() },
        ] {
            let mut credential = Credential { scheme: Some(scheme), ..held("hunter2") };
            if is_meant {
                credential.hosts.push(other.address.to_string());
            }
            Desk::new().send(call(&with(&agent, credential))).await;
        }
        assert!(!other.heard().is_empty());
        for heard in other.heard() {
            assert_eq!(shown(&heard).is_empty(), !is_meant, "{heard:?}");
        }
    }
}

#[tokio::test]
async fn a_key_in_a_header_does_not_follow_a_redirect_to_another_place() {
    let other = Script::start([http(200, "{}")]).await;
    let home = Script::start([Answer::Elsewhere(format!("{}/stolen", other.url()))]).await;
    let scheme = Some(CredentialScheme::ApiKey { place: ApiKeyLocation::Header, name: "X-API-Key".into() });
    let agent = agent(&home, Dialect::V10, Binding::HttpJson);
    Desk::new().follow(&with(&agent, Credential { scheme, ..held("hunter2") }), false).await;
    assert_eq!(home.heard()[0].header("x-api-key"), "hunter2");
    assert_eq!(shown(&other.heard()[0]), Vec::<String>::new());
}

#[tokio::test]
async fn a_caller_with_a_secret_of_its_own_is_the_only_one_to_use_it() {
    let script = Script::start((0..4).map(|_| done())).await;
    let mut credential = held("everybodys");
    credential.callers.insert("ann".into(), SecretSource::Env("TOKEN".into()));
    let agent = with(&plain(&script), credential.clone());
    let desk = Desk::new();
    for who in ["ann", "bob", "ann"] {
        let call = Call { caller: Caller::user(who), ..call(&agent) };
        is_done(&desk.send(call).await);
    }
    let tokens: Vec<_> =
        script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer hunter2", "Bearer everybodys", "Bearer hunter2"]);
    credential.named_callers_only = true;
    let agent = with(&plain(&script), credential);
    let call = Call { caller: Caller::user("bob"), ..call(&agent) };
    let failure = failure(&desk.send(call).await);
    assert!(failure.message.starts_with("weather has no credential for bob"), "{failure}");
    assert_eq!(script.heard().len(), 3);
}

/// A call by somebody who came with this token.
fn call_with(agent: &Arc<Agent>, who: &str, token: Option<&str>) -> Call {
    let caller = Caller { proof: token.map(CallerProof::from), ..Caller::user(who) };
    Call { caller, ..call(agent) }
}

#[tokio::test]
async fn a_callers_token_is_exchanged_and_never_forwarded() {
    let issuer = Script::start([granted("for-ann"), granted("for-bob")]).await;
    let script = Script::start((0..3).map(|_| done())).await;
    let Some(CredentialScheme::OAuth2(oauth)) = by_client(&issuer.url()).scheme else { panic!() };
    let oauth = OAuth { audience: Some("weather".into()), ..oauth };
    let credential = Credential { scheme: Some(CredentialScheme::Exchange(oauth)), ..held("hunter2") };
    let agent = with(&plain(&script), credential);
    let desk = Desk::new();
    for (who, token) in [("ann", "jwt-of-ann"), ("ann", "jwt-of-ann"), ("bob", "jwt-of-bob")] {
        is_done(&desk.send(call_with(&agent, who, Some(token))).await);
    }
    let shown: Vec<_> = script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(shown, ["Bearer for-ann", "Bearer for-ann", "Bearer for-bob"]);
    let asked: Vec<_> = issuer.heard().iter().map(|heard| heard.body.clone()).collect();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[0].contains("subject_token=jwt-of-ann") && asked[0].contains("audience=weather"),
        "{asked:?}"
    );
    assert!(asked[1].contains("subject_token=jwt-of-bob"), "{asked:?}");
    for heard in script.heard() {
        assert!(!format!("{heard:?}").contains("jwt-of"), "{heard:?}");
    }
    let failure = failure(&desk.send(call_with(&agent, "ann", None)).await);
    assert!(failure.message.contains("this caller came without a signed one"), "{failure}");
    assert_eq!(script.heard().len(), 3);
}

#[tokio::test]
async fn a_callers_token_is_not_forwarded_to_agents_that_want_none() {
    let script = Script::start([done(), done()]).await;
    for agent in [plain(&script), with(&plain(&script), held("hunter2"))] {
        is_done(&Desk::new().send(call_with(&agent, "ann", Some("jwt-of-ann"))).await);
    }
    assert!(script.heard().iter().all(|heard| !format!("{heard:?}").contains("jwt-of-ann")));
}
