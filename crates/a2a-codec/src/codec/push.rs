//! Webhooks.
//!
//! 1.0 writes one flat object; 0.x puts the webhook inside an object that names the task, by id or, in 0.3's REST, by a resource name.
//! Lossy: 1.0 has one authentication scheme, so only the first is written.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, list, text},
    object::{Each, ObjectWriter, OnWire},
    request::{PushAuthentication, PushConfig, PushList, PushListing, PushRef},
    wire::Wire,
};

/// Webhook alone, as 0.x nests it and a send request contains it.
pub(crate) struct NestedPush<'a>(pub(crate) Wire, pub(crate) &'a PushConfig);

/// Body that creates a webhook in 0.3's REST.
pub(crate) struct PushCreation<'a>(pub(crate) &'a PushConfig);

const NESTED_MEMBER: &str = "pushNotificationConfig";
const COLLECTION_PATH: &str = "/pushNotificationConfigs/";

/// Decodes a webhook with its task.
pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<PushConfig, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    // An object with a URL is the webhook itself, whatever else it has; a wrapper has none.
    if members.has("url") {
        return from_members(members);
    }
    if wire == Wire::V03Proto && members.has("config") {
        let parent = members.id("parent")?;
        let id = members.id("configId")?;
        let mut config = members.need("config", "an object", |raw| decode(wire, raw))?;
        config.task_id = config.task_id.or_else(|| parent.as_deref().map(|name| resource(name).0));
        config.id = config.id.or(id);
        return Ok(config);
    }
    let Some(inner) = members.take(NESTED_MEMBER) else { return from_members(members) };
    let (mut task_id, mut id) = (members.id(task_name(wire))?, None);
    if let Some(name) = members.id("name")? {
        let (task, config) = resource(&name);
        task_id = task_id.or(Some(task));
        id = config;
    }
    members.absorb(ObjectMembers::read(inner).map_err(|garbled| garbled.at(NESTED_MEMBER))?);
    let mut config = from_members(members).map_err(|garbled| garbled.at(NESTED_MEMBER))?;
    config.task_id = task_id.or(config.task_id);
    config.id = config.id.or(id);
    Ok(config)
}

/// Decodes a webhook alone.
pub(crate) fn inner(raw: RawJson<'_>) -> Result<PushConfig, InvalidDocument> {
    from_members(ObjectMembers::read(raw)?)
}

fn from_members(mut members: ObjectMembers<'_>) -> Result<PushConfig, InvalidDocument> {
    Ok(PushConfig {
        tenant: members.id("tenant")?,
        task_id: members.id("taskId")?,
        id: members.id("id")?,
        url: members.need("url", "a string", text)?,
        token: members.id("token")?,
        authentication: members.take_as("authentication", authentication)?,
        extra: members.rest(),
    })
}

fn authentication(raw: RawJson<'_>) -> Result<PushAuthentication, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let mut schemes = members.texts("schemes")?;
    schemes.extend(members.id("scheme")?);
    Ok(PushAuthentication { schemes, credentials: members.id("credentials")?, extra: members.rest() })
}

pub(crate) fn reference(wire: Wire, raw: RawJson<'_>) -> Result<PushRef, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(PushRef {
        tenant: members.id("tenant")?,
        task_id: members.need(owner_name(wire), "a string", text)?,
        id: members.id(if wire == Wire::V10 { "id" } else { "pushNotificationConfigId" })?,
        extra: members.rest(),
    })
}

pub(crate) fn listing(wire: Wire, raw: RawJson<'_>) -> Result<PushListing, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(PushListing {
        tenant: members.id("tenant")?,
        task_id: members.need(owner_name(wire), "a string", text)?,
        page_size: members.count("pageSize")?,
        page_token: members.id("pageToken")?,
        extra: members.rest(),
    })
}

pub(crate) fn listed(wire: Wire, raw: RawJson<'_>) -> Result<PushList, InvalidDocument> {
    if raw.get().starts_with('[') {
        let configs = list(raw, |raw| decode(wire, raw))?;
        return Ok(PushList { configs, ..PushList::default() });
    }
    let mut members = ObjectMembers::read(raw)?;
    Ok(PushList {
        configs: members.list("configs", |raw| decode(wire, raw))?,
        next_page_token: members.text("nextPageToken")?.unwrap_or_default(),
        extra: members.rest(),
    })
}

impl Serialize for OnWire<'_, PushConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, config) = *self;
        if wire == Wire::V10 {
            return NestedPush(wire, config).serialize(serializer);
        }
        let task_id = config.task_id.as_deref().unwrap_or_default();
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V03Proto {
            let id = config.id.as_deref().unwrap_or_default();
            object.put("name", &format!("tasks/{task_id}{COLLECTION_PATH}{id}"))?;
        } else {
            object.put(task_name(wire), task_id)?;
        }
        object.put(NESTED_MEMBER, &NestedPush(wire, config))?;
        object.end()
    }
}

impl Serialize for NestedPush<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, config) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", config.tenant.as_ref())?;
            object.put_some("taskId", config.task_id.as_ref())?;
        }
        if wire != Wire::V01 {
            object.put_some("id", config.id.as_ref())?;
        }
        object.put("url", &config.url)?;
        object.put_some("token", config.token.as_ref())?;
        object.put_some(
            "authentication",
            config.authentication.as_ref().map(|how| OnWire(wire, how)).as_ref(),
        )?;
        object.close(&config.extra, &[])
    }
}

impl Serialize for PushCreation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("parent", &format!("tasks/{}", self.0.task_id.as_deref().unwrap_or_default()))?;
        object.put_some("configId", self.0.id.as_ref())?;
        object.put("config", &OnWire(Wire::V03Proto, self.0))?;
        object.end()
    }
}

impl Serialize for OnWire<'_, PushAuthentication> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, how) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("scheme", how.schemes.first())?;
        } else {
            object.put("schemes", &how.schemes)?;
        }
        object.put_some("credentials", how.credentials.as_ref())?;
        object.close(&how.extra, &[])
    }
}

impl Serialize for OnWire<'_, PushRef> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", request.tenant.as_ref())?;
        }
        object.put(owner_name(wire), &request.task_id)?;
        match wire {
            Wire::V10 => object.put_some("id", request.id.as_ref())?,
            Wire::V03 | Wire::V03Proto => object.put_some("pushNotificationConfigId", request.id.as_ref())?,
            Wire::V01 => {}
        }
        object.close(&request.extra, &["pushNotificationConfigId"])
    }
}

impl Serialize for OnWire<'_, PushListing> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", request.tenant.as_ref())?;
        }
        object.put(owner_name(wire), &request.task_id)?;
        if wire == Wire::V10 {
            object.put_some("pageSize", request.page_size.as_ref())?;
            object.put_some("pageToken", request.page_token.as_ref())?;
        }
        object.close(&request.extra, &[])
    }
}

impl Serialize for OnWire<'_, PushList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, list) = *self;
        if !wire.is_proto() {
            return Each(wire, &list.configs).serialize(serializer);
        }
        let mut object = ObjectWriter::open(serializer)?;
        object.put("configs", &Each(wire, &list.configs))?;
        object.put("nextPageToken", &list.next_page_token)?;
        object.close(&list.extra, &[])
    }
}

/// Splits a resource name (`tasks/t/pushNotificationConfigs/c`) into task and webhook.
pub(crate) fn resource(name: &str) -> (String, Option<String>) {
    let name = name.strip_prefix("tasks/").unwrap_or(name);
    match name.split_once(COLLECTION_PATH) {
        Some((task, config)) => (task.to_owned(), Some(config.to_owned()).filter(|id| !id.is_empty())),
        None => (name.strip_suffix(COLLECTION_PATH.trim_end_matches('/')).unwrap_or(name).to_owned(), None),
    }
}

/// Name of the task id beside a webhook.
const fn task_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "id" } else { "taskId" }
}

/// Name of the task id in a request about its webhooks.
const fn owner_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V10) { "taskId" } else { "id" }
}
