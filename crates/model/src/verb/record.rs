//! An announcement as it stands on record.
//!
//! Two are written for every call, so they are written by hand: it is the JSON that serde would write.

use std::io::Write as _;

use super::{Outcome, VerbEvent};
use crate::json::{push_json, push_text};

// === impl VerbEvent ===

impl VerbEvent {
    /// Appends its JSON to `out`.
    pub fn record(&self, out: &mut Vec<u8>) {
        let verb = &*self.verb;
        out.push(b'{');
        for (name, text) in [
            ("\"phase\":", self.phase.as_str()),
            (",\"verb\":", &*verb.verb),
            (",\"legacyAlias\":", &*verb.legacy_alias),
            (",\"orgId\":", &*verb.org_id),
            (",\"agentCardId\":", &*verb.agent_card_id),
            (",\"agentUrl\":", &*verb.agent_url),
            (",\"skillId\":", &*verb.skill_id),
            (",\"sessionId\":", &*verb.session_id),
        ] {
            out.extend_from_slice(name.as_bytes());
            push_text(out, text);
        }
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(verb.args.get().as_bytes());
        for (name, text) in [(",\"caller\":", &*verb.caller), (",\"taskId\":", &*verb.task_id)] {
            out.extend_from_slice(name.as_bytes());
            push_text(out, text);
        }
        // Writing to memory does not fail, and there is nothing here that JSON cannot say.
        let _ = write!(out, ",\"emittedAt\":\"{}\"", self.emitted_at);
        if let Some(node) = &self.node {
            out.extend_from_slice(b",\"node\":");
            push_text(out, node);
        }
        out.extend_from_slice(b",\"context\":");
        let _ = push_json(out, &self.context);
        if let Some(duration) = self.duration_ms {
            let _ = write!(out, ",\"durationMs\":{duration}");
        }
        if let Some(outcome) = self.outcome {
            out.extend_from_slice(match outcome {
                Outcome::Completed => b",\"outcome\":\"completed\"".as_slice(),
                Outcome::Waiting => b",\"outcome\":\"waiting\"",
                Outcome::Failed => b",\"outcome\":\"failed\"",
            });
        }
        if let Some(cents) = &self.estimated_cents {
            out.extend_from_slice(b",\"estimatedCents\":");
            let _ = push_json(out, cents);
        }
        if let Some(error) = &self.error {
            out.extend_from_slice(b",\"error\":");
            let _ = push_json(out, error);
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        clock::Timestamp,
        json::Json,
        verb::{Phase, Verb, VerbError},
    };

    fn event(phase: Phase) -> VerbEvent {
        let verb = Verb {
            verb: "a.b".into(),
            legacy_alias: "a2a_a_b".into(),
            org_id: "def\"ault".into(),
            agent_card_id: "agt_1".into(),
            agent_url: "http://127.0.0.1:1".into(),
            skill_id: "b\n".into(),
            session_id: "a2a-agt_1-b-1".into(),
            args: Json::parse("{\"n\":1.000}").unwrap(),
            caller: "ann".into(),
            task_id: "task_1".into(),
            door: None,
            trace: None,
        };
        VerbEvent::new(phase, Arc::new(verb), "2026-08-01T12:00:00.123456789Z".parse::<Timestamp>().unwrap())
    }

    fn recorded(event: &VerbEvent) -> String {
        let mut out = Vec::new();
        event.record(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_first_announcement_is_on_record_as_serde_would_write_it() {
        let mut event = event(Phase::PreVerb);
        assert_eq!(recorded(&event), serde_json::to_string(&event).unwrap());
        let alone = VerbEvent { phase: Phase::Breaker, ..event.clone() };
        assert_eq!(recorded(&alone), serde_json::to_string(&alone).unwrap());
        event.context.deny("because \"so\"");
        assert_eq!(recorded(&event), serde_json::to_string(&event).unwrap());
    }

    #[test]
    fn every_phase_carries_the_arguments() {
        let mut post = event(Phase::PostVerb);
        (post.duration_ms, post.outcome) = (Some(12), Some(Outcome::Completed));
        post.estimated_cents = serde_json::from_str("1.5").ok();
        let mut error = event(Phase::VerbError);
        error.error = Some(VerbError { code: -32003, message: "no\\way".into() });
        let mut failed = event(Phase::PostVerb);
        failed.outcome = Some(Outcome::Failed);
        let waiting = VerbEvent { outcome: Some(Outcome::Waiting), ..failed.clone() };
        for event in [post, error, failed, waiting] {
            assert!(recorded(&event).contains(r#""args":{"n":1.000}"#));
            assert_eq!(recorded(&event), serde_json::to_string(&event).unwrap());
            assert_eq!(serde_json::from_str::<VerbEvent>(&recorded(&event)).unwrap(), event);
        }
    }
}
