//! Fetching cards.

use std::{sync::Arc, time::Duration};

use rialto_a2a::discover::Discoverer;
use rialto_a2a_codec::card::signature::{Signer, VerificationKeys, sign};
use rialto_engine::peer::{Discovery, DiscoveryError, DiscoveryRequest, Fetched};
use rialto_http_client::{
    Config, HttpClient,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use rialto_model::{
    agent::SignatureStatus,
    backing::Backing,
    credential::{Credential, SecretSource},
    ids::Scope,
};

use crate::{
    rows::tokens,
    script::{Answer, Script, http, json},
};

const CARD: &str =
    r#"{"name":"Weather","skills":[{"id":"forecast","name":"Forecast","description":"","tags":[]}]}"#;

fn place(script: &Script) -> DiscoveryRequest {
    DiscoveryRequest {
        scope: Scope::default(),
        backing: Backing::A2a,
        url: script.url(),
        card_path: None,
        credential: None,
        allow_private: true,
        etag: None,
        known: None,
        timeout: Duration::from_secs(5),
    }
}

async fn look_for(place: DiscoveryRequest) -> Result<Fetched, DiscoveryError> {
    discoverer(VerificationKeys::new()).fetch(&place).await
}

fn discoverer(keys: VerificationKeys) -> Discoverer {
    Discoverer::new(Arc::new(HttpClient::new(&Config::default())), tokens(), keys)
}

const OUR_KEY: &[u8] = include_bytes!("keys/ours.pem");
const OUR_PUBLIC_KEY: &[u8] = include_bytes!("keys/ours.pub.pem");
const THEIR_PUBLIC_KEY: &[u8] = include_bytes!("keys/theirs.pub.pem");

fn signed() -> String {
    sign(CARD, &Signer::from_pem("ours", OUR_KEY).unwrap()).unwrap()
}

fn keys(pem: &[u8]) -> VerificationKeys {
    let mut keys = VerificationKeys::new();
    keys.add_pem(Some("ours".into()), pem).unwrap();
    keys
}

#[tokio::test]
async fn a_card_is_found_at_the_well_known_place() {
    let script = Script::start([json(CARD)]).await;
    let found = look_for(place(&script)).await.unwrap();
    let Fetched::Card { card, path, etag, signature } = found else { panic!("{found:?}") };
    assert_eq!((card.name.as_str(), card.skills.len()), ("Weather", 1));
    assert_eq!(
        (path.as_str(), etag, signature),
        ("/.well-known/agent-card.json", None, SignatureStatus::None)
    );
    assert_eq!(script.asked(), ["GET /.well-known/agent-card.json"]);
    assert_eq!(script.heard()[0].header("authorization"), "");
}

#[tokio::test]
async fn the_card_we_have_is_not_read_again() {
    let script = Script::start([json(CARD), json(&CARD.replace("Forecast", "Outlook"))]).await;
    let known = Some(Arc::new(rialto_a2a_codec::card::decode(CARD).unwrap()));
    let found = look_for(DiscoveryRequest { known: known.clone(), ..place(&script) }).await.unwrap();
    assert!(matches!(found, Fetched::Unchanged), "{found:?}");
    let found = look_for(DiscoveryRequest { known, ..place(&script) }).await.unwrap();
    assert!(matches!(found, Fetched::Card { .. }), "{found:?}");
}

#[tokio::test]
async fn an_older_agent_is_found_at_the_older_place() {
    let script = Script::start([http(404, ""), json(CARD)]).await;
    let found = look_for(place(&script)).await.unwrap();
    assert!(matches!(found, Fetched::Card { path, .. } if path == "/.well-known/agent.json"));
}

#[tokio::test]
async fn a_card_is_first_looked_for_where_it_is_said_to_be() {
    let script = Script::start([json(CARD)]).await;
    look_for(DiscoveryRequest { card_path: Some("cards/weather.json".into()), ..place(&script) })
        .await
        .unwrap();
    assert_eq!(script.asked(), ["GET /cards/weather.json"]);
}

#[tokio::test]
async fn an_agent_without_a_card_is_reported_with_the_status() {
    let script = Script::start([http(404, ""), http(404, "")]).await;
    let error = look_for(place(&script)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}/.well-known/agent-card.json answered with HTTP status 404", script.url())
    );
}

#[tokio::test]
async fn other_errors_do_not_lead_to_the_older_place() {
    let script = Script::start([http(500, "")]).await;
    let error = look_for(place(&script)).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Status { status: 500, .. }));
    assert_eq!(script.heard().len(), 1);
}

#[tokio::test]
async fn a_token_is_shown_only_when_it_is_asked_for() {
    let script = Script::start([http(401, ""), json(CARD)]).await;
    let credential = Some(Credential::new(SecretSource::Env("TOKEN".into())));
    look_for(DiscoveryRequest { credential, ..place(&script) }).await.unwrap();
    let shown: Vec<_> = script.heard().iter().map(|heard| heard.header("authorization").to_owned()).collect();
    assert_eq!(shown, ["", "Bearer hunter2"]);
}

/// A card that says that there is an extended one; `interface` is where the agent is.
fn public(interface: &str) -> String {
    CARD.replace(
        r#"{"name":"Weather","#,
        &format!(r#"{{"name":"Weather","capabilities":{{"extendedAgentCard":true}},{interface},"#),
    )
}

fn extended(interface: &str) -> String {
    public(interface).replace(
        "\"skills\":[",
        r#""skills":[{"id":"storms","name":"Storms","description":"For members.","tags":[]},"#,
    )
}

fn interface(url: &str, binding: &str, version: &str) -> String {
    format!(
        r#""supportedInterfaces":[{{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"{version}"}}]"#
    )
}

/// The agent's answer in a JSON-RPC envelope where that is the binding.
fn answered(binding: &str, card: &str) -> Answer {
    if binding == "JSONRPC" { crate::script::result(card) } else { json(card) }
}

#[tokio::test]
async fn an_extended_card_is_fetched_with_the_credential_and_its_skills_are_taken() {
    for (binding, version, asked) in [
        ("JSONRPC", "1.0", "GetExtendedAgentCard"),
        ("JSONRPC", "0.3", "agent/getAuthenticatedExtendedCard"),
        ("HTTP+JSON", "1.0", "GET /extendedAgentCard"),
        ("HTTP+JSON", "0.3", "GET /v1/card"),
    ] {
        let script = Script::start([]).await;
        let at = interface(&script.url(), binding, version);
        script.answer_next([json(&public(&at)), answered(binding, &extended(&at))]);
        let credential = Some(Credential::new(SecretSource::Env("TOKEN".into())));
        let place = DiscoveryRequest { credential, ..place(&script) };
        let found = look_for(place.clone()).await.unwrap();
        let Fetched::Card { card, etag, .. } = found else { panic!("{found:?}") };
        let skills: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
        assert_eq!(skills, ["storms", "forecast"], "{binding} {version}");
        assert_eq!(etag, None);
        assert_eq!(script.asked(), ["GET /.well-known/agent-card.json", asked]);
        assert_eq!(script.heard()[1].header("authorization"), "Bearer hunter2");
        // It is known now, and stays when it is the same, and when the agent cannot tell.
        let known = DiscoveryRequest { known: Some(Arc::from(card)), etag: Some("\"v1\"".into()), ..place };
        script.answer_next([json(&public(&at)), answered(binding, &extended(&at))]);
        assert!(matches!(look_for(known.clone()).await.unwrap(), Fetched::Unchanged), "{binding} {version}");
        assert_eq!(script.heard()[2].header("if-none-match"), "");
        script.answer_next([json(&public(&at)), http(503, "")]);
        assert!(matches!(look_for(known).await.unwrap(), Fetched::Unchanged), "{binding} {version}");
    }
}

#[tokio::test]
async fn an_extended_card_of_0_2_is_found_below_the_base_url() {
    let script = Script::start([]).await;
    let at = format!(r#""url":"{}","supportsAuthenticatedExtendedCard":true"#, script.url());
    let no = crate::script::error(-32601, "no");
    script.answer_next([json(&public(&at)), no, json(&extended(&at))]);
    let credential = Some(Credential::new(SecretSource::Env("TOKEN".into())));
    let found = look_for(DiscoveryRequest { credential, ..place(&script) }).await.unwrap();
    assert!(matches!(&found, Fetched::Card { card, .. } if card.skills.len() == 2), "{found:?}");
    assert_eq!(script.asked()[2], "GET /agent/authenticatedExtendedCard");
}

#[tokio::test]
async fn the_public_card_does_where_there_is_no_credential_for_all_or_the_agent_refuses() {
    let script = Script::start([]).await;
    let at = interface(&script.url(), "HTTP+JSON", "1.0");
    let credential = Credential::new(SecretSource::Env("TOKEN".into()));
    let personal = Credential { named_callers_only: true, ..credential.clone() };
    for (credential, asked) in [(None, 1), (Some(personal), 1), (Some(credential), 3)] {
        let before = script.asked().len();
        let mut answers = vec![json(&public(&at))];
        answers.extend((1..asked).map(|_| http(403, "{}")));
        script.answer_next(answers);
        let found = look_for(DiscoveryRequest { credential, ..place(&script) }).await.unwrap();
        assert!(matches!(&found, Fetched::Card { card, .. } if card.skills.len() == 1), "{found:?}");
        assert_eq!(script.asked().len() - before, asked);
    }
}

#[tokio::test]
async fn a_token_that_is_missing_when_it_is_asked_for_is_named() {
    let script = Script::start([http(401, "")]).await;
    let credential = Some(Credential::new(SecretSource::Env("WEATHER_TOKEN".into())));
    let error = look_for(DiscoveryRequest { credential, ..place(&script) }).await.unwrap_err();
    assert!(error.to_string().contains("WEATHER_TOKEN"), "{error}");
}

#[tokio::test]
async fn a_card_that_has_not_changed_is_not_sent_again() {
    let script = Script::start([http(304, "")]).await;
    let found = look_for(DiscoveryRequest { etag: Some("\"v1\"".into()), ..place(&script) }).await.unwrap();
    assert!(matches!(found, Fetched::Unchanged));
    assert_eq!(script.heard()[0].header("if-none-match"), "\"v1\"");
}

#[tokio::test]
async fn a_validator_is_kept_for_the_next_time() {
    let fetch = |_: FetchRequest| {
        let answer = FetchResponse::fixed(http::StatusCode::OK, CARD);
        Ok::<_, FetchError>(answer.header(http::header::ETAG, http::HeaderValue::from_static("\"v2\"")))
    };
    let script = Script::start([]).await;
    let fetch: Arc<dyn Fetch> = Arc::new(fetch);
    let found =
        Discoverer::new(fetch, tokens(), VerificationKeys::new()).fetch(&place(&script)).await.unwrap();
    assert!(matches!(found, Fetched::Card { etag: Some(etag), .. } if etag == "\"v2\""));
}

#[tokio::test]
async fn a_card_that_is_not_valid_is_reported_with_the_place_of_the_mistake() {
    let script = Script::start([json(r#"{"name":"Weather","skills":[{"id":"a"},{"name":"no id"}]}"#)]).await;
    let error = look_for(place(&script)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the card at {}/.well-known/agent-card.json is not valid: skills[1].id: expected a string, found nothing",
            script.url()
        )
    );
}

#[tokio::test]
async fn a_page_that_is_no_card_is_reported() {
    let script =
        Script::start([Answer::Whole { status: 200, media_type: "text/html", body: "<html>".into() }]).await;
    let error = look_for(place(&script)).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn a_card_may_not_be_larger_than_a_mebibyte() {
    let script = Script::start([json(&format!("{CARD}{}", " ".repeat(1024 * 1024)))]).await;
    let error = look_for(place(&script)).await.unwrap_err();
    assert!(error.to_string().ends_with("is not valid: it is larger than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn the_whole_search_has_one_deadline() {
    let script = Script::start([http(404, ""), Answer::Silence]).await;
    let error = look_for(DiscoveryRequest { timeout: Duration::from_millis(100), ..place(&script) })
        .await
        .unwrap_err();
    assert!(
        error.to_string().ends_with("could not be reached: took longer than 100 ms to answer"),
        "{error}"
    );
}

#[tokio::test]
async fn a_private_address_is_refused_without_leave() {
    let script = Script::start([]).await;
    let error = look_for(DiscoveryRequest { allow_private: false, ..place(&script) }).await.unwrap_err();
    assert!(matches!(&error, DiscoveryError::Refused(why) if why.contains("loopback")), "{error}");
}

#[tokio::test]
async fn a_signature_is_noted_without_keys_and_checked_with_them() {
    let script = Script::start((0..3).map(|_| json(&signed()))).await;
    for (keys, wanted) in [
        (VerificationKeys::new(), SignatureStatus::Unchecked),
        (keys(OUR_PUBLIC_KEY), SignatureStatus::Valid),
    ] {
        let found = discoverer(keys).fetch(&place(&script)).await.unwrap();
        let Fetched::Card { card, signature, .. } = found else { panic!("{found:?}") };
        assert_eq!(signature, wanted);
        assert!(card.signed);
    }
    let error = discoverer(keys(THEIR_PUBLIC_KEY)).fetch(&place(&script)).await.unwrap_err();
    assert!(error.to_string().contains("its signature does not hold"), "{error}");
}

#[tokio::test]
async fn a_card_that_was_changed_after_signing_is_refused() {
    let script = Script::start([json(&signed().replace("Weather", "Leather"))]).await;
    let error = discoverer(keys(OUR_PUBLIC_KEY)).fetch(&place(&script)).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn what_a_signature_does_not_cover_is_not_taken() {
    let slipped = signed().replacen('{', r#"{"url":"http://elsewhere.example","#, 1);
    let script = Script::start([json(&slipped)]).await;
    let found = discoverer(keys(OUR_PUBLIC_KEY)).fetch(&place(&script)).await.unwrap();
    let Fetched::Card { card, .. } = found else { panic!("{found:?}") };
    assert!(card.interfaces.is_empty(), "{:?}", card.interfaces);
    assert_eq!(rialto_a2a_codec::card::decode(card.raw.get()).unwrap(), *card);
}
