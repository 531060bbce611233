//! Answer of a caller to a waiting run, and the step it is for.

use rialto_engine::approvals::Verdict;
use rialto_model::{
    call::Call,
    flow::{FlowStep, StepQuestion},
    json::Json,
    message::{Content, Part},
};

use super::run_events::FLOW_METADATA;

/// Answer of a caller.
#[derive(Clone, Debug)]
pub(super) struct RunAnswer {
    pub(super) parts: Vec<Part>,
    /// Step it is for, if named.
    node: Option<String>,
    item: Option<u32>,
    /// Question that was decided elsewhere.
    approval: Option<String>,
}

/// Decision of an approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalDecision {
    Approve,
    Deny,
}

// === impl RunAnswer ===

impl RunAnswer {
    /// Reads the answer in a call that resumes a run. The step is named in the metadata of the message, of its parts, or of the
    /// request.
    pub(super) fn from_call(call: &Call) -> Self {
        let spoken = call.spoken.as_ref();
        let beside = spoken.and_then(|spoken| spoken.metadata.as_ref());
        let inside = spoken.and_then(|spoken| spoken.message.metadata.as_ref());
        let parts = call.parts.iter().filter_map(|part| part.metadata.as_ref());
        let named = [inside, beside].into_iter().flatten().chain(parts).find_map(|metadata| {
            let facts = metadata.value().get(FLOW_METADATA)?.clone();
            facts.get("node").is_some().then_some(facts)
        });
        let node = named.as_ref().and_then(|facts| Some(facts["node"].as_str()?.to_owned()));
        let item = named.as_ref().and_then(|facts| u32::try_from(facts["item"].as_u64()?).ok());
        let approval = Verdict::of(&call.parts).map(|verdict| verdict.approval.to_string());
        Self { parts: call.parts.clone(), node, item, approval }
    }

    /// True if the answer is for this step; an answer without a step is for any.
    pub(super) fn answers_step(&self, step: &FlowStep) -> bool {
        if let Some(decided) = &self.approval {
            let asked = step.question.as_ref().and_then(approval_id);
            return asked.as_ref() == Some(decided);
        }
        let is_node = self.node.as_ref().is_none_or(|node| *node == step.node);
        is_node && (self.node.is_none() || self.item.is_none() || self.item == step.item)
    }

    /// Decision in the answer, if there is one: `approve` or `deny`, as a text or as `{"decision": …}`.
    pub(super) fn decision(&self) -> Option<ApprovalDecision> {
        self.parts.iter().find_map(|part| match &part.content {
            Content::Text(text) => decision_from_word(text),
            Content::Data(data) => decision_from_json(data),
            Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => None,
        })
    }
}

/// The question's name among all that wait for approval, if it has one.
pub(super) fn approval_id(question: &StepQuestion) -> Option<String> {
    let metadata = question.message.as_ref()?.metadata.as_ref()?;
    metadata.value().get("rialto/approval")?.get("id")?.as_str().map(str::to_owned)
}

fn decision_from_json(data: &Json) -> Option<ApprovalDecision> {
    let value = data.value();
    let word = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
    let said =
        value.as_str().or_else(|| word("decision")).or_else(|| word("answer")).or_else(|| word("text"));
    match value.get("approved").and_then(serde_json::Value::as_bool) {
        Some(true) => Some(ApprovalDecision::Approve),
        Some(false) => Some(ApprovalDecision::Deny),
        None => decision_from_word(said?),
    }
}

fn decision_from_word(word: &str) -> Option<ApprovalDecision> {
    match word.trim().to_ascii_lowercase().as_str() {
        "approve" | "approved" => Some(ApprovalDecision::Approve),
        "deny" | "denied" => Some(ApprovalDecision::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(part: Part) -> Option<ApprovalDecision> {
        RunAnswer { parts: vec![part], node: None, item: None, approval: None }.decision()
    }

    #[test]
    fn only_the_two_words_decide() {
        assert_eq!(said(Part::text(" Approve\n")), Some(ApprovalDecision::Approve));
        assert_eq!(said(Part::text("deny")), Some(ApprovalDecision::Deny));
        for data in [r#"{"decision":"approve"}"#, r#"{"approved":true}"#, r#"{"answer":"approve"}"#] {
            assert_eq!(
                said(Part::data(Json::parse(data).unwrap())),
                Some(ApprovalDecision::Approve),
                "{data}"
            );
        }
        for text in ["", "yes", "do not approve", "approve it"] {
            assert_eq!(said(Part::text(text)), None, "{text}");
        }
    }
}
