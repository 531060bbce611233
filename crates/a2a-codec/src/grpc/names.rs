//! Requests of 0.3's gRPC, which use resource names: `tasks/t/pushNotificationConfigs/c`.

use rialto_model::json::RawJson;
use serde_json::{Value, json};

use crate::{
    codec::{
        params,
        push::{self, PushCreation},
    },
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{OnWire, text_of},
    request::{A2aOperation, A2aRequest, ExtendedCard, GetTask, PushListing, PushRef, TaskRef},
    wire::Wire,
};

/// JSON of a request.
pub(super) fn params(request: &A2aRequest) -> String {
    let task = |id: &str| format!("tasks/{id}");
    let named = |name: String| json!({ "name": name }).to_string();
    match request {
        A2aRequest::Send(_) | A2aRequest::Stream(_) | A2aRequest::List(_) => {
            OnWire(Wire::V03Proto, request).text()
        }
        A2aRequest::Get(get) => {
            let mut params = json!({ "name": task(&get.id) });
            if let Some(length) = get.history_length {
                params["historyLength"] = Value::from(length);
            }
            params.to_string()
        }
        A2aRequest::Cancel(task_ref) | A2aRequest::Subscribe(task_ref) => named(task(&task_ref.id)),
        A2aRequest::PushCreate(config) => text_of(&PushCreation(config)),
        A2aRequest::PushGet(one) | A2aRequest::PushDelete(one) => {
            let id = one.id.as_deref().unwrap_or_default();
            named(format!("tasks/{}/pushNotificationConfigs/{id}", one.task_id))
        }
        A2aRequest::PushList(listing) => json!({
            "parent": task(&listing.task_id),
            "pageSize": listing.page_size,
            "pageToken": listing.page_token,
        })
        .to_string(),
        A2aRequest::ExtendedCard(_) => "{}".to_owned(),
    }
}

/// JSON of a card with security schemes in protobuf's format, under 0.3's name.
pub(super) fn card(text: &str) -> Result<String, InvalidDocument> {
    let mut card: Value = serde_json::from_str(text).map_err(|error| InvalidDocument::not_json(&error))?;
    if let Some(members) = card.as_object_mut()
        && let Some(requirements) = members.get("securityRequirements").cloned()
    {
        members.insert("security".to_owned(), requirements);
    }
    Ok(card.to_string())
}

/// Decodes the JSON of a request.
pub(super) fn read(operation: A2aOperation, raw: RawJson<'_>) -> Result<A2aRequest, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let name = |members: &mut ObjectMembers<'_>, name: &str| members.need(name, "a string", text);
    Ok(match operation {
        A2aOperation::Get => A2aRequest::Get(GetTask {
            id: task_in(&name(&mut members, "name")?),
            history_length: members.count("historyLength")?.filter(|length| *length > 0),
            ..GetTask::default()
        }),
        A2aOperation::Cancel | A2aOperation::Subscribe => {
            let task = TaskRef { id: task_in(&name(&mut members, "name")?), ..TaskRef::default() };
            if operation == A2aOperation::Cancel {
                A2aRequest::Cancel(task)
            } else {
                A2aRequest::Subscribe(task)
            }
        }
        A2aOperation::PushGet | A2aOperation::PushDelete => {
            let (task_id, id) = push::resource(&name(&mut members, "name")?);
            let one = PushRef { task_id, id, ..PushRef::default() };
            if operation == A2aOperation::PushGet {
                A2aRequest::PushGet(one)
            } else {
                A2aRequest::PushDelete(one)
            }
        }
        A2aOperation::PushList => A2aRequest::PushList(PushListing {
            task_id: task_in(&name(&mut members, "parent")?),
            page_size: members.count("pageSize")?,
            page_token: members.id("pageToken")?,
            ..PushListing::default()
        }),
        A2aOperation::ExtendedCard => A2aRequest::ExtendedCard(ExtendedCard::default()),
        A2aOperation::Send | A2aOperation::Stream | A2aOperation::List | A2aOperation::PushCreate => {
            params::decode(Wire::V03Proto, operation, raw)?
        }
    })
}

/// Task in a resource name.
fn task_in(name: &str) -> String {
    push::resource(name).0
}
