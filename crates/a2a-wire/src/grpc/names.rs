//! The requests of 0.3's gRPC, which name things by paths: `tasks/t/pushNotificationConfigs/c`.

use rialto_model::json::RawJson;
use serde_json::{Value, json};

use crate::{
    codec::{
        params,
        push::{self, Creation},
    },
    garbled::Garbled,
    members::{Members, text},
    object::{On, text_of},
    request::{ExtendedCard, GetTask, Operation, PushListing, PushRef, Request, TaskRef},
    wire::Wire,
};

/// The JSON of a request.
pub(super) fn params(request: &Request) -> String {
    let task = |id: &str| format!("tasks/{id}");
    let named = |name: String| json!({ "name": name }).to_string();
    match request {
        Request::Send(_) | Request::Stream(_) | Request::List(_) => On(Wire::V03Proto, request).text(),
        Request::Get(get) => {
            let mut params = json!({ "name": task(&get.id) });
            if let Some(length) = get.history_length {
                params["historyLength"] = Value::from(length);
            }
            params.to_string()
        }
        Request::Cancel(task_ref) | Request::Subscribe(task_ref) => named(task(&task_ref.id)),
        Request::PushCreate(config) => text_of(&Creation(config)),
        Request::PushGet(one) | Request::PushDelete(one) => {
            let id = one.id.as_deref().unwrap_or_default();
            named(format!("tasks/{}/pushNotificationConfigs/{id}", one.task_id))
        }
        Request::PushList(listing) => json!({
            "parent": task(&listing.task_id),
            "pageSize": listing.page_size,
            "pageToken": listing.page_token,
        })
        .to_string(),
        Request::ExtendedCard(_) => "{}".to_owned(),
    }
}

/// The JSON of a card in which the logins are spelt as protobuf spells them in both generations, under 0.3's name.
pub(super) fn card(text: &str) -> Result<String, Garbled> {
    let mut card: Value = serde_json::from_str(text).map_err(|error| Garbled::not_json(&error))?;
    if let Some(members) = card.as_object_mut()
        && let Some(requirements) = members.get("securityRequirements").cloned()
    {
        members.insert("security".to_owned(), requirements);
    }
    Ok(card.to_string())
}

/// Reads the JSON of a request.
pub(super) fn read(operation: Operation, raw: RawJson<'_>) -> Result<Request, Garbled> {
    let mut members = Members::read(raw)?;
    let name = |members: &mut Members<'_>, name: &str| members.need(name, "a string", text);
    Ok(match operation {
        Operation::Get => Request::Get(GetTask {
            id: task_in(&name(&mut members, "name")?),
            history_length: members.count("historyLength")?.filter(|length| *length > 0),
            ..GetTask::default()
        }),
        Operation::Cancel | Operation::Subscribe => {
            let task = TaskRef { id: task_in(&name(&mut members, "name")?), ..TaskRef::default() };
            if operation == Operation::Cancel { Request::Cancel(task) } else { Request::Subscribe(task) }
        }
        Operation::PushGet | Operation::PushDelete => {
            let (task_id, id) = push::resource(&name(&mut members, "name")?);
            let one = PushRef { task_id, id, ..PushRef::default() };
            if operation == Operation::PushGet { Request::PushGet(one) } else { Request::PushDelete(one) }
        }
        Operation::PushList => Request::PushList(PushListing {
            task_id: task_in(&name(&mut members, "parent")?),
            page_size: members.count("pageSize")?,
            page_token: members.id("pageToken")?,
            ..PushListing::default()
        }),
        Operation::ExtendedCard => Request::ExtendedCard(ExtendedCard::default()),
        Operation::Send | Operation::Stream | Operation::List | Operation::PushCreate => {
            params::decode(Wire::V03Proto, operation, raw)?
        }
    })
}

/// The task that a resource name begins with.
fn task_in(name: &str) -> String {
    push::resource(name).0
}
