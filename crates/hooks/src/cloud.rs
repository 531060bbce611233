//! An event as receivers read it: CloudEvents 1.0, structured JSON.

use jiff::Timestamp;
use rialto_model::{audit_event::AuditPhase, store::StoredAuditEvent};
use serde::Serialize;
use serde_json::Value;

/// The media type of what [`CloudEvent`] is written as.
pub const MEDIA_TYPE: &str = "application/cloudevents+json";

/// How much of a seal is in an id: enough to tell two trails apart.
const SEAL: usize = 12;

/// One event.
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a, T> {
    specversion: &'static str,
    /// The same each time this event is sent.
    pub id: String,
    source: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: Timestamp,
    datacontenttype: &'static str,
    data: T,
}

// === impl CloudEvent ===

impl<'a> CloudEvent<'a, &'a rialto_model::audit_event::AuditEvent> {
    /// What a record of the trail says.
    pub fn of(record: &'a StoredAuditEvent, source: &'a str) -> Self {
        Self {
            specversion: "1.0",
            id: id_of(record),
            source,
            r#type: match record.event.phase {
                AuditPhase::PreVerb => "dev.rialto.verb.pre",
                AuditPhase::PostVerb => "dev.rialto.verb.post",
                AuditPhase::VerbError => "dev.rialto.verb.error",
                AuditPhase::Breaker => "dev.rialto.agent.breaker",
                AuditPhase::Guardrail => "dev.rialto.guardrail",
                AuditPhase::Admin => "dev.rialto.admin",
            },
            subject: Some(&record.event.verb.verb),
            time: record.event.emitted_at,
            datacontenttype: "application/json",
            data: &record.event,
        }
    }
}

impl<'a> CloudEvent<'a, Value> {
    /// Something to try a receiver out with.
    pub fn test(id: String, source: &'a str, time: Timestamp) -> Self {
        let data = serde_json::json!({ "message": "This is a test; nothing has happened." });
        let (specversion, datacontenttype) = ("1.0", "application/json");
        Self {
            specversion,
            id,
            source,
            r#type: "dev.rialto.webhook.test",
            subject: None,
            time,
            datacontenttype,
            data,
        }
    }
}

/// Names a record for all time: its number, and the beginning of its seal, in case the trail was begun anew.
pub fn id_of(record: &StoredAuditEvent) -> String {
    format!("{}-{}", record.record, record.seal.get(..SEAL).unwrap_or(&record.seal))
}

#[cfg(test)]
mod tests {
    use rialto_testkit::store_suite::{announced, at};

    use super::*;

    #[test]
    fn an_event_on_the_wire() {
        let seal = "0123456789abcdef".repeat(4);
        let record = StoredAuditEvent {
            record: 42,
            follows: 41,
            seal,
            event: announced(AuditPhase::PreVerb, "default", "task_1"),
        };
        let event = CloudEvent::of(&record, "https://bridge.example");
        insta::assert_snapshot!(serde_json::to_string_pretty(&event).unwrap());
    }

    #[test]
    fn a_test_on_the_wire() {
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        insta::assert_snapshot!(serde_json::to_string_pretty(&event).unwrap());
    }
}
