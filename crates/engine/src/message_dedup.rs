//! Deduplicates messages by content hash within a caller.
//!
//! A message id alone does not identify a message: clients number their messages anew, or send one message to several agents. A message is
//! a duplicate when its caller, its target, its id and the hash of its content are those of an earlier one. The hash is taken of the message as it
//! was sent, before redaction, and stored with it. While several processes share the store, a message is also claimed there, so
//! that it is one task even when two processes receive it at once.

use std::{collections::BTreeMap, time::Duration};

use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::Failure,
    ids::TaskId,
    json::Json,
    message::{Content, ContentHash, Message, Part, Role},
    store::MessageClaim,
    task::{Task, TaskHead},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::{
    conversation::{Talk, number_of},
    engine::{Engine, store_failure},
    request::Request,
    store_failure::read_failure,
};

/// How long a process may take from claiming a message to writing down its task, before the claim counts as abandoned.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two looks for the task of a message that another process has claimed.
const CLAIM_POLL: Duration = Duration::from_millis(10);

/// Outcome of claiming a message.
pub(crate) enum MessageClaimOutcome {
    /// This process may begin the task; no other process shares the store, or the claim is made.
    Ours(Option<Box<MessageClaim>>),
    /// Another process has begun this task with the same message.
    Duplicate(TaskId),
}

// === impl Engine ===

impl Engine {
    /// Whether a message was said in a task before.
    pub async fn heard(&self, task: &Task, said: &Message) -> bool {
        if let Some(is_heard) = is_heard_in(task, said, &hash_parts(&said.parts)) {
            return is_heard;
        }
        // What is said to an approval is not kept as it was said.
        let caller = Caller { scope: task.head.scope.clone(), ..Caller::user(task.head.caller.as_str()) };
        match self.inner().messages.known(&caller, &said.id) {
            Some(slot) => slot.lock().await.contains(&task.head.id),
            None => false,
        }
    }

    /// The task that its client, one of A2A 0.1, gave that name: the newest.
    pub async fn named_task(&self, caller: &Caller, name: &str) -> Result<Option<Task>, Failure> {
        let mut heads = Vec::new();
        if let Some(slot) = self.inner().messages.known(caller, name) {
            for id in slot.lock().await.iter() {
                heads.extend(self.head(caller, id.as_str()).await?);
            }
        }
        if heads.is_empty() || self.may_be_seen(number_of(caller, name)).await? {
            heads.extend(self.namesakes(caller, name).await?);
        }
        let named = heads.into_iter().filter(|head| head.door == EntryProtocol::A2aFirst);
        match named.max_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id))) {
            Some(head) => self.inner().journal.read(head).await.map(Some).map_err(read_failure),
            None => Ok(None),
        }
    }

    /// A caller's task under our own id for it, as it stands in the journal. Nobody is asked about it.
    pub async fn look_by_id(&self, caller: &Caller, id: &str) -> Result<Option<Task>, Failure> {
        match self.head(caller, id).await? {
            Some(head) => self.inner().journal.read(head).await.map(Some).map_err(read_failure),
            None => Ok(None),
        }
    }

    /// The task that the same message began or went to before, if there is one. `known` are those of its name that are
    /// remembered; a new message has none, and is seldom looked for in the store.
    pub(crate) async fn came_before(
        &self,
        request: &Request,
        talk: &Talk,
        known: &mut Vec<TaskId>,
    ) -> Result<Option<TaskId>, Failure> {
        let (caller, said) = (&request.caller, &talk.spoken.message);
        let hash = talk.hash();
        if let Some(id) = &request.task {
            let task = self.own_task(caller, id).await?;
            return Ok((is_heard_in(&task, said, &hash) == Some(true)).then_some(task.head.id));
        }
        for id in known.iter().rev() {
            if let Some(task) = self.look_by_id(caller, id.as_str()).await?
                && began(&task, request, &hash)
            {
                return Ok(Some(task.head.id));
            }
        }
        if !self.may_be_seen(number_of(caller, &said.id)).await? {
            return Ok(None);
        }
        for head in self.namesakes(caller, &said.id).await? {
            if known.contains(&head.id) {
                continue;
            }
            let task = self.inner().journal.read(head).await.map_err(read_failure)?;
            if began(&task, request, &hash) {
                known.push(task.head.id.clone());
                return Ok(Some(task.head.id));
            }
        }
        Ok(None)
    }

    /// Claims a message for a task that this process is about to begin or continue, if others share the store.
    pub(crate) async fn claim_message(
        &self,
        request: &Request,
        talk: &Talk,
        task: &TaskId,
    ) -> Result<MessageClaimOutcome, Failure> {
        if self.is_alone() {
            return Ok(MessageClaimOutcome::Ours(None));
        }
        let (store, clock) = (&self.inner().store, &self.inner().journal);
        let (said, hash) = (&talk.spoken.message, talk.hash());
        let claim = MessageClaim {
            key: claim_key(request, said, &hash),
            task: task.clone(),
            runner: self.attend().await?,
            at: clock.now(),
        };
        let until = Instant::now() + CLAIM_PATIENCE;
        loop {
            let Some(other) = store.claim_message(&claim).await.map_err(store_failure)? else {
                return Ok(MessageClaimOutcome::Ours(Some(Box::new(claim))));
            };
            let is_begun = match &request.task {
                Some(id) => {
                    let task = self.own_task(&request.caller, id).await?;
                    is_heard_in(&task, said, &hash) == Some(true)
                }
                None => self.head(&request.caller, other.task.as_str()).await?.is_some(),
            };
            if is_begun {
                return Ok(MessageClaimOutcome::Duplicate(other.task));
            }
            let is_abandoned = Instant::now() >= until
                || !store.is_process_alive(other.runner, clock.now()).await.map_err(store_failure)?;
            if is_abandoned {
                store.release_message(&other).await.map_err(store_failure)?;
            } else {
                sleep(CLAIM_POLL).await;
            }
        }
    }

    async fn namesakes(&self, caller: &Caller, message: &str) -> Result<Vec<TaskHead>, Failure> {
        let found = self.inner().store.tasks_by_message(&caller.scope, &caller.id, message).await;
        found.map_err(store_failure)
    }

    /// What is known of a caller's task with that id of ours.
    async fn head(&self, caller: &Caller, id: &str) -> Result<Option<TaskHead>, Failure> {
        let head = self.inner().store.task(&caller.scope, id).await.map_err(store_failure)?;
        Ok(head.filter(|head| head.id.as_str() == id && head.caller == caller.id))
    }
}

/// Whether a task began with this message, for the same target.
fn began(task: &Task, request: &Request, hash: &ContentHash) -> bool {
    let (head, target) = (&task.head, &request.target);
    let is_same_target = (head.agent == target.agent.id || head.agent_url == target.agent.url)
        && head.skill.as_ref() == target.skill.as_ref().map(|skill| &skill.id);
    // A caller that left the choice to us meant the agent that was chosen before.
    let is_chosen_here = request.id.is_some();
    let is_same_content = message_hashes(task).first() == Some(hash);
    (is_same_target || is_chosen_here) && is_same_content
}

/// Whether a message is in a task, if any with its id is.
fn is_heard_in(task: &Task, said: &Message, hash: &ContentHash) -> Option<bool> {
    let mut hashed = task.received.iter().filter(|(id, _)| *id == said.id).peekable();
    if hashed.peek().is_some() {
        return Some(hashed.any(|(_, known)| known == hash));
    }
    // Written by a version that stored no hashes.
    let mut namesakes = messages_in(task).filter(|heard| heard.id == said.id).peekable();
    namesakes.peek()?;
    Some(namesakes.any(|heard| hash_parts(&heard.parts) == *hash))
}

/// Hashes of the caller's messages in a task, the first message first.
pub fn message_hashes(task: &Task) -> Vec<ContentHash> {
    if task.received.is_empty() {
        // Written by a version that stored no hashes.
        return messages_in(task).map(|message| hash_parts(&message.parts)).collect();
    }
    task.received.iter().map(|(_, hash)| hash.clone()).collect()
}

/// The caller's messages in a task.
fn messages_in(task: &Task) -> impl Iterator<Item = &Message> {
    task.history.iter().filter(|message| message.role != Role::Agent)
}

/// Key under which a message is claimed: what makes it a duplicate of another one.
fn claim_key(request: &Request, said: &Message, hash: &ContentHash) -> String {
    let mut hasher = ContentHasher::default();
    let Caller { scope, id, .. } = &request.caller;
    for text in [scope.org.as_str(), scope.project.as_str(), id.as_str(), &said.id] {
        hasher.text(text);
    }
    hasher.text(request.task.as_deref().unwrap_or_default());
    if request.task.is_none() && request.id.is_none() {
        hasher.text(request.target.agent.id.as_str());
        hasher.text(request.target.skill_id());
    }
    hasher.text(hash.as_str());
    hasher.finish()
}

/// Hash of what a message says. The order of an object's members and white space do not count; every digit of a number does.
pub fn hash_parts(parts: &[Part]) -> ContentHash {
    let mut hasher = ContentHasher::default();
    for part in parts {
        match &part.content {
            Content::Text(text) => hasher.tagged(b't', text),
            Content::Raw(base64) => hasher.tagged(b'r', base64),
            Content::Url(url) => hasher.tagged(b'u', url),
            Content::Data(data) => hasher.json(b'd', data),
            Content::Unknown(data) => hasher.json(b'x', data),
        }
        hasher.text(part.filename.as_deref().unwrap_or_default());
        hasher.text(part.media_type.as_deref().unwrap_or_default());
    }
    ContentHash::new(hasher.finish())
}

/// SHA-256 over values that are told apart by their kind and length.
#[derive(Default)]
struct ContentHasher(Sha256);

// === impl Hasher ===

impl ContentHasher {
    fn tagged(&mut self, tag: u8, text: &str) {
        self.0.update([tag]);
        self.text(text);
    }

    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }

    fn json(&mut self, tag: u8, json: &Json) {
        self.0.update([tag]);
        match json.read::<Box<RawValue>>() {
            Ok(raw) => self.value(&raw),
            Err(_) => self.text(json.get()),
        }
    }

    fn value(&mut self, raw: &RawValue) {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) => {
                self.0.update([b'{']);
                for (name, value) in members {
                    self.tagged(b'n', &name);
                    self.value(value);
                }
                self.0.update([b'}']);
            }
            Some(b'[') if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) => {
                self.0.update([b'[']);
                items.into_iter().for_each(|item| self.value(item));
                self.0.update([b']']);
            }
            Some(b'"') if let Ok(string) = serde_json::from_str::<String>(text) => self.tagged(b's', &string),
            _ => self.tagged(b'v', text),
        }
    }

    fn finish(self) -> String {
        self.0.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(text: &str) -> Vec<Part> {
        vec![Part::data(Json::parse(text).unwrap())]
    }

    fn text(text: &str) -> Vec<Part> {
        vec![Part::text(text)]
    }

    fn is_same(one: &[Part], other: &[Part]) -> bool {
        hash_parts(one) == hash_parts(other)
    }

    #[test]
    fn other_content_is_another_message() {
        assert!(is_same(&text("hello"), &text("hello")));
        assert!(!is_same(&text("hello"), &text("hello you")));
        assert!(!is_same(&text("hello"), &[text("hello"), text("you")].concat()));
        assert!(!is_same(&text("{}"), &data("{}")));
        assert!(!is_same(&data(r#"{"n":1}"#), &data(r#"{"n":2}"#)));
        assert!(!is_same(&data("12345678901234567890"), &data("12345678901234567891")));
        assert!(is_same(&data(r#"{"n":1,"m":2}"#), &data(r#"{ "m": 2, "n": 1 }"#)));
        assert!(!is_same(&data(r#"{"a":"x","b":[1]}"#), &data(r#"{"a":"x","b":[[1]]}"#)));
    }

    #[test]
    fn words_in_brackets_are_words() {
        let messages = ["deploy [staging] now", "deploy [production] now", "deploy staging now"];
        for (at, one) in messages.iter().enumerate() {
            for other in &messages[at + 1..] {
                assert!(!is_same(&text(one), &text(other)), "{one}: {other}");
            }
        }
    }

    proptest! {
        #[test]
        fn two_different_messages_are_never_the_same(
            one in "[a-z\\[\\]{}\": ]{0,12}",
            other in "[a-z\\[\\]{}\": ]{0,12}",
            is_data in any::<bool>(),
        ) {
            let parts = |words: &str| if is_data {
                vec![Part::data(Json::encode(&serde_json::json!({ "message": words })))]
            } else {
                text(words)
            };
            prop_assert_eq!(is_same(&parts(&one), &parts(&other)), one == other);
        }

        #[test]
        fn a_message_split_into_other_parts_is_another_one(one in "[a-z]{1,6}", other in "[a-z]{1,6}") {
            let joined = text(&format!("{one}{other}"));
            prop_assert!(!is_same(&[text(&one), text(&other)].concat(), &joined));
        }
    }
}
