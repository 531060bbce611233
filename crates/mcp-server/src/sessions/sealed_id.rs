//! Session ids that hold what a process needs to serve their session.
//!
//! A client behind a load balancer sends each request to another process, and processes restart. So the id that a client gets is the
//! state of its session: a random key, the handshake, and a digest of its caller, with an HMAC over all of it. It is not secret, but
//! cannot be forged or changed. The HMAC key is in the store, so an id is valid for every process of that store.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use rialto_engine::Engine;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
};
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, Implementation, InitializeRequestParams, ProtocolVersion,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

/// Name of the key in the store.
const KEY_NAME: &str = "mcp session id";

/// Bytes of a client's name or version that are kept. Names of known clients are far shorter.
const MAX_NAME_BYTES: usize = 96;

/// Bytes of a protocol version that are kept.
const MAX_VERSION_BYTES: usize = 32;

/// Longest id that is looked at.
const MAX_ID_BYTES: usize = 1_024;

/// Bytes of a caller's digest that are kept.
const DIGEST_BYTES: usize = 16;

/// State of a session, as its id holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionSeal {
    /// Random key of the session, by which processes know it.
    #[serde(rename = "k")]
    pub(crate) key: String,
    /// Second since 1970 when it was opened.
    #[serde(rename = "t")]
    pub(crate) opened_at: i64,
    /// Digest of the caller that opened it.
    #[serde(rename = "o")]
    owner: String,
    #[serde(flatten)]
    hello: ClientHello,
}

/// Members of a client's handshake that later requests need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    #[serde(rename = "p")]
    protocol: String,
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "v")]
    version: String,
    /// Elicitation modes that the client declared.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    elicitation: Option<ElicitationModes>,
}

/// Declared ways of elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ElicitationModes {
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    form: bool,
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    url: bool,
}

/// Seals and opens session ids, with an HMAC key that is read once.
#[derive(Default)]
pub(crate) struct IdSealer(OnceCell<Hmac<Sha256>>);

// === impl SessionSeal ===

impl SessionSeal {
    pub(crate) fn new(key: &str, opened_at: i64, owner: &Caller, hello: ClientHello) -> Self {
        Self { key: key.to_owned(), opened_at, owner: digest(owner), hello }
    }

    /// True when `caller` opened the session.
    pub(crate) fn belongs_to(&self, caller: &Caller) -> bool {
        self.owner == digest(caller)
    }

    /// Handshake to replay in a process that does not hold the session.
    pub(crate) fn handshake(&self) -> InitializeRequestParams {
        self.hello.handshake()
    }
}

// === impl ClientHello ===

impl ClientHello {
    /// Copies the members that are kept, each with a size limit.
    pub(crate) fn new(params: &InitializeRequestParams) -> Self {
        let elicitation = params.capabilities.elicitation.as_ref();
        let modes = |asks: &ElicitationCapability| ElicitationModes {
            form: asks.form.is_some(),
            url: asks.url.is_some(),
        };
        Self {
            protocol: truncate(params.protocol_version.as_str(), MAX_VERSION_BYTES),
            name: truncate(&params.client_info.name, MAX_NAME_BYTES),
            version: truncate(&params.client_info.version, MAX_NAME_BYTES),
            elicitation: elicitation.map(modes),
        }
    }

    fn handshake(&self) -> InitializeRequestParams {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.elicitation.map(|modes| {
            let mut declared = ElicitationCapability::default();
            declared.form = modes.form.then(Default::default);
            declared.url = modes.url.then(Default::default);
            declared
        });
        let client = Implementation::new(self.name.clone(), self.version.clone());
        let protocol = serde_json::from_value::<ProtocolVersion>(self.protocol.clone().into());
        InitializeRequestParams::new(capabilities, client)
            .with_protocol_version(protocol.unwrap_or(ProtocolVersion::V_2025_03_26))
    }
}

// === impl IdSealer ===

impl IdSealer {
    /// Makes the id that a client gets.
    pub(crate) async fn seal(&self, engine: &Engine, seal: &SessionSeal) -> Result<String, Failure> {
        let text = serde_json::to_vec(seal)
            .map_err(|_| Failure::new(FailureKind::Internal, "the id of the session could not be written"))?;
        Ok(encode(self.key(engine).await?, &text))
    }

    /// Opens an id that a client sent; none if it was not issued here.
    pub(crate) async fn open(&self, engine: &Engine, id: &str) -> Result<Option<SessionSeal>, Failure> {
        Ok(decode(self.key(engine).await?, id))
    }

    async fn key(&self, engine: &Engine) -> Result<&Hmac<Sha256>, Failure> {
        let read = async || {
            let seed = engine.seeds().get(KEY_NAME).await?;
            let invalid =
                |_| Failure::new(FailureKind::Internal, "the key of session ids in the store is invalid");
            Hmac::new_from_slice(&seed).map_err(invalid)
        };
        self.0.get_or_try_init(read).await
    }
}

fn encode(key: &Hmac<Sha256>, text: &[u8]) -> String {
    let code = key.clone().chain_update(text).finalize().into_bytes();
    format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(text), BASE64_URL_SAFE_NO_PAD.encode(code))
}

fn decode(key: &Hmac<Sha256>, id: &str) -> Option<SessionSeal> {
    if id.len() > MAX_ID_BYTES {
        return None;
    }
    let (text, code) = id.split_once('.')?;
    let text = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let code = BASE64_URL_SAFE_NO_PAD.decode(code).ok()?;
    key.clone().chain_update(&text).verify_slice(&code).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Digest of everything that identifies a caller, without request-specific data.
fn digest(caller: &Caller) -> String {
    let text = serde_json::to_vec(caller).unwrap_or_default();
    let digest = Sha256::digest(text);
    BASE64_URL_SAFE_NO_PAD.encode(digest.get(..DIGEST_BYTES).unwrap_or_default())
}

/// Start of a text, without control characters: those are six bytes each in JSON.
fn truncate(text: &str, max_bytes: usize) -> String {
    let mut kept: String = text.chars().filter(|letter| !letter.is_control()).take(max_bytes).collect();
    kept.truncate(kept.floor_char_boundary(max_bytes));
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hello(params: Value) -> ClientHello {
        ClientHello::new(&serde_json::from_value(params).unwrap())
    }

    fn handshake(name: &str, elicitation: &Value) -> Value {
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": elicitation,
            "clientInfo": { "name": name, "version": "1.2.3" }
        })
    }

    fn key(byte: u8) -> Hmac<Sha256> {
        Hmac::new_from_slice(&[byte; 32]).unwrap()
    }

    #[test]
    fn an_id_opens_to_the_state_it_was_made_of() {
        for declared in
            [json!({}), json!({ "elicitation": {} }), json!({ "elicitation": { "form": {}, "url": {} } })]
        {
            let params = handshake("claude-code", &declared);
            let seal = SessionSeal::new("key", 7, &Caller::user("ann"), hello(params.clone()));
            let id = encode(&key(7), &serde_json::to_vec(&seal).unwrap());
            assert!(id.len() < 400, "{}", id.len());
            let opened = decode(&key(7), &id).unwrap();
            assert_eq!(opened, seal);
            assert_eq!(serde_json::to_value(opened.handshake()).unwrap(), params);
            assert!(opened.belongs_to(&Caller::user("ann")));
            assert!(!opened.belongs_to(&Caller::user("bob")));
            assert_eq!(decode(&key(8), &id), None, "another key");
        }
    }

    #[test]
    fn an_id_that_was_changed_anywhere_does_not_open() {
        let seal = SessionSeal::new("key", 7, &Caller::user("ann"), hello(handshake("c", &json!({}))));
        let id = encode(&key(7), &serde_json::to_vec(&seal).unwrap());
        for at in 0..id.len() {
            let mut bent = id.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(decode(&key(7), &String::from_utf8(bent).unwrap()), None, "{at}");
        }
        for bent in ["", ".", "key", &id.replace('.', ""), &format!("{id}A")] {
            assert_eq!(decode(&key(7), bent), None, "{bent}");
        }
    }

    #[test]
    fn an_id_is_bounded_whatever_a_client_calls_itself() {
        for letter in ["ü", "\"", "\u{1}", "\u{1f600}"] {
            let long = letter.repeat(5_000);
            let params = json!({
                "protocolVersion": long,
                "capabilities": { "experimental": { "x": { "y": long } } },
                "clientInfo": { "name": long, "version": long }
            });
            let seal = SessionSeal::new(&"k".repeat(36), i64::MAX, &Caller::user("ann"), hello(params));
            let id = encode(&key(7), &serde_json::to_vec(&seal).unwrap());
            assert_eq!(decode(&key(7), &id), Some(seal), "{} bytes", id.len());
        }
    }
}
