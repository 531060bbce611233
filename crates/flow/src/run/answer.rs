//! What a caller says to a run that waits, and which step is meant by it.

use rialto_engine::approvals::Verdict;
use rialto_model::{
    call::Call,
    flow::{FlowStep, StepQuestion},
    json::Json,
    message::{Content, Part},
};

use super::tell::FLOW;

/// What was said.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<Part>,
    /// The step that is meant, if the caller says so.
    node: Option<String>,
    item: Option<u32>,
    /// The question that was decided, where somebody else did.
    approval: Option<String>,
}

/// What somebody decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Approve,
    Deny,
}

// === impl Answer ===

impl Answer {
    /// What a call says that goes on with a run. A step is named in the metadata of the message, of its parts, or of what came
    /// with it.
    pub(super) fn of(call: &Call) -> Self {
        let spoken = call.spoken.as_ref();
        let beside = spoken.and_then(|spoken| spoken.metadata.as_ref());
        let inside = spoken.and_then(|spoken| spoken.message.metadata.as_ref());
        let parts = call.parts.iter().filter_map(|part| part.metadata.as_ref());
        let named = [inside, beside].into_iter().flatten().chain(parts).find_map(|metadata| {
            let facts = metadata.value().get(FLOW)?.clone();
            facts.get("node").is_some().then_some(facts)
        });
        let node = named.as_ref().and_then(|facts| Some(facts["node"].as_str()?.to_owned()));
        let item = named.as_ref().and_then(|facts| u32::try_from(facts["item"].as_u64()?).ok());
        let approval = Verdict::of(&call.parts).map(|verdict| verdict.approval.to_string());
        Self { parts: call.parts.clone(), node, item, approval }
    }

    /// Whether a step is the one that is meant; without a word about it, any is.
    pub(super) fn is_for(&self, step: &FlowStep) -> bool {
        if let Some(decided) = &self.approval {
            let asked = step.question.as_ref().and_then(approval_of);
            return asked.as_ref() == Some(decided);
        }
        let is_node = self.node.as_ref().is_none_or(|node| *node == step.node);
        is_node && (self.node.is_none() || self.item.is_none() || self.item == step.item)
    }

    /// What was decided, if it says so: `approve` or `deny`, as a text or as `{"decision": …}`.
    pub(super) fn decision(&self) -> Option<Decision> {
        self.parts.iter().find_map(|part| match &part.content {
            Content::Text(text) => decision(text),
            Content::Data(data) => decision_in(data),
            Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => None,
        })
    }
}

/// The question's name among all that wait for approval, if it has one.
pub(super) fn approval_of(question: &StepQuestion) -> Option<String> {
    let metadata = question.message.as_ref()?.metadata.as_ref()?;
    metadata.value().get("rialto/approval")?.get("id")?.as_str().map(str::to_owned)
}

fn decision_in(data: &Json) -> Option<Decision> {
    let value = data.value();
    let word = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
    let said =
        value.as_str().or_else(|| word("decision")).or_else(|| word("answer")).or_else(|| word("text"));
    match value.get("approved").and_then(serde_json::Value::as_bool) {
        Some(true) => Some(Decision::Approve),
        Some(false) => Some(Decision::Deny),
        None => decision(said?),
    }
}

fn decision(word: &str) -> Option<Decision> {
    match word.trim().to_ascii_lowercase().as_str() {
        "approve" | "approved" => Some(Decision::Approve),
        "deny" | "denied" => Some(Decision::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(part: Part) -> Option<Decision> {
        Answer { parts: vec![part], node: None, item: None, approval: None }.decision()
    }

    #[test]
    fn only_the_two_words_decide() {
        assert_eq!(said(Part::text(" Approve\n")), Some(Decision::Approve));
        assert_eq!(said(Part::text("deny")), Some(Decision::Deny));
        for data in [r#"{"decision":"approve"}"#, r#"{"approved":true}"#, r#"{"answer":"approve"}"#] {
            assert_eq!(said(Part::data(Json::parse(data).unwrap())), Some(Decision::Approve), "{data}");
        }
        for text in ["", "yes", "do not approve", "approve it"] {
            assert_eq!(said(Part::text(text)), None, "{text}");
        }
    }
}
