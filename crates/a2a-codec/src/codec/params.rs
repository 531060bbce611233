//! Parameters of every operation.
//!
//! Lossy: 1.0 has no metadata for reading a task or subscribing to it; 0.x has no tenants, and a history length of 0 means the complete
//! history.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use super::{push, send, task};
use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{ObjectWriter, OnWire},
    request::{A2aOperation, A2aRequest, ExtendedCard, GetTask, ListTasks, TaskRef},
    wire::Wire,
};

pub(crate) fn decode(
    wire: Wire,
    operation: A2aOperation,
    raw: RawJson<'_>,
) -> Result<A2aRequest, InvalidDocument> {
    Ok(match operation {
        A2aOperation::Send => A2aRequest::Send(send::decode(wire, raw)?),
        A2aOperation::Stream => A2aRequest::Stream(send::decode(wire, raw)?),
        A2aOperation::Get => A2aRequest::Get(get(wire, raw)?),
        A2aOperation::List => A2aRequest::List(list(raw)?),
        A2aOperation::Cancel => A2aRequest::Cancel(task_ref(raw)?),
        A2aOperation::Subscribe => A2aRequest::Subscribe(task_ref(raw)?),
        A2aOperation::PushCreate => A2aRequest::PushCreate(push::decode(wire, raw)?),
        A2aOperation::PushGet => A2aRequest::PushGet(push::reference(wire, raw)?),
        A2aOperation::PushList => A2aRequest::PushList(push::listing(wire, raw)?),
        A2aOperation::PushDelete => A2aRequest::PushDelete(push::reference(wire, raw)?),
        A2aOperation::ExtendedCard => A2aRequest::ExtendedCard(extended_card(raw)?),
    })
}

fn get(wire: Wire, raw: RawJson<'_>) -> Result<GetTask, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(GetTask {
        id: members.need("id", "a string", text)?,
        history_length: members.count("historyLength")?.filter(|length| wire == Wire::V10 || *length > 0),
        tenant: members.id("tenant")?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

fn task_ref(raw: RawJson<'_>) -> Result<TaskRef, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(TaskRef {
        id: members.need("id", "a string", text)?,
        tenant: members.id("tenant")?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

fn list(raw: RawJson<'_>) -> Result<ListTasks, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
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

fn extended_card(raw: RawJson<'_>) -> Result<ExtendedCard, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(ExtendedCard { tenant: members.id("tenant")?, extra: members.rest() })
}

impl Serialize for OnWire<'_, A2aRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = self.0;
        match self.1 {
            A2aRequest::Send(request) | A2aRequest::Stream(request) => {
                OnWire(wire, request).serialize(serializer)
            }
            A2aRequest::Get(request) => OnWire(wire, request).serialize(serializer),
            A2aRequest::List(request) => OnWire(wire, request).serialize(serializer),
            A2aRequest::Cancel(request) => task_params(wire, request, true, serializer),
            A2aRequest::Subscribe(request) => task_params(wire, request, wire != Wire::V10, serializer),
            A2aRequest::PushCreate(request) => OnWire(wire, request).serialize(serializer),
            A2aRequest::PushGet(request) | A2aRequest::PushDelete(request) => {
                OnWire(wire, request).serialize(serializer)
            }
            A2aRequest::PushList(request) => OnWire(wire, request).serialize(serializer),
            A2aRequest::ExtendedCard(request) => OnWire(wire, request).serialize(serializer),
        }
    }
}

impl Serialize for OnWire<'_, GetTask> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
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
    let mut object = ObjectWriter::open(serializer)?;
    if wire == Wire::V10 {
        object.put_some("tenant", request.tenant.as_ref())?;
    }
    object.put("id", &request.id)?;
    if has_metadata {
        object.put_some("metadata", request.metadata.as_ref())?;
    }
    object.close(&request.extra, &[])
}

impl Serialize for OnWire<'_, ListTasks> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
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

impl Serialize for OnWire<'_, ExtendedCard> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", request.tenant.as_ref())?;
        }
        object.close(&request.extra, &[])
    }
}
