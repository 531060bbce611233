//! How it is asked, and how an answer is read.
//!
//! The question is words for people, and a part with the tool, its arguments and the two answers there are, of which clients
//! that have forms make one. What is answered is read generously; what cannot be read is no answer.

use rialto_model::{
    approval::{Approval, ApprovalVerdict},
    event::{Event, EventAside, QuestionKind},
    ids::{ApprovalId, fresh},
    json::{Extra, Json},
    message::{Content, Message, Part, Role},
    task::Task,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Where a question and its answer say what they are about.
pub(super) const MARK: &str = "rialto/approval";

/// How much of the arguments stands in the words.
const SHOWN: usize = 2_000;

/// What was decided, as those hear it who do the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The question.
    pub approval: ApprovalId,
    /// Whether it may be done.
    pub approved: bool,
    /// Who says so.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// What a caller answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApprovalAnswer {
    /// Which question, if it says so.
    pub(super) approval: Option<ApprovalId>,
    pub(super) approved: bool,
    pub(super) reason: Option<String>,
}

/// An answer as data.
#[derive(Deserialize)]
struct VerdictJson {
    decision: String,
    #[serde(default)]
    approval: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    by: Option<String>,
}

// === impl Verdict ===

impl Verdict {
    /// What a peer is told when something that it asked about was decided; none for any other message.
    pub fn of(parts: &[Part]) -> Option<Self> {
        let [Part { content: Content::Data(data), .. }] = parts else { return None };
        let written: VerdictJson = data.read().ok()?;
        Some(Self {
            approval: ApprovalId::from(written.approval?),
            approved: word(&written.decision)?,
            by: written.by?,
            reason: written.reason,
        })
    }

    /// The same as a message of one part.
    pub(super) fn part(approval: &Approval, decided: &ApprovalVerdict) -> Part {
        let word = if decided.approved { "approve" } else { "deny" };
        Part::data(Json::encode(&json!({
            "approval": approval.id,
            "decision": word,
            "by": decided.by,
            "reason": decided.reason,
        })))
    }
}

/// The question as it happens to a task. `note` says what was wrong with an answer.
pub(super) fn asked(approval: &Approval, note: Option<&str>) -> Event {
    let mut message =
        Message::new(fresh(), Role::Agent, vec![Part::text(words(approval, note)), data(approval)]);
    let mut metadata = Extra::new();
    metadata.push(MARK, facts(approval));
    message.metadata = Some(Json::encode(&metadata));
    Event::Asked { ask: QuestionKind::Input, message: Some(message), aside: EventAside::default() }
}

/// The answer as the caller's words in the task.
pub(super) fn answered(approval: &Approval, decided: &ApprovalVerdict) -> Message {
    let word = if decided.approved { "approve" } else { "deny" };
    let mut message = Message::new(fresh(), Role::User, vec![Part::text(word)]);
    let facts = json!({ "id": approval.id, "decision": word, "by": decided.by, "reason": decided.reason });
    message.metadata = Some(Json::encode(&json!({ MARK: facts })));
    message
}

/// The question that a task waits with, if it says that it is one. Whoever goes by it looks it up: an agent can say so too.
pub(super) fn waits_for(task: &Task) -> Option<ApprovalId> {
    let metadata = task.message.as_ref()?.metadata.as_ref()?;
    if !task.head.state.is_waiting() || !metadata.get().contains(MARK) {
        return None;
    }
    metadata.value().get(MARK)?.get("id")?.as_str().map(ApprovalId::from)
}

/// What a caller answers, if it is an answer.
pub(super) fn read(parts: &[Part]) -> Option<ApprovalAnswer> {
    let said = |part: &Part| match &part.content {
        Content::Text(text) => {
            let approved = word(text)?;
            Some(ApprovalAnswer { approval: None, approved, reason: None })
        }
        Content::Data(data) | Content::Unknown(data) => {
            let text = data.read::<String>().ok();
            if let Some(approved) = text.as_deref().and_then(word) {
                return Some(ApprovalAnswer { approval: None, approved, reason: None });
            }
            let written: VerdictJson = data.read().ok()?;
            let approved = word(&written.decision)?;
            let approval = written.approval.map(ApprovalId::from);
            Some(ApprovalAnswer {
                approval,
                approved,
                reason: written.reason.filter(|why| !why.trim().is_empty()),
            })
        }
        Content::Raw(_) | Content::Url(_) => None,
    };
    let mut answers = parts.iter().filter_map(said);
    let first = answers.next()?;
    // Who says both has said neither.
    answers.all(|other| other.approved == first.approved).then_some(first)
}

fn word(text: &str) -> Option<bool> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if text.eq_ignore_ascii_case("approve") || text.eq_ignore_ascii_case("approved") {
        return Some(true);
    }
    let is_no = ["deny", "denied"].iter().any(|word| text.eq_ignore_ascii_case(word));
    is_no.then_some(false)
}

fn words(approval: &Approval, note: Option<&str>) -> String {
    let args = approval.args.get();
    let cut = (0..=SHOWN.min(args.len())).rev().find(|at| args.is_char_boundary(*at)).unwrap_or(0);
    let args = match args.get(..cut) {
        Some(start) if cut < approval.args.get().len() => format!("{start}…"),
        _ => args.to_owned(),
    };
    let who = if approval.is_for_caller() {
        "Answer \"approve\" or \"deny\".".to_owned()
    } else {
        let (by, id) = (approval.by.join(" and by "), &approval.id);
        format!(
            "It waits for approval by {by}: `rialto approvals approve {id}` or `rialto approvals deny {id}`."
        )
    };
    let why = match approval.policies.as_slice() {
        [] => String::new(),
        policies => format!(" ({})", policies.join(", ")),
    };
    let note = note.map(|note| format!("{note}\n\n")).unwrap_or_default();
    let (tool, until) = (&approval.tool, approval.expires_at);
    format!(
        "{note}May {tool} be called with these arguments?{why}\n\n{args}\n\n{who} It is denied at {until}."
    )
}

fn data(approval: &Approval) -> Part {
    let mut data = Extra::new();
    data.push("approval", Json::encode(&approval.id));
    data.push("tool", Json::encode(&approval.tool));
    data.push("arguments", approval.args.clone());
    data.push("expiresAt", Json::encode(&approval.expires_at));
    if approval.is_for_caller() {
        data.push("requestedSchema", Json::encode(&choice()));
    }
    Part::data(Json::encode(&data))
}

/// The shape of an answer.
fn choice() -> Value {
    json!({
        "type": "object",
        "properties": {
            "decision": { "type": "string", "title": "Decision", "enum": ["approve", "deny"] },
            "reason": { "type": "string", "title": "Reason", "description": "Why, for the record." },
        },
        "required": ["decision"],
    })
}

fn facts(approval: &Approval) -> Json {
    let mut facts = Extra::new();
    facts.push("id", Json::encode(&approval.id));
    facts.push("tool", Json::encode(&approval.tool));
    // To the last digit.
    facts.push("args", approval.args.clone());
    facts.push("expiresAt", Json::encode(&approval.expires_at));
    facts.push("policy", Json::encode(&approval.policies));
    facts.push("by", Json::encode(&approval.by));
    facts.push("answerable", Json::encode(&approval.is_for_caller()));
    Json::encode(&facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_in_any_case_as_words_or_as_data() {
        let text = |text: &str| read(&[Part::text(text)]).map(|answer| answer.approved);
        for yes in ["approve", " Approve\n", "APPROVED.", "approve!"] {
            assert_eq!(text(yes), Some(true), "{yes}");
        }
        for no in ["deny", "DENY ", "denied"] {
            assert_eq!(text(no), Some(false), "{no}");
        }
        for neither in ["", "yes", "approve it", "do not approve", "approve deny"] {
            assert_eq!(text(neither), None, "{neither}");
        }
        let data = |value: Value| read(&[Part::data(Json::encode(&value))]);
        let full = data(json!({ "decision": "Approve", "approval": "apr_1", "reason": "fine" })).unwrap();
        let expected = ApprovalAnswer {
            approval: Some("apr_1".into()),
            approved: true,
            reason: Some("fine".to_owned()),
        };
        assert_eq!(full, expected);
        assert!(data(json!({ "decision": "perhaps" })).is_none());
        assert!(data(json!("deny")).is_some_and(|answer| !answer.approved));
        assert!(read(&[Part::text("approve"), Part::text("deny")]).is_none());
        assert!(read(&[]).is_none());
    }
}
