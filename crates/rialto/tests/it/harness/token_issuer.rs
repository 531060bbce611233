//! An issuer inside the test: it signs tokens for callers, and gives others for them.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    routing::{get, post},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

const KEY: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../http-server/tests/it/keys/es256.pem"));

/// What stands for a moment that no test lives to see, in seconds.
const LATER: u64 = 4_000_000_000;

/// An issuer that answers as long as this lives.
pub(crate) struct TokenIssuer {
    /// Its address.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Dropped, it takes the server with it.
    _runtime: Runtime,
}

// === impl TokenIssuer ===

impl TokenIssuer {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new()
            .route("/keys", get(keys))
            .route("/token", post(exchange))
            .with_state(Arc::clone(&asked));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked, _runtime: runtime }
    }

    /// How it is trusted, as `rialto.toml` has it.
    pub(crate) fn trust(&self) -> String {
        let url = &self.url;
        format!(
            "issuers = [{{ issuer = \"{url}\", jwks_url = \"{url}/keys\", audience = \"rialto\", allow_private = true }}]"
        )
    }

    /// A token for a caller who may call.
    pub(crate) fn sign(&self, caller: &str) -> String {
        let claims =
            json!({ "iss": self.url, "aud": "rialto", "sub": caller, "exp": LATER, "scope": "call" });
        let header = Header { kid: Some("k".to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, &claims, &EncodingKey::from_ec_pem(KEY).unwrap()).unwrap()
    }

    /// What it was asked to give other tokens for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn keys() -> Json<Value> {
    let mut key = Jwk::from_encoding_key(&EncodingKey::from_ec_pem(KEY).unwrap(), Algorithm::ES256).unwrap();
    (key.common.key_id, key.common.key_algorithm) = (Some("k".to_owned()), None);
    Json(json!({ "keys": [key] }))
}

/// Gives the first token it is asked for a number, and so on.
async fn exchange(State(asked): State<Arc<Mutex<Vec<String>>>>, body: String) -> Json<Value> {
    let mut asked = asked.lock().unwrap();
    asked.push(body);
    Json(
        json!({ "access_token": format!("given-{}", asked.len()), "token_type": "Bearer", "expires_in": 600 }),
    )
}
