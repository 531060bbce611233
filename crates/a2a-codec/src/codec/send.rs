//! Request that sends a message.
//!
//! Lossy: in 0.x a history length of 0 means the complete history, so a client that wants none omits it there; 0.1 always waits; tenants
//! exist in 1.0 only; the client's own task id is omitted in 1.0 and in 0.3's REST, whose servers may reject unknown members.

use rialto_model::{
    json::RawJson,
    message::{Message, Part, Role},
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    message::{self, SkillMessage},
    push,
};
use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{MemberValue, Merged, ObjectWriter, OnWire},
    request::{Configuration, SendRequest},
    wire::Wire,
};

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<SendRequest, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let named = members.peek("skill").and_then(|raw| text(raw).ok()).filter(|skill| !skill.is_empty());
    if named.is_some() {
        members.take("skill");
    }
    let is_plain = named.is_some() && !wire.is_proto();
    // 0.3's proto file names the message `request`, and a2a-sdk 1.3 writes the names of that file.
    let name = if wire == Wire::V03Proto && !members.has("message") && members.has("request") {
        "request"
    } else {
        "message"
    };
    let (message, wanted) = members.need(name, "an object", |raw| spoken(wire, raw, is_plain))?;
    let mut request = SendRequest::new(message);
    request.skill = named.or(wanted);
    request.metadata = members.object("metadata");
    match wire {
        Wire::V01 => {
            request.task_id = members.id("id")?;
            request.message.context_id = members.id("sessionId")?;
            request.configuration = loose_configuration(&mut members)?;
        }
        Wire::V03 => {
            request.correlation_id = members.id("correlationId")?;
            request.task_id = members.id("taskId")?;
        }
        Wire::V10 => request.tenant = members.id("tenant")?,
        Wire::V03Proto => {}
    }
    if wire != Wire::V01 {
        request.configuration = members
            .take_as("configuration", |raw| configuration(wire, ObjectMembers::read(raw)?))?
            .unwrap_or_else(|| Configuration {
                return_immediately: wire == Wire::V03Proto,
                ..Configuration::default()
            });
    }
    request.extra = members.rest();
    Ok(request)
}

/// Decodes the message, and the skill it requests. Where a skill was named beside it, the message may be the bare arguments: only an
/// object with a list of parts is a message then, whatever other members arguments have.
fn spoken(
    wire: Wire,
    raw: RawJson<'_>,
    is_plain: bool,
) -> Result<(Message, Option<String>), InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let has_parts = members.peek("parts").is_some_and(|parts| parts.get().starts_with('['));
    if is_plain && !has_parts {
        return Ok((Message::new("", Role::User, vec![Part::data(raw.into())]), None));
    }
    let skill = members.peek("skill").and_then(|raw| ObjectMembers::read(raw).ok()).and_then(|mut skill| {
        let id = skill.take("skillId").and_then(|raw| text(raw).ok())?;
        (skill.len() == 0 && !id.is_empty()).then_some(id)
    });
    if skill.is_some() {
        members.take("skill");
    }
    Ok((message::from_members(wire, members)?, skill))
}

fn configuration(wire: Wire, mut members: ObjectMembers<'_>) -> Result<Configuration, InvalidDocument> {
    let said = members.flag(waiting_name(wire))?;
    let return_immediately = match wire {
        Wire::V10 => said.unwrap_or(false),
        Wire::V03 => !said.unwrap_or(true),
        Wire::V03Proto => !said.unwrap_or(false),
        Wire::V01 => false,
    };
    Ok(Configuration {
        accepted_output_modes: members.texts("acceptedOutputModes")?,
        push: members.take_as(push_name(wire), push::inner)?,
        history_length: members.count("historyLength")?.filter(|length| wire == Wire::V10 || *length > 0),
        return_immediately,
        extra: members.rest(),
    })
}

/// In 0.1 these members have no object around them.
fn loose_configuration(members: &mut ObjectMembers<'_>) -> Result<Configuration, InvalidDocument> {
    Ok(Configuration {
        accepted_output_modes: members.texts("acceptedOutputModes")?,
        push: members.take_as(push_name(Wire::V01), push::inner)?,
        history_length: members.count("historyLength")?.filter(|length| *length > 0),
        ..Configuration::default()
    })
}

impl Serialize for OnWire<'_, SendRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        match wire {
            Wire::V10 => object.put_some("tenant", request.tenant.as_ref())?,
            Wire::V01 => {
                let id = request.message.task_id.as_ref().or(request.task_id.as_ref());
                object.put("id", id.unwrap_or(&request.message.id))?;
                object.put_some("sessionId", request.message.context_id.as_ref())?;
            }
            Wire::V03 | Wire::V03Proto => {}
        }
        let skill = request.skill.as_deref();
        object.put("message", &SkillMessage { wire, message: &request.message, skill })?;
        put_configuration(&mut object, wire, &request.configuration)?;
        if wire == Wire::V03 {
            object.put_some("correlationId", request.correlation_id.as_ref())?;
            object.put_some("taskId", request.task_id.as_ref())?;
        }
        let metadata = Merged::new(request.metadata.as_ref())
            .with("skillId", skill.map(MemberValue::Text))
            .with("correlationId", request.correlation_id.as_deref().map(MemberValue::Text));
        object.put_merged("metadata", &metadata)?;
        object.close(&request.extra, names(wire))
    }
}

fn put_configuration<M: SerializeMap>(
    object: &mut ObjectWriter<M>,
    wire: Wire,
    configuration: &Configuration,
) -> Result<(), M::Error> {
    match wire {
        Wire::V01 => put_choices(object, wire, configuration),
        Wire::V10 | Wire::V03 if *configuration == Configuration::default() => Ok(()),
        Wire::V10 | Wire::V03 | Wire::V03Proto => object.put("configuration", &OnWire(wire, configuration)),
    }
}

impl Serialize for OnWire<'_, Configuration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, configuration) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        put_choices(&mut object, wire, configuration)?;
        if wire == Wire::V10 {
            object.put_flag(waiting_name(wire), configuration.return_immediately)?;
        } else {
            object.put(waiting_name(wire), &!configuration.return_immediately)?;
        }
        object.close(&configuration.extra, &[push_name(wire), waiting_name(wire)])
    }
}

fn put_choices<M: SerializeMap>(
    object: &mut ObjectWriter<M>,
    wire: Wire,
    configuration: &Configuration,
) -> Result<(), M::Error> {
    if wire == Wire::V03 {
        // Required before 0.2.6, where an empty list means the same as none.
        object.put("acceptedOutputModes", &configuration.accepted_output_modes)?;
    } else {
        object.put_texts("acceptedOutputModes", &configuration.accepted_output_modes)?;
    }
    object.put_some(
        push_name(wire),
        configuration.push.as_ref().map(|push| push::NestedPush(wire, push)).as_ref(),
    )?;
    let history_length = configuration.history_length.filter(|length| wire == Wire::V10 || *length > 0);
    object.put_some("historyLength", history_length.as_ref())
}

/// Members of a send request.
const fn names(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::V10 => &["configuration", "tenant"],
        Wire::V03 => &["configuration", "correlationId", "taskId"],
        Wire::V03Proto => &["configuration"],
        Wire::V01 => &["sessionId", "acceptedOutputModes", "pushNotification", "historyLength"],
    }
}

/// Name of the member for blocking requests.
const fn waiting_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V10) { "returnImmediately" } else { "blocking" }
}

/// Name of a webhook in a send request.
const fn push_name(wire: Wire) -> &'static str {
    match wire {
        Wire::V10 => "taskPushNotificationConfig",
        Wire::V03 => "pushNotificationConfig",
        Wire::V03Proto | Wire::V01 => "pushNotification",
    }
}
