//! What a client brings back with its answers: which question they are for.
//!
//! It is not secret, but it is sealed: a code over the state, the caller, its org and project, and the tool. So nobody can
//! change it, and it is worth nothing to another caller or for another tool. The key is in the store, so it holds for every
//! process of that store, and after a restart.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use rialto_engine::Engine;
use rialto_model::{
    call::{Caller, Target},
    failure::{Failure, Kind},
    task::Task,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::OnceCell;

/// The name of the key.
const KEY: &str = "mcp request state";

/// Which question it was, and what is known of its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Our id of the task.
    #[serde(rename = "t")]
    pub(super) task: String,
    /// How many events the task had when it asked.
    #[serde(rename = "v")]
    pub(super) version: u64,
    /// The second since 1970 from which on it is too late.
    #[serde(rename = "e")]
    pub(super) until: i64,
    /// Whether the task waits for a login, which it may notice by itself.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_login: bool,
    /// Those answers that are there already.
    #[serde(rename = "g", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) given: BTreeMap<String, Value>,
}

/// What a state is bound to beside itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding<'a>([&'a str; 5]);

/// Seals states, with a key that is read once.
#[derive(Default)]
pub(crate) struct Seals(OnceCell<Hmac<Sha256>>);

// === impl Binding ===

impl<'a> Binding<'a> {
    /// The caller and the tool of a task.
    pub(super) fn of(task: &'a Task) -> Self {
        let head = &task.head;
        let skill = head.skill.as_ref().map_or("", |skill| skill.as_str());
        let (org, project) = (head.scope.org.as_str(), head.scope.project.as_str());
        Self([org, project, head.caller.as_str(), head.agent.as_str(), skill])
    }

    /// A caller and the tool it calls.
    pub(super) fn to(caller: &'a Caller, target: &'a Target) -> Self {
        let (org, project) = (caller.scope.org.as_str(), caller.scope.project.as_str());
        Self([org, project, caller.id.as_str(), target.agent.id.as_str(), target.skill_id()])
    }
}

// === impl Seals ===

impl Seals {
    /// The state as a client may have it.
    pub(super) async fn seal(
        &self,
        engine: &Engine,
        state: &State,
        binding: Binding<'_>,
    ) -> Result<String, Failure> {
        let text = serde_json::to_vec(state)
            .map_err(|_| Failure::new(Kind::Internal, "the state of the question could not be written"))?;
        let code = code(self.key(engine).await?, binding, &text).finalize().into_bytes();
        Ok(format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(code)))
    }

    /// The state that a client brought back.
    pub(super) async fn open(
        &self,
        engine: &Engine,
        sealed: &str,
        binding: Binding<'_>,
    ) -> Result<State, Failure> {
        let key = self.key(engine).await?;
        let state = opened(key, sealed, binding).ok_or_else(|| {
            let message = "this requestState is not one that was given to this caller for this tool, or it was changed; send \
                           back exactly what the tool's last result said, or call the tool anew without it";
            Failure::new(Kind::Invalid, message)
        })?;
        if engine.now().as_second() >= state.until {
            let message = format!(
                "this requestState has expired; call the tool anew without it, or answer with send_message and task_id {}",
                state.task
            );
            return Err(Failure::new(Kind::Invalid, message));
        }
        Ok(state)
    }

    async fn key(&self, engine: &Engine) -> Result<&Hmac<Sha256>, Failure> {
        self.0
            .get_or_try_init(async || {
                let seed = engine.seed(KEY).await?;
                Hmac::new_from_slice(&seed).map_err(|_| Failure::new(Kind::Internal, "the key is no key"))
            })
            .await
    }
}

fn opened(key: &Hmac<Sha256>, sealed: &str, binding: Binding<'_>) -> Option<State> {
    let (text, given) = sealed.split_once('.')?;
    let text = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let given = BASE64_URL_SAFE_NO_PAD.decode(given).ok()?;
    code(key, binding, &text).verify_slice(&given).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Each piece with its length before it, so that none can end in another place.
fn code(key: &Hmac<Sha256>, binding: Binding<'_>, text: &[u8]) -> Hmac<Sha256> {
    let mut mac = key.clone();
    for piece in binding.0.iter().map(|piece| piece.as_bytes()).chain([text]) {
        mac.update(&(piece.len() as u64).to_be_bytes());
        mac.update(piece);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State { task: "task_1".into(), version: 3, until: 9, is_login: false, given: BTreeMap::new() }
    }

    fn sealed(key: &Hmac<Sha256>, binding: Binding<'_>) -> String {
        let text = serde_json::to_vec(&state()).unwrap();
        let code = code(key, binding, &text).finalize().into_bytes();
        format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(code))
    }

    #[test]
    fn a_state_opens_for_the_same_caller_and_tool_only() {
        let key = Hmac::new_from_slice(&[7; 32]).unwrap();
        let mine = Binding(["acme", "web", "ann", "agt_1", "ask"]);
        let text = sealed(&key, mine);
        assert_eq!(opened(&key, &text, mine), Some(state()));
        for other in [
            ["acme", "web", "bob", "agt_1", "ask"],
            ["other", "web", "ann", "agt_1", "ask"],
            ["acme", "other", "ann", "agt_1", "ask"],
            ["acme", "web", "ann", "agt_2", "ask"],
            ["acme", "web", "ann", "agt_1", "other"],
            ["acm", "eweb", "ann", "agt_1", "ask"],
        ] {
            assert_eq!(opened(&key, &text, Binding(other)), None, "{other:?}");
        }
        assert_eq!(opened(&Hmac::new_from_slice(&[8; 32]).unwrap(), &text, mine), None, "another key");
    }

    #[test]
    fn a_state_that_was_touched_anywhere_does_not_open() {
        let key = Hmac::new_from_slice(&[7; 32]).unwrap();
        let mine = Binding(["acme", "web", "ann", "agt_1", "ask"]);
        let text = sealed(&key, mine);
        for at in 0..text.len() {
            let mut bent = text.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).unwrap();
            assert_eq!(opened(&key, &bent, mine), None, "{at}");
        }
        for bent in ["", ".", "a.b", &format!("{text}-TAMPERED"), &text.replace('.', "")] {
            assert_eq!(opened(&key, bent, mine), None, "{bent}");
        }
    }
}
