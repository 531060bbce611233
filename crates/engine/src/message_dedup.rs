//! Deduplicates messages by content hash within a caller.
//!
//! A message id alone does not identify a message: clients number their messages anew, or send one message to several agents. A message is
//! a duplicate when its caller, its target, its id and the hash of its content are those of an earlier one. The hash is taken of the message as it
//! was sent, before redaction, and stored with it. While several processes share the store, a message is also claimed there, so
//! that it is one task even when two processes receive it at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::Failure,
    ids::TaskId,
    json::Json,
    message::{Content, ContentHash, Message, Part, Role},
    store::{MessageClaim, Store},
    task::{Task, TaskHead},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::{
    conversation::ConversationMessage,
    journal::TaskJournal,
    process_lease::ProcessLease,
    recent_messages::{RecentMessages, message_number},
    registry::Registry,
    request::CallRequest,
    seen_messages::SeenMessages,
    store_failure::{read_failure, store_failure},
    task_service::TaskService,
};

/// Time in which a process must store the task of a message that it has claimed, before the claim counts as abandoned.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of polls for the task of a message that another process has claimed.
const CLAIM_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Outcome of claiming a message.
pub(crate) enum MessageClaimOutcome {
    /// This process may begin the task; no other process shares the store, or the claim is made.
    Ours(Option<Box<MessageClaim>>),
    /// Another process has begun this task with the same message.
    Duplicate(TaskId),
}

/// Deduplication of messages, and search for tasks by message.
pub struct MessageDedup {
    pub(crate) store: Arc<dyn Store>,
    journal: TaskJournal,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lease: Arc<ProcessLease>,
    tasks: Arc<TaskService>,
    /// Messages that started tasks in this process.
    pub(crate) recent: RecentMessages,
    /// Messages that may be in the store.
    pub(crate) seen: SeenMessages,
}

// === impl MessageDedup ===

impl MessageDedup {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        registry: Arc<Registry>,
        lease: Arc<ProcessLease>,
        (tasks, journal): (Arc<TaskService>, TaskJournal),
    ) -> Self {
        let (recent, seen) = (RecentMessages::default(), SeenMessages::default());
        Self { store, journal, registry, lease, tasks, recent, seen }
    }

    /// True if a task has received this message before.
    pub async fn is_in_task(&self, task: &Task, said: &Message) -> bool {
        if let Some(is_received) = is_received_in(task, said, &hash_parts(&said.parts)) {
            return is_received;
        }
        // A message to an approval is not stored as it was sent.
        let caller = Caller { scope: task.head.scope.clone(), ..Caller::user(task.head.caller.as_str()) };
        match self.recent.find(&caller, &said.id) {
            Some(slot) => slot.lock().await.contains(&task.head.id),
            None => false,
        }
    }

    /// Finds the task that its client, one of A2A 0.1, gave that name: the newest.
    pub async fn find_named_task(&self, caller: &Caller, name: &str) -> Result<Option<Task>, Failure> {
        let mut heads = Vec::new();
        if let Some(slot) = self.recent.find(caller, name) {
            for id in slot.lock().await.iter() {
                heads.extend(self.tasks.find_head(caller, id.as_str()).await?);
            }
        }
        if heads.is_empty() || self.may_be_stored(message_number(caller, name)).await? {
            heads.extend(self.find_by_message_id(caller, name).await?);
        }
        let named = heads.into_iter().filter(|head| head.door == EntryProtocol::A2aFirst);
        match named.max_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id))) {
            Some(head) => self.journal.read(head).await.map(Some).map_err(read_failure),
            None => Ok(None),
        }
    }

    /// Finds the task that this message started or continued before. `known` are the remembered tasks of its id; a new message has none,
    /// and is seldom looked up in the store.
    pub(crate) async fn find_duplicate(
        &self,
        request: &CallRequest,
        conversation: &ConversationMessage,
        known: &mut Vec<TaskId>,
    ) -> Result<Option<TaskId>, Failure> {
        let (caller, said) = (&request.caller, &conversation.spoken.message);
        let hash = conversation.hash();
        if let Some(id) = &request.task {
            let task = self.tasks.read(caller, id).await?;
            return Ok((is_received_in(&task, said, &hash) == Some(true)).then_some(task.head.id));
        }
        for id in known.iter().rev() {
            if let Some(task) = self.tasks.find_by_id(caller, id.as_str()).await?
                && was_started_by(&task, request, &hash)
            {
                return Ok(Some(task.head.id));
            }
        }
        if !self.may_be_stored(message_number(caller, &said.id)).await? {
            return Ok(None);
        }
        for head in self.find_by_message_id(caller, &said.id).await? {
            if known.contains(&head.id) {
                continue;
            }
            let task = self.journal.read(head).await.map_err(read_failure)?;
            if was_started_by(&task, request, &hash) {
                known.push(task.head.id.clone());
                return Ok(Some(task.head.id));
            }
        }
        Ok(None)
    }

    /// Claims a message for a task that this process is about to start or continue, if others share the store.
    pub(crate) async fn claim(
        &self,
        request: &CallRequest,
        conversation: &ConversationMessage,
        task: &TaskId,
    ) -> Result<MessageClaimOutcome, Failure> {
        if self.is_alone() {
            return Ok(MessageClaimOutcome::Ours(None));
        }
        let store = &self.store;
        let (said, hash) = (&conversation.spoken.message, conversation.hash());
        let claim = MessageClaim {
            key: claim_key(request, said, &hash),
            task: task.clone(),
            runner: self.lease.ensure_registered().await?,
            at: self.journal.now(),
        };
        let until = Instant::now() + CLAIM_TIMEOUT;
        loop {
            let Some(other) = store.claim_message(&claim).await.map_err(store_failure)? else {
                return Ok(MessageClaimOutcome::Ours(Some(Box::new(claim))));
            };
            let is_begun = match &request.task {
                Some(id) => {
                    let task = self.tasks.read(&request.caller, id).await?;
                    is_received_in(&task, said, &hash) == Some(true)
                }
                None => self.tasks.find_head(&request.caller, other.task.as_str()).await?.is_some(),
            };
            if is_begun {
                return Ok(MessageClaimOutcome::Duplicate(other.task));
            }
            let is_abandoned = Instant::now() >= until
                || !store.is_process_alive(other.runner, self.journal.now()).await.map_err(store_failure)?;
            if is_abandoned {
                store.release_message(&other).await.map_err(store_failure)?;
            } else {
                sleep(CLAIM_POLL_INTERVAL).await;
            }
        }
    }

    async fn find_by_message_id(&self, caller: &Caller, message: &str) -> Result<Vec<TaskHead>, Failure> {
        let found = self.store.tasks_by_message(&caller.scope, &caller.id, message).await;
        found.map_err(store_failure)
    }
}

/// True if a task started with this message, for the target of the request.
fn was_started_by(task: &Task, request: &CallRequest, hash: &ContentHash) -> bool {
    let (head, target) = (&task.head, &request.target);
    let is_same_target = (head.agent == target.agent.id || head.agent_url == target.agent.url)
        && head.skill.as_ref() == target.skill.as_ref().map(|skill| &skill.id);
    // A request without an agent means the one that was selected before.
    let is_dispatched = request.id.is_some();
    let is_same_content = message_hashes(task).first() == Some(hash);
    (is_same_target || is_dispatched) && is_same_content
}

/// True if a task has received a message; none if it has no message of that id.
fn is_received_in(task: &Task, said: &Message, hash: &ContentHash) -> Option<bool> {
    let mut hashed = task.received.iter().filter(|(id, _)| *id == said.id).peekable();
    if hashed.peek().is_some() {
        return Some(hashed.any(|(_, known)| known == hash));
    }
    // Written by a version that stored no hashes.
    let mut namesakes = messages_in(task).filter(|message| message.id == said.id).peekable();
    namesakes.peek()?;
    Some(namesakes.any(|message| hash_parts(&message.parts) == *hash))
}

/// Hashes of the caller's messages in a task, the first message first.
pub fn message_hashes(task: &Task) -> Vec<ContentHash> {
    if task.received.is_empty() {
        // Written by a version that stored no hashes.
        return messages_in(task).map(|message| hash_parts(&message.parts)).collect();
    }
    task.received.iter().map(|(_, hash)| hash.clone()).collect()
}

/// Messages of the caller in a task.
fn messages_in(task: &Task) -> impl Iterator<Item = &Message> {
    task.history.iter().filter(|message| message.role != Role::Agent)
}

/// Key under which a message is claimed. Messages with equal keys are duplicates.
fn claim_key(request: &CallRequest, said: &Message, hash: &ContentHash) -> String {
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

/// Content hash of a message. The order of an object's members and white space do not count; every digit of a number does.
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

/// SHA-256 over values that are separated by their kind and length.
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
