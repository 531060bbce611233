//! Checks of texts with guardrails, and with the model servers that they name.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use rialto_guardrails::{
    ClassifierCheck, ContentFinding, FindingVerdict, GuardrailRuleset, PartField,
    classifier::{MAX_REQUEST_TEXT_BYTES, OnError},
    config::{CheckAction, CheckDirection},
};
use rialto_model::message::{Content, Part};

use super::{Asker, GuardrailSet, report::GuardrailReport, text_fields::TextField};

/// Maximum number of concurrent requests to model servers.
const AT_ONCE: usize = 64;

/// Kind of the finding when a model server could not be asked.
const UNANSWERED: &str = "unanswered";

/// Guardrails of one direction.
#[derive(Clone)]
pub(crate) struct GuardrailChecker {
    pub(super) set: Arc<GuardrailSet>,
    pub(super) guards: Arc<GuardrailRuleset>,
    pub(super) target: CheckDirection,
}

/// Model servers that are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassifierScope {
    /// None.
    Nobody,
    /// Only servers that may block.
    Strict,
    /// All of them.
    All,
}

// === impl Screen ===

impl GuardrailChecker {
    /// Checks all fields, and redacts them. Findings are added to the report, whose verdict says if the message may pass.
    pub(super) async fn look(
        &self,
        slots: Vec<TextField<'_>>,
        ask: ClassifierScope,
        report: &mut GuardrailReport,
    ) {
        for mut slot in slots {
            let parts = slot.parts();
            let findings = if slot.is_whole() {
                self.guards.check(&parts, self.target)
            } else {
                self.guards.check_fields(&parts, self.target)
            };
            report.add(&findings);
            if report.verdict() == FindingVerdict::Block {
                // A blocked message needs no request to a model server.
                return;
            }
            if slot.is_content() && ask != ClassifierScope::Nobody {
                self.ask(&parts, ask, report).await;
            }
            if findings.verdict() == FindingVerdict::Redact {
                let left = self.guards.redact(&parts, &findings);
                drop(parts);
                slot.put(left);
            }
        }
    }

    /// Asks model servers about each part, all of them at once, until one of them blocks it.
    async fn ask(&self, parts: &[Part], ask: ClassifierScope, report: &mut GuardrailReport) {
        let mut answers = stream::iter(self.questions(parts, ask)).buffer_unordered(AT_ONCE);
        while let Some(found) = answers.next().await {
            found.iter().for_each(|finding| report.add_one(finding, false));
            if report.verdict() == FindingVerdict::Block {
                return;
            }
        }
    }

    fn questions(
        &self,
        parts: &[Part],
        ask: ClassifierScope,
    ) -> Vec<BoxFuture<'static, Vec<ContentFinding>>> {
        let mut questions = Vec::new();
        for asked in self.guards.classifiers(self.target) {
            if ask == ClassifierScope::Strict && asked.action < CheckAction::Redact {
                continue;
            }
            for (part, text) in parts.iter().enumerate().filter_map(|(n, part)| Some((n, text_of(part)?))) {
                for piece in pieces(&text) {
                    let asker = Arc::clone(&self.set.asker);
                    questions.push(put(asker, asked.clone(), part, piece.to_owned()).boxed());
                }
            }
        }
        questions
    }
}

/// Asks one model server about one text.
async fn put(asker: Asker, asked: ClassifierCheck, part: usize, text: String) -> Vec<ContentFinding> {
    let (classifier, action) = (&asked.classifier, asked.action);
    let finding = |kind: &str| ContentFinding {
        check: asked.check,
        kind: Cow::Owned(kind.to_owned()),
        part,
        field: PartField::Message,
        at: None,
        action,
    };
    let patience = Duration::from_millis(classifier.timeout_ms);
    let answer = tokio::time::timeout(patience, asker(classifier, &text)).await;
    let trouble = match answer {
        Ok(Ok(answer)) => return classifier.matched_labels(&answer).into_iter().map(finding).collect(),
        Ok(Err(trouble)) => trouble,
        Err(_) => format!("no answer within {} ms", classifier.timeout_ms),
    };
    tracing::warn!("the model server of a {} check could not be asked: {trouble}", asked.check);
    match classifier.on_error {
        OnError::Open => Vec::new(),
        OnError::Closed => vec![finding(UNANSWERED)],
    }
}

/// Text of a part for a model server.
fn text_of(part: &Part) -> Option<Cow<'_, str>> {
    let text = match &part.content {
        Content::Text(text) => Cow::Borrowed(text.as_str()),
        Content::Data(json) | Content::Unknown(json) => Cow::Borrowed(json.get()),
        Content::Raw(raw) => Cow::Owned(rialto_guardrails::text_of_file(part, raw)?),
        Content::Url(_) => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Splits a text into chunks that one request can hold.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(MAX_REQUEST_TEXT_BYTES));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_asked_about_piece_by_piece() {
        let text = "é".repeat(MAX_REQUEST_TEXT_BYTES);
        let all = pieces(&text);
        assert_eq!(all.len(), 2);
        assert_eq!(all.concat(), text);
        assert!(pieces("").is_empty());
    }
}
