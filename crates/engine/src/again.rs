//! Whether a message came before.
//!
//! Its name alone does not say so: clients number their messages anew, or send one message to several. It is the same when it
//! goes to the same skill or the same task and says the same. What is compared is what is in the store, where secrets and what
//! guardrails cut out are masked: whatever stands behind a mask is taken for the same, because doing something twice is worse.

use rialto_model::{
    call::{Caller, Door},
    failure::Failure,
    ids::TaskId,
    message::{Content, Message, Part, Role},
    task::{Task, TaskHead},
};
use serde_json::Value;

use crate::{
    conversation::{Talk, number_of},
    engine::{Engine, store_failure},
    request::Request,
};

// === impl Engine ===

impl Engine {
    /// Whether a message was said in a task before.
    pub async fn heard(&self, task: &Task, said: &Message) -> bool {
        if let Some(is_heard) = is_heard_in(task, said) {
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
        if heads.is_empty() || self.may_be_earlier(number_of(caller, name)).await? {
            heads.extend(self.namesakes(caller, name).await?);
        }
        let named = heads.into_iter().filter(|head| head.door == Door::A2aFirst);
        match named.max_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id))) {
            Some(head) => self.inner().journal.read(head).await.map(Some).map_err(store_failure),
            None => Ok(None),
        }
    }

    /// A caller's task under our own id for it, as it stands in the journal. Nobody is asked about it.
    pub async fn look_by_id(&self, caller: &Caller, id: &str) -> Result<Option<Task>, Failure> {
        match self.head(caller, id).await? {
            Some(head) => self.inner().journal.read(head).await.map(Some).map_err(store_failure),
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
        if let Some(id) = &request.task {
            let task = self.own_task(caller, id).await?;
            return Ok((is_heard_in(&task, said) == Some(true)).then_some(task.head.id));
        }
        for id in known.iter().rev() {
            if let Some(task) = self.look_by_id(caller, id.as_str()).await?
                && began(&task, request, said)
            {
                return Ok(Some(task.head.id));
            }
        }
        if !self.may_be_earlier(number_of(caller, &said.id)).await? {
            return Ok(None);
        }
        for head in self.namesakes(caller, &said.id).await? {
            if known.contains(&head.id) {
                continue;
            }
            let task = self.inner().journal.read(head).await.map_err(store_failure)?;
            if began(&task, request, said) {
                known.push(task.head.id.clone());
                return Ok(Some(task.head.id));
            }
        }
        Ok(None)
    }

    async fn namesakes(&self, caller: &Caller, message: &str) -> Result<Vec<TaskHead>, Failure> {
        let found = self.inner().store.tasks_of_message(&caller.scope, &caller.id, message).await;
        found.map_err(store_failure)
    }

    /// What is known of a caller's task with that id of ours.
    async fn head(&self, caller: &Caller, id: &str) -> Result<Option<TaskHead>, Failure> {
        let head = self.inner().store.task(&caller.scope, id).await.map_err(store_failure)?;
        Ok(head.filter(|head| head.id.as_str() == id && head.caller == caller.id))
    }
}

/// Whether a task began with this message, for the same target.
fn began(task: &Task, request: &Request, said: &Message) -> bool {
    let (head, target) = (&task.head, &request.target);
    let is_same_target = (head.agent == target.agent.id || head.agent_url == target.agent.url)
        && head.skill.as_ref() == target.skill.as_ref().map(|skill| &skill.id);
    // Whoever left the choice to us meant whoever was chosen before.
    let is_chosen_here = request.id.is_some();
    let first = spoken_in(task).next();
    (is_same_target || is_chosen_here) && first.is_some_and(|first| is_same(&first.parts, &said.parts))
}

/// Whether a message was said in a task, if any of its name was.
fn is_heard_in(task: &Task, said: &Message) -> Option<bool> {
    let mut namesakes = spoken_in(task).filter(|heard| heard.id == said.id).peekable();
    namesakes.peek()?;
    Some(namesakes.any(|heard| is_same(&heard.parts, &said.parts)))
}

/// What its caller said in a task.
fn spoken_in(task: &Task) -> impl Iterator<Item = &Message> {
    task.history.iter().filter(|message| message.role != Role::Agent)
}

/// Whether these are the same words, of which the first were kept.
pub fn is_same(kept: &[Part], said: &[Part]) -> bool {
    kept.len() == said.len() && kept.iter().zip(said).all(|(kept, said)| is_same_part(kept, said))
}

fn is_same_part(kept: &Part, said: &Part) -> bool {
    let content = match (&kept.content, &said.content) {
        (Content::Text(kept), Content::Text(said)) => is_same_text(kept, said),
        (Content::Data(kept), Content::Data(said)) | (Content::Unknown(kept), Content::Unknown(said)) => {
            kept.get() == said.get() || is_same_value(&kept.value(), &said.value())
        }
        (kept, said) => kept == said,
    };
    content && kept.filename == said.filename && kept.media_type == said.media_type
}

fn is_same_value(kept: &Value, said: &Value) -> bool {
    match (kept, said) {
        (Value::String(kept), Value::String(said)) => is_same_text(kept, said),
        // What was masked whole may have been anything.
        (Value::String(kept), _) => mask_in(kept).is_some_and(|mask| mask.len() == kept.len()),
        (Value::Array(kept), Value::Array(said)) => {
            kept.len() == said.len() && kept.iter().zip(said).all(|(kept, said)| is_same_value(kept, said))
        }
        (Value::Object(kept), Value::Object(said)) => {
            let is_same =
                |name: &String, said: &Value| kept.get(name).is_some_and(|kept| is_same_value(kept, said));
            kept.len() == said.len() && said.iter().all(|(name, said)| is_same(name, said))
        }
        (kept, said) => kept == said,
    }
}

/// Whether `said` is `kept` with something in the place of each mask.
fn is_same_text(kept: &str, said: &str) -> bool {
    if kept == said {
        return true;
    }
    let Some(mask) = mask_in(kept) else { return false };
    let (before, mut rest) = (&kept[..mask.start], &kept[mask.end..]);
    let Some(mut said) = said.strip_prefix(before) else { return false };
    while let Some(mask) = mask_in(rest) {
        let between = &rest[..mask.start];
        let Some(at) = said.find(between) else { return false };
        said = &said[at + between.len()..];
        rest = &rest[mask.end..];
    }
    said.ends_with(rest)
}

/// Where something was masked: `[redacted]`, or the kind of what stood there, as in `[email]`.
fn mask_in(text: &str) -> Option<std::ops::Range<usize>> {
    let is_named = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.match_indices('[').find_map(|(start, _)| {
        let end = start + 1 + text[start + 1..].find(']')?;
        is_named(&text[start + 1..end]).then_some(start..end + 1)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rialto_model::json::Json;

    use super::*;
    use crate::redact::redact_message;

    fn data(text: &str) -> Vec<Part> {
        vec![Part::data(Json::parse(text).unwrap())]
    }

    #[test]
    fn other_words_are_another_message() {
        let of = |text: &str| vec![Part::text(text)];
        assert!(is_same(&of("hello"), &of("hello")));
        assert!(!is_same(&of("hello"), &of("hello you")));
        assert!(!is_same(&of("hello"), &[of("hello"), of("you")].concat()));
        assert!(!is_same(&of("{}"), &data("{}")));
        assert!(!is_same(&data(r#"{"n":1}"#), &data(r#"{"n":2}"#)));
        assert!(is_same(&data(r#"{"n":1,"m":2}"#), &data(r#"{ "m": 2, "n": 1 }"#)));
    }

    #[test]
    fn behind_a_mask_may_be_anything_but_around_it_nothing_else() {
        assert!(is_same_text("write to [email] now", "write to ann@example.com now"));
        assert!(!is_same_text("write to [email] now", "write to ann@example.com later"));
        assert!(!is_same_text("write to [email] now", "tell ann@example.com now"));
        assert!(is_same_text("[email] and [iban]!", "a@b.example and DE00!"));
        assert!(is_same(&data(r#"{"key":"[redacted]","n":1}"#), &data(r#"{"key":{"a":1},"n":1}"#)));
        assert!(!is_same(&data(r#"{"key":"[redacted]","n":1}"#), &data(r#"{"key":{"a":1},"n":2}"#)));
    }

    proptest! {
        #[test]
        fn what_is_kept_of_a_message_is_the_same_as_it(
            words in "[a-z \\[\\]]{0,20}(sk-[a-z]{3})?",
            name in "(password|city|[a-z\\[]{1,5})",
            value in prop_oneof![Just("1"), Just("[true]"), Just(r#""x""#), Just(r#"{"token":[1]}"#)],
        ) {
            let parts = vec![Part::text(words), data(&format!(r#"{{"{name}":{value}}}"#)).remove(0)];
            let kept = redact_message(Message::new("m", Role::User, parts.clone()), None);
            prop_assert!(is_same(&kept.parts, &parts));
        }
    }
}
