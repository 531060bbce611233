//! The parameters of every operation.
//!
//! What is bent: 1.0 has no metadata where a task is read or subscribed to; 0.x has no tenants, and means "all of it" by a
//! history length of 0.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use super::{push, send, task};
use crate::{
    garbled::Garbled,
    members::{Members, text},
    object::{Object, On},
    request::{ExtendedCard, GetTask, ListTasks, Operation, Request, TaskRef},
    wire::Wire,
};

pub(crate) fn decode(wire: Wire, operation: Operation, raw: RawJson<'_>) -> Result<Request, Garbled> {
    Ok(match operation {
        Operation::Send => Request::Send(send::decode(wire, raw)?),
        Operation::Stream => Request::Stream(send::decode(wire, raw)?),
        Operation::Get => Request::Get(get(wire, raw)?),
        Operation::List => Request::List(list(raw)?),
        Operation::Cancel => Request::Cancel(task_ref(raw)?),
        Operation::Subscribe => Request::Subscribe(task_ref(raw)?),
        Operation::PushCreate => Request::PushCreate(push::decode(wire, raw)?),
        Operation::PushGet => Request::PushGet(push::reference(wire, raw)?),
        Operation::PushList => Request::PushList(push::listing(wire, raw)?),
        Operation::PushDelete => Request::PushDelete(push::reference(wire, raw)?),
        Operation::ExtendedCard => Request::ExtendedCard(extended_card(raw)?),
    })
}

fn get(wire: Wire, raw: RawJson<'_>) -> Result<GetTask, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(GetTask {
        id: members.need("id", "a string", text)?,
        history_length: members.count("historyLength")?.filter(|length| wire == Wire::V10 || *length > 0),
        tenant: members.id("tenant")?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

fn task_ref(raw: RawJson<'_>) -> Result<TaskRef, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(TaskRef {
        id: members.need("id", "a string", text)?,
        tenant: members.id("tenant")?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

fn list(raw: RawJson<'_>) -> Result<ListTasks, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(ListTasks {
        tenant: members.id("tenant")?,
        context_id: members.id("contextId")?,
        status: members.text("status")?.map(|name| task::parse_state(&name)),
        page_size: members.count("pageSize")?,
        page_token: members.id("pageToken")?,
        history_length: members.count("historyLength")?,
        status_timestamp_after: members.id("statusTimestampAfter")?,
        include_artifacts: members.flag("includeArtifacts")?,
        extra: members.rest(),
    })
}

fn extended_card(raw: RawJson<'_>) -> Result<ExtendedCard, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(ExtendedCard { tenant: members.id("tenant")?, extra: members.rest() })
}

impl Serialize for On<'_, Request> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = self.0;
        match self.1 {
            Request::Send(request) | Request::Stream(request) => On(wire, request).serialize(serializer),
            Request::Get(request) => On(wire, request).serialize(serializer),
            Request::List(request) => On(wire, request).serialize(serializer),
            Request::Cancel(request) => task_params(wire, request, true, serializer),
            Request::Subscribe(request) => task_params(wire, request, wire != Wire::V10, serializer),
            Request::PushCreate(request) => On(wire, request).serialize(serializer),
            Request::PushGet(request) | Request::PushDelete(request) => {
                On(wire, request).serialize(serializer)
            }
            Request::PushList(request) => On(wire, request).serialize(serializer),
            Request::ExtendedCard(request) => On(wire, request).serialize(serializer),
        }
    }
}

impl Serialize for On<'_, GetTask> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = Object::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", request.tenant.as_ref())?;
        }
        object.put("id", &request.id)?;
        let history_length = request.history_length.filter(|length| wire == Wire::V10 || *length > 0);
        object.put_some("historyLength", history_length.as_ref())?;
        if wire != Wire::V10 {
            object.put_some("metadata", request.metadata.as_ref())?;
        }
        object.close(&request.extra, &[])
    }
}

fn task_params<S: Serializer>(
    wire: Wire,
    request: &TaskRef,
    has_metadata: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = Object::open(serializer)?;
    if wire == Wire::V10 {
        object.put_some("tenant", request.tenant.as_ref())?;
    }
    object.put("id", &request.id)?;
    if has_metadata {
        object.put_some("metadata", request.metadata.as_ref())?;
    }
    object.close(&request.extra, &[])
}

impl Serialize for On<'_, ListTasks> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = Object::open(serializer)?;
        object.put_some("tenant", request.tenant.as_ref())?;
        object.put_some("contextId", request.context_id.as_ref())?;
        object.put_some("status", request.status.map(|state| task::state_name(wire, state)).as_ref())?;
        object.put_some("pageSize", request.page_size.as_ref())?;
        object.put_some("pageToken", request.page_token.as_ref())?;
        object.put_some("historyLength", request.history_length.as_ref())?;
        object.put_some("statusTimestampAfter", request.status_timestamp_after.as_ref())?;
        object.put_some("includeArtifacts", request.include_artifacts.as_ref())?;
        object.close(&request.extra, &[])
    }
}

impl Serialize for On<'_, ExtendedCard> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = Object::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", request.tenant.as_ref())?;
        }
        object.close(&request.extra, &[])
    }
}
