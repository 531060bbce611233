//! Webhooks.
//!
//! 1.0 writes one flat object; 0.x puts the webhook inside an object that names the task, by id or, in 0.3's REST, by a
//! resource name. What is bent: 1.0 knows one authentication scheme, so only the first is written.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use crate::{
    garbled::Garbled,
    members::{Members, list, text},
    object::{Each, Object, On},
    request::{PushAuthentication, PushConfig, PushList, PushListing, PushRef},
    wire::Wire,
};

/// The webhook alone, as 0.x nests it and a send request carries it.
pub(crate) struct Inner<'a>(pub(crate) Wire, pub(crate) &'a PushConfig);

/// The body that creates a webhook in 0.3's REST.
pub(crate) struct Creation<'a>(pub(crate) &'a PushConfig);

const NESTED: &str = "pushNotificationConfig";
const COLLECTION: &str = "/pushNotificationConfigs/";

/// A webhook with the task it belongs to.
pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<PushConfig, Garbled> {
    let mut members = Members::read(raw)?;
    // What has an address is the webhook itself, whatever else it holds; what wraps one has none.
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
    let Some(inner) = members.take(NESTED) else { return from_members(members) };
    let (mut task_id, mut id) = (members.id(task_name(wire))?, None);
    if let Some(name) = members.id("name")? {
        let (task, config) = resource(&name);
        task_id = task_id.or(Some(task));
        id = config;
    }
    members.absorb(Members::read(inner).map_err(|garbled| garbled.at(NESTED))?);
    let mut config = from_members(members).map_err(|garbled| garbled.at(NESTED))?;
    config.task_id = task_id.or(config.task_id);
    config.id = config.id.or(id);
    Ok(config)
}

/// A webhook alone.
pub(crate) fn inner(raw: RawJson<'_>) -> Result<PushConfig, Garbled> {
    from_members(Members::read(raw)?)
}

fn from_members(mut members: Members<'_>) -> Result<PushConfig, Garbled> {
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

fn authentication(raw: RawJson<'_>) -> Result<PushAuthentication, Garbled> {
    let mut members = Members::read(raw)?;
    let mut schemes = members.texts("schemes")?;
    schemes.extend(members.id("scheme")?);
    Ok(PushAuthentication { schemes, credentials: members.id("credentials")?, extra: members.rest() })
}

pub(crate) fn reference(wire: Wire, raw: RawJson<'_>) -> Result<PushRef, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(PushRef {
        tenant: members.id("tenant")?,
        task_id: members.need(owner_name(wire), "a string", text)?,
        id: members.id(if wire == Wire::V10 { "id" } else { "pushNotificationConfigId" })?,
        extra: members.rest(),
    })
}

pub(crate) fn listing(wire: Wire, raw: RawJson<'_>) -> Result<PushListing, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(PushListing {
        tenant: members.id("tenant")?,
        task_id: members.need(owner_name(wire), "a string", text)?,
        page_size: members.count("pageSize")?,
        page_token: members.id("pageToken")?,
        extra: members.rest(),
    })
}

pub(crate) fn listed(wire: Wire, raw: RawJson<'_>) -> Result<PushList, Garbled> {
    if raw.get().starts_with('[') {
        let configs = list(raw, |raw| decode(wire, raw))?;
        return Ok(PushList { configs, ..PushList::default() });
    }
    let mut members = Members::read(raw)?;
    Ok(PushList {
        configs: members.list("configs", |raw| decode(wire, raw))?,
        next_page_token: members.text("nextPageToken")?.unwrap_or_default(),
        extra: members.rest(),
    })
}

impl Serialize for On<'_, PushConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, config) = *self;
        if wire == Wire::V10 {
            return Inner(wire, config).serialize(serializer);
        }
        let task_id = config.task_id.as_deref().unwrap_or_default();
        let mut object = Object::open(serializer)?;
        if wire == Wire::V03Proto {
            let id = config.id.as_deref().unwrap_or_default();
            object.put("name", &format!("tasks/{task_id}{COLLECTION}{id}"))?;
        } else {
            object.put(task_name(wire), task_id)?;
        }
        object.put(NESTED, &Inner(wire, config))?;
        object.end()
    }
}

impl Serialize for Inner<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, config) = *self;
        let mut object = Object::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("tenant", config.tenant.as_ref())?;
            object.put_some("taskId", config.task_id.as_ref())?;
        }
        if wire != Wire::V01 {
            object.put_some("id", config.id.as_ref())?;
        }
        object.put("url", &config.url)?;
        object.put_some("token", config.token.as_ref())?;
        object
            .put_some("authentication", config.authentication.as_ref().map(|how| On(wire, how)).as_ref())?;
        object.close(&config.extra, &[])
    }
}

impl Serialize for Creation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::open(serializer)?;
        object.put("parent", &format!("tasks/{}", self.0.task_id.as_deref().unwrap_or_default()))?;
        object.put_some("configId", self.0.id.as_ref())?;
        object.put("config", &On(Wire::V03Proto, self.0))?;
        object.end()
    }
}

impl Serialize for On<'_, PushAuthentication> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, how) = *self;
        let mut object = Object::open(serializer)?;
        if wire == Wire::V10 {
            object.put_some("scheme", how.schemes.first())?;
        } else {
            object.put("schemes", &how.schemes)?;
        }
        object.put_some("credentials", how.credentials.as_ref())?;
        object.close(&how.extra, &[])
    }
}

impl Serialize for On<'_, PushRef> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = Object::open(serializer)?;
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

impl Serialize for On<'_, PushListing> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, request) = *self;
        let mut object = Object::open(serializer)?;
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

impl Serialize for On<'_, PushList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, list) = *self;
        if !wire.is_proto() {
            return Each(wire, &list.configs).serialize(serializer);
        }
        let mut object = Object::open(serializer)?;
        object.put("configs", &Each(wire, &list.configs))?;
        object.put("nextPageToken", &list.next_page_token)?;
        object.close(&list.extra, &[])
    }
}

/// The task and webhook that a resource name (`tasks/t/pushNotificationConfigs/c`) names.
pub(crate) fn resource(name: &str) -> (String, Option<String>) {
    let name = name.strip_prefix("tasks/").unwrap_or(name);
    match name.split_once(COLLECTION) {
        Some((task, config)) => (task.to_owned(), Some(config.to_owned()).filter(|id| !id.is_empty())),
        None => (name.strip_suffix(COLLECTION.trim_end_matches('/')).unwrap_or(name).to_owned(), None),
    }
}

/// What the task's id is called beside a webhook.
const fn task_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "id" } else { "taskId" }
}

/// What the task's id is called in a request about its webhooks.
const fn owner_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V10) { "taskId" } else { "id" }
}
