//! CloudEvents 1.0 in structured JSON mode.

use jiff::Timestamp;
use rialto_model::{audit_event::AuditPhase, store::StoredAuditEvent};
use serde::Serialize;
use serde_json::Value;

/// Media type of a serialized [`CloudEvent`].
pub const CLOUD_EVENT_MEDIA_TYPE: &str = "application/cloudevents+json";

/// Characters of a seal that an id contains: enough to tell two trails apart.
const SEAL_PREFIX_LENGTH: usize = 12;

/// CloudEvent as it is delivered.
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a, T> {
    specversion: &'static str,
    /// Id, equal for each attempt to deliver the event.
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
    /// Event of an audit record.
    pub fn from_record(record: &'a StoredAuditEvent, source: &'a str) -> Self {
        Self {
            specversion: "1.0",
            id: event_id(record),
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
    /// Event that tests a receiver.
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

/// Id of a record: its number, and the beginning of its seal in case the trail was started anew.
pub fn event_id(record: &StoredAuditEvent) -> String {
    format!("{}-{}", record.record, record.seal.get(..SEAL_PREFIX_LENGTH).unwrap_or(&record.seal))
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
        let event = CloudEvent::from_record(&record, "https://bridge.example");
        insta::assert_snapshot!(serde_json::to_string_pretty(&event).unwrap());
    }

    #[test]
    fn a_test_on_the_wire() {
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        insta::assert_snapshot!(serde_json::to_string_pretty(&event).unwrap());
    }
}
