//! Sealed state that a client returns with its answers: identifies the questions they belong to.
//!
//! The state is not secret but sealed: an HMAC over the state, the caller, its org and project, and the tool. So a client cannot change
//! it, and it is invalid for another caller or another tool. The key is in the store, so it is valid for every process of that store,
//! and after a restart.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use rialto_engine::Engine;
use rialto_model::{
    call::{CallTarget, Caller},
    failure::{Failure, FailureKind},
    task::Task,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::OnceCell;

/// Name of the HMAC key in the store.
const KEY_NAME: &str = "mcp request state";

/// The question, and the answers received so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QuestionState {
    /// Rialto's id of the task.
    #[serde(rename = "t")]
    pub(super) task: String,
    /// Number of events of the task when it asked.
    #[serde(rename = "v")]
    pub(super) version: u64,
    /// Expiry, in seconds since 1970.
    #[serde(rename = "e")]
    pub(super) until: i64,
    /// True when the task waits for a login, which it may notice by itself.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_login: bool,
    /// Answers received so far.
    #[serde(rename = "g", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) given: BTreeMap<String, Value>,
}

/// Caller and tool that a state is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateBinding<'a>([&'a str; 5]);

/// Seals states with an HMAC key that is read once.
#[derive(Default)]
pub(crate) struct StateSealer(OnceCell<Hmac<Sha256>>);

// === impl StateBinding ===

impl<'a> StateBinding<'a> {
    /// Binding to the caller and the tool of a task.
    pub(super) fn of(task: &'a Task) -> Self {
        let head = &task.head;
        let skill = head.skill.as_ref().map_or("", |skill| skill.as_str());
        let (org, project) = (head.scope.org.as_str(), head.scope.project.as_str());
        Self([org, project, head.caller.as_str(), head.agent.as_str(), skill])
    }

    /// Binding to a caller and the tool that it calls.
    pub(super) fn to(caller: &'a Caller, target: &'a CallTarget) -> Self {
        let (org, project) = (caller.scope.org.as_str(), caller.scope.project.as_str());
        Self([org, project, caller.id.as_str(), target.agent.id.as_str(), target.skill_id()])
    }
}

// === impl StateSealer ===

impl StateSealer {
    /// Seals a state for a client.
    pub(super) async fn seal(
        &self,
        engine: &Engine,
        state: &QuestionState,
        binding: StateBinding<'_>,
    ) -> Result<String, Failure> {
        let text = serde_json::to_vec(state).map_err(|_| {
            Failure::new(FailureKind::Internal, "the state of the question could not be written")
        })?;
        let code = code(self.key(engine).await?, binding, &text).finalize().into_bytes();
        Ok(format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(code)))
    }

    /// Verifies and decodes a state that a client returned.
    pub(super) async fn open(
        &self,
        engine: &Engine,
        sealed: &str,
        binding: StateBinding<'_>,
    ) -> Result<QuestionState, Failure> {
        let key = self.key(engine).await?;
        let state = opened(key, sealed, binding).ok_or_else(|| {
            let message = "this requestState is not one that was given to this caller for this tool, or it was changed; send \
                           back exactly what the tool's last result said, or call the tool anew without it";
            Failure::new(FailureKind::Invalid, message)
        })?;
        if engine.now().as_second() >= state.until {
            let message = format!(
                "this requestState has expired; call the tool anew without it, or answer with send_message and task_id {}",
                state.task
            );
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        Ok(state)
    }

    async fn key(&self, engine: &Engine) -> Result<&Hmac<Sha256>, Failure> {
        self.0
            .get_or_try_init(async || {
                let seed = engine.seeds().get(KEY_NAME).await?;
                Hmac::new_from_slice(&seed)
                    .map_err(|_| Failure::new(FailureKind::Internal, "the key is no key"))
            })
            .await
    }
}

fn opened(key: &Hmac<Sha256>, sealed: &str, binding: StateBinding<'_>) -> Option<QuestionState> {
    let (text, given) = sealed.split_once('.')?;
    let text = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let given = BASE64_URL_SAFE_NO_PAD.decode(given).ok()?;
    code(key, binding, &text).verify_slice(&given).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Each part is preceded by its length, so that no part can extend into the next.
fn code(key: &Hmac<Sha256>, binding: StateBinding<'_>, text: &[u8]) -> Hmac<Sha256> {
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

    fn state() -> QuestionState {
        QuestionState { task: "task_1".into(), version: 3, until: 9, is_login: false, given: BTreeMap::new() }
    }

    fn sealed(key: &Hmac<Sha256>, binding: StateBinding<'_>) -> String {
        let text = serde_json::to_vec(&state()).unwrap();
        let code = code(key, binding, &text).finalize().into_bytes();
        format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(code))
    }

    #[test]
    fn a_state_opens_for_the_same_caller_and_tool_only() {
        let key = Hmac::new_from_slice(&[7; 32]).unwrap();
        let mine = StateBinding(["acme", "web", "ann", "agt_1", "ask"]);
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
            assert_eq!(opened(&key, &text, StateBinding(other)), None, "{other:?}");
        }
        assert_eq!(opened(&Hmac::new_from_slice(&[8; 32]).unwrap(), &text, mine), None, "another key");
    }

    #[test]
    fn a_state_that_was_touched_anywhere_does_not_open() {
        let key = Hmac::new_from_slice(&[7; 32]).unwrap();
        let mine = StateBinding(["acme", "web", "ann", "agt_1", "ask"]);
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
