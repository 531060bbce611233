//! Cards of every generation, and their signatures.

use rialto_model::card::{Binding, Dialect, Interface};

use crate::card::{
    self,
    signature::{SignatureVerdict, Signer, VerificationKeys, sign, verify},
};

fn interface(url: &str, binding: Binding, dialect: Dialect) -> Interface {
    Interface { url: url.to_owned(), binding, dialect, tenant: None }
}

fn interfaces(card: &str) -> Vec<Interface> {
    card::decode(card).unwrap().interfaces
}

fn complaint(card: &str) -> String {
    card::decode(card).unwrap_err().to_string()
}

#[test]
fn a_minimal_card_is_enough() {
    let card = card::decode(r#"{"name":"a","skills":[{"id":"s"}],"x":[1.0]}"#).unwrap();
    assert_eq!(
        (card.name.as_str(), card.interfaces.len(), card.streaming, card.signed),
        ("a", 0, false, false)
    );
    assert_eq!((card.skills[0].name.as_str(), card.skills[0].description.as_str()), ("s", ""));
    assert_eq!(card.raw.get(), r#"{"name":"a","skills":[{"id":"s"}],"x":[1.0]}"#);
}

#[test]
fn an_old_card_without_a_version_is_taken_for_0_2() {
    let card = r#"{"name":"a","url":"http://a","skills":[],"capabilities":{"streaming":true},"authentication":{"schemes":[]}}"#;
    assert_eq!(interfaces(card), [interface("http://a", Binding::JsonRpc, Dialect::V02)]);
    assert!(card::decode(card).unwrap().streaming);
}

#[test]
fn a_card_of_0_3_names_its_addresses_in_order() {
    let card = r#"{"name":"a","url":"http://a","preferredTransport":"HTTP+JSON","protocolVersion":"0.3.0","skills":[],
        "additionalInterfaces":[{"url":"http://a","transport":"HTTP+JSON"},{"url":"http://b","transport":"JSONRPC"},
        {"url":"http://c","transport":"GRPC"},{"url":"http://d","transport":"carrier-pigeon"}],
        "supportsAuthenticatedExtendedCard":true}"#;
    assert_eq!(
        interfaces(card),
        [
            interface("http://a", Binding::HttpJson, Dialect::V03),
            interface("http://b", Binding::JsonRpc, Dialect::V03),
            interface("http://c", Binding::Grpc, Dialect::V03),
            interface("http://d", Binding::Other("carrier-pigeon".to_owned()), Dialect::V03),
        ]
    );
    assert!(card::decode(card).unwrap().extended);
}

#[test]
fn an_old_card_that_says_1_0_is_believed() {
    let card = r#"{"name":"a","url":"http://a","protocolVersion":"1.0.0","skills":[]}"#;
    assert_eq!(interfaces(card), [interface("http://a", Binding::JsonRpc, Dialect::V10)]);
}

#[test]
fn a_card_with_both_lists_is_read_newest_first() {
    let card = r#"{"name":"a","url":"http://a","protocolVersion":"0.3.0","skills":[],"additionalInterfaces":[
        {"url":"http://b","transport":"JSONRPC"}],"supportedInterfaces":[
        {"url":"http://a","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"t"},
        {"url":"http://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
        {"url":"http://f","protocolBinding":"JSONRPC","protocolVersion":"7.0"}],
        "capabilities":{"pushNotifications":true,"extendedAgentCard":true}}"#;
    let read = interfaces(card);
    assert_eq!(read[0].tenant.as_deref(), Some("t"));
    assert_eq!(
        read[1..],
        [
            interface("http://a", Binding::JsonRpc, Dialect::V10),
            interface("http://b", Binding::JsonRpc, Dialect::V03),
        ]
    );
}

#[test]
fn a_skill_keeps_its_schema_and_its_price() {
    let card = r#"{"name":"a","skills":[{"id":"s","inputSchema":{"maximum":1.10},"costPerTask":0.30}]}"#;
    let skill = &card::decode(card).unwrap().skills[0];
    assert_eq!(skill.input_schema.as_ref().unwrap().get(), r#"{"maximum":1.10}"#);
    assert_eq!(skill.extra.get("costPerTask").unwrap().get(), "0.30");
}

#[test]
fn a_wrong_card_is_refused_with_the_place_and_the_reason() {
    assert_eq!(complaint("{}"), "name: expected a string, found nothing");
    assert_eq!(complaint(r#"{"name":"","skills":[]}"#), "name: expected a string, found an empty string");
    assert_eq!(complaint(r#"{"name":"a"}"#), "skills: expected a list, found nothing");
    let skills = r#"{"name":"a","skills":[{"id":"x"},{"id":"y"},{"id":3}]}"#;
    assert_eq!(complaint(skills), "skills[2].id: expected a string, found a number");
    let interfaces = r#"{"name":"a","skills":[],"supportedInterfaces":[{"url":null}]}"#;
    assert_eq!(complaint(interfaces), "supportedInterfaces[0].url: expected a string, found nothing");
    assert_eq!(complaint("[]"), "expected an object, found a list");
    assert_eq!(complaint("<html>"), "expected JSON, found text that is not JSON at line 1 column 1");
}

#[test]
fn a_card_has_a_bounded_number_of_skills() {
    let skills = vec![r#"{"id":"s"}"#; card::MAX_SKILLS + 1].join(",");
    let card = format!(r#"{{"name":"a","skills":[{skills}]}}"#);
    assert_eq!(complaint(&card), "skills: expected at most 10000 skills, found 10001");
}

#[test]
fn the_card_we_write_is_read_by_both_generations() {
    let mut card = card::decode(
        r#"{"name":"Rialto","skills":[{"id":"s","tags":["t"],"inputSchema":{"n":1.0}}],"provider":{"organization":"o","url":"u"}}"#,
    )
    .unwrap();
    card.streaming = true;
    card.interfaces = vec![
        interface("http://a/rpc", Binding::JsonRpc, Dialect::V10),
        interface("http://a/rpc", Binding::JsonRpc, Dialect::V03),
        interface("http://a/rest", Binding::HttpJson, Dialect::V03),
    ];
    insta::assert_snapshot!(card::encode(&card), @r#"{"name":"Rialto","description":"","version":"0.0.0","supportedInterfaces":[{"url":"http://a/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"http://a/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"},{"url":"http://a/rest","protocolBinding":"HTTP+JSON","protocolVersion":"0.3"}],"protocolVersion":"0.3.0","url":"http://a/rpc","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"http://a/rest","transport":"HTTP+JSON"}],"capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},"defaultInputModes":["application/json"],"defaultOutputModes":["application/json"],"skills":[{"id":"s","name":"s","description":"","tags":["t"],"inputSchema":{"n":1.0}}],"provider":{"organization":"o","url":"u"}}"#);
    assert_eq!(interfaces(&card::encode(&card)), card.interfaces);
}

const PYTHON_CARD: &str = include_str!("../../testdata/python-signed-card.json");
const PYTHON_KEY: &str = include_str!("../../testdata/python-signed-card.jwk.json");

fn python_keys() -> VerificationKeys {
    let mut keys = VerificationKeys::new();
    keys.add_jwk(PYTHON_KEY).unwrap();
    keys
}

#[test]
fn a_card_signed_by_the_python_sdk_is_verified_as_far_as_it_is_signed() {
    let SignatureVerdict::Verified { kid, covered } = verify(PYTHON_CARD, &python_keys()) else {
        panic!("not verified")
    };
    assert_eq!(kid.as_deref(), Some("key-1"));
    // The SDK adds 0.3's members after signing: they are not to be trusted.
    assert!(PYTHON_CARD.contains("preferredTransport") && !covered.contains("preferredTransport"));
    assert_eq!(card::decode(&covered).unwrap().interfaces.len(), 2);
}

#[test]
fn a_changed_card_is_invalid() {
    let changed = PYTHON_CARD.replace("https://agent.example/rpc", "https://evil.example/rpc");
    assert_eq!(
        verify(&changed, &python_keys()),
        SignatureVerdict::Invalid("the signature does not match the card".to_owned())
    );
}

#[test]
fn a_card_without_signatures_is_said_to_have_none() {
    assert_eq!(verify(r#"{"name":"a"}"#, &python_keys()), SignatureVerdict::NoSignature);
    assert_eq!(verify(r#"{"name":"a","signatures":[]}"#, &python_keys()), SignatureVerdict::NoSignature);
}

#[test]
fn a_signature_by_an_unknown_key_is_invalid() {
    let reason = "no configured key fits the signature made with key key-1".to_owned();
    assert_eq!(verify(PYTHON_CARD, &VerificationKeys::new()), SignatureVerdict::Invalid(reason));
}

#[test]
fn what_we_sign_we_verify_with_every_kind_of_key() {
    let pairs = [
        (include_str!("../../testdata/es256.pem"), include_str!("../../testdata/es256.pub.pem")),
        (include_str!("../../testdata/rs256.pem"), include_str!("../../testdata/rs256.pub.pem")),
        (include_str!("../../testdata/ed25519.pem"), include_str!("../../testdata/ed25519.pub.pem")),
    ];
    let card = r#"{"name":"a","description":"","skills":[{"id":"s","n":1.10}],"url":"http://a"}"#;
    for (private, public) in pairs {
        let signed = sign(card, &Signer::from_pem("k", private.as_bytes()).unwrap()).unwrap();
        assert!(signed.starts_with(card.trim_end_matches('}')), "{signed}");
        let mut keys = VerificationKeys::new();
        keys.add_pem(Some("k".to_owned()), public.as_bytes()).unwrap();
        assert!(matches!(verify(&signed, &keys), SignatureVerdict::Verified { .. }), "{signed}");
        let mut others = VerificationKeys::new();
        others.add_pem(Some("other".to_owned()), public.as_bytes()).unwrap();
        assert!(matches!(verify(&signed, &others), SignatureVerdict::Invalid(_)));
    }
}

#[test]
fn what_is_no_key_is_refused() {
    assert!(VerificationKeys::new().add_pem(None, b"-----BEGIN NONSENSE-----").is_err());
    assert!(VerificationKeys::new().add_jwk(r#"{"kty":"oct","k":"c2VjcmV0"}"#).is_err());
    assert!(Signer::from_pem("k", b"").is_err());
}
