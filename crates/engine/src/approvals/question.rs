//! Question and answer of an approval, as messages of the task.
//!
//! The question has a text for people, and a part with the tool, its arguments and the two possible answers, which clients
//! show as a form. An answer is parsed leniently; a message that cannot be parsed is no answer.

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

/// Metadata key of a question and its answer.
pub(super) const APPROVAL_KEY: &str = "rialto/approval";

/// Maximum bytes of the arguments in the text.
const MAX_SHOWN_ARGS_BYTES: usize = 2_000;

/// Decision, as the backend that asked receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The approval.
    pub approval: ApprovalId,
    /// True if it was approved.
    pub approved: bool,
    /// Name of the decider.
    pub by: String,
    /// Reason of the decision.
    pub reason: Option<String>,
}

/// Answer of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApprovalAnswer {
    /// The approval, if the answer names one.
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
    /// Parses the verdict that a backend receives; none for any other message.
    pub fn of(parts: &[Part]) -> Option<Self> {
        let [Part { content: Content::Data(data), .. }] = parts else { return None };
        let written: VerdictJson = data.read().ok()?;
        Some(Self {
            approval: ApprovalId::from(written.approval?),
            approved: parse_decision(&written.decision)?,
            by: written.by?,
            reason: written.reason,
        })
    }

    /// Part with the verdict, for the backend.
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

/// Event that asks the question in a task. `note` says why an answer was not accepted.
pub(super) fn question_event(approval: &Approval, note: Option<&str>) -> Event {
    let mut message =
        Message::new(fresh(), Role::Agent, vec![Part::text(words(approval, note)), data(approval)]);
    let mut metadata = Extra::new();
    metadata.push(APPROVAL_KEY, facts(approval));
    message.metadata = Some(Json::encode(&metadata));
    Event::Asked { ask: QuestionKind::Input, message: Some(message), aside: EventAside::default() }
}

/// Message with the decision, for the task's history.
pub(super) fn answer_message(approval: &Approval, decided: &ApprovalVerdict) -> Message {
    let word = if decided.approved { "approve" } else { "deny" };
    let mut message = Message::new(fresh(), Role::User, vec![Part::text(word)]);
    let facts = json!({ "id": approval.id, "decision": word, "by": decided.by, "reason": decided.reason });
    message.metadata = Some(Json::encode(&json!({ APPROVAL_KEY: facts })));
    message
}

/// Id of the approval that a task says it waits for. An agent can write that too, so it must be looked up.
pub(super) fn pending_approval_id(task: &Task) -> Option<ApprovalId> {
    let metadata = task.message.as_ref()?.metadata.as_ref()?;
    if !task.head.state.is_waiting() || !metadata.get().contains(APPROVAL_KEY) {
        return None;
    }
    metadata.value().get(APPROVAL_KEY)?.get("id")?.as_str().map(ApprovalId::from)
}

/// Parses a caller's answer; none if it is not one.
pub(super) fn parse_answer(parts: &[Part]) -> Option<ApprovalAnswer> {
    let said = |part: &Part| match &part.content {
        Content::Text(text) => {
            let approved = parse_decision(text)?;
            Some(ApprovalAnswer { approval: None, approved, reason: None })
        }
        Content::Data(data) | Content::Unknown(data) => {
            let text = data.read::<String>().ok();
            if let Some(approved) = text.as_deref().and_then(parse_decision) {
                return Some(ApprovalAnswer { approval: None, approved, reason: None });
            }
            let written: VerdictJson = data.read().ok()?;
            let approved = parse_decision(&written.decision)?;
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
    // Contradictory answers are none.
    answers.all(|other| other.approved == first.approved).then_some(first)
}

fn parse_decision(text: &str) -> Option<bool> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if text.eq_ignore_ascii_case("approve") || text.eq_ignore_ascii_case("approved") {
        return Some(true);
    }
    let is_no = ["deny", "denied"].iter().any(|word| text.eq_ignore_ascii_case(word));
    is_no.then_some(false)
}

fn words(approval: &Approval, note: Option<&str>) -> String {
    let args = approval.args.get();
    let cut =
        (0..=MAX_SHOWN_ARGS_BYTES.min(args.len())).rev().find(|at| args.is_char_boundary(*at)).unwrap_or(0);
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

/// Schema of an answer.
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
        let text = |text: &str| parse_answer(&[Part::text(text)]).map(|answer| answer.approved);
        for yes in ["approve", " Approve\n", "APPROVED.", "approve!"] {
            assert_eq!(text(yes), Some(true), "{yes}");
        }
        for no in ["deny", "DENY ", "denied"] {
            assert_eq!(text(no), Some(false), "{no}");
        }
        for neither in ["", "yes", "approve it", "do not approve", "approve deny"] {
            assert_eq!(text(neither), None, "{neither}");
        }
        let data = |value: Value| parse_answer(&[Part::data(Json::encode(&value))]);
        let full = data(json!({ "decision": "Approve", "approval": "apr_1", "reason": "fine" })).unwrap();
        let expected = ApprovalAnswer {
            approval: Some("apr_1".into()),
            approved: true,
            reason: Some("fine".to_owned()),
        };
        assert_eq!(full, expected);
        assert!(data(json!({ "decision": "perhaps" })).is_none());
        assert!(data(json!("deny")).is_some_and(|answer| !answer.approved));
        assert!(parse_answer(&[Part::text("approve"), Part::text("deny")]).is_none());
        assert!(parse_answer(&[]).is_none());
    }
}
