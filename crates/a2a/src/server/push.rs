//! Push notification configs: creation, validation and access.

use std::net::IpAddr;

use rialto_a2a_codec::{
    error::ErrorCode,
    request::{PushAuthentication, PushConfig, PushList, PushListing, PushRef},
    wire::Wire,
};
use rialto_http_client::address::Reach;
use rialto_model::{
    call::EntryProtocol,
    credential::Secret,
    ids::fresh,
    json::Extra,
    push::{PushDeliveryState, PushLogin, PushSubscription},
    task::TaskHead,
};
use url::{Host, Url};

use super::{
    error::ServiceError,
    render,
    request_context::A2aRequestContext,
    service::{Service, ServiceReply},
};

/// Maximum number of push notification configs of a task.
const MAX_CONFIGS_PER_TASK: usize = 16;

/// Maximum length of a text in a config.
const MAX_TEXT_LENGTH: usize = 8 * 1024;

// === impl Service ===

impl Service {
    /// Adds a config to an existing task.
    pub(crate) async fn create_push(
        &self,
        visit: &A2aRequestContext,
        config: PushConfig,
    ) -> Result<ServiceReply, ServiceError> {
        let id = config.task_id.clone().unwrap_or_default();
        let task = self.find(visit, &id).await?;
        let push = self.push_of(visit, &task.head, config)?;
        let known = self.engine.push_configs().list(&visit.caller, &task.head.id).await?;
        if known.len() >= MAX_CONFIGS_PER_TASK && known.iter().all(|known| known.id != push.id) {
            let message =
                format!("task {id} is told to {MAX_CONFIGS_PER_TASK} addresses already; delete one first");
            return Err(ServiceError::new(ErrorCode::InvalidParams, message));
        }
        self.engine.push_configs().put(&push).await?;
        self.asked_to_push.notify_one();
        Ok(ServiceReply::Push(told(&task.head, &push)))
    }

    /// Adds a config to a new task.
    pub(crate) async fn push_along(
        &self,
        visit: &A2aRequestContext,
        head: &TaskHead,
        config: PushConfig,
    ) -> Result<(), ServiceError> {
        let push = self.push_of(visit, head, config)?;
        self.engine.push_configs().put(&push).await?;
        self.asked_to_push.notify_one();
        Ok(())
    }

    pub(crate) async fn get_push(
        &self,
        visit: &A2aRequestContext,
        wanted: &PushRef,
    ) -> Result<ServiceReply, ServiceError> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.push_configs().list(&visit.caller, &task.head.id).await?;
        let is_it = |push: &&PushSubscription| wanted.id.as_ref().is_none_or(|id| *id == push.id);
        let push = pushes.iter().find(is_it).ok_or_else(|| no_config(wanted))?;
        Ok(ServiceReply::Push(told(&task.head, push)))
    }

    pub(crate) async fn list_pushes(
        &self,
        visit: &A2aRequestContext,
        wanted: &PushListing,
    ) -> Result<ServiceReply, ServiceError> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.push_configs().list(&visit.caller, &task.head.id).await?;
        // They always fit on one page.
        let configs = pushes.iter().map(|push| told(&task.head, push)).collect();
        Ok(ServiceReply::Pushes(PushList { configs, next_page_token: String::new(), extra: Extra::new() }))
    }

    pub(crate) async fn delete_push(
        &self,
        visit: &A2aRequestContext,
        wanted: &PushRef,
    ) -> Result<ServiceReply, ServiceError> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.push_configs().list(&visit.caller, &task.head.id).await?;
        let only = pushes.first().filter(|_| pushes.len() == 1).map(|push| push.id.clone());
        // Idempotent: a missing config is already deleted.
        if let Some(id) = wanted.id.clone().or(only) {
            self.engine.push_configs().remove(&visit.caller, &task.head.id, &id).await?;
        }
        Ok(ServiceReply::Nothing)
    }

    /// Rejects a config that could never be delivered, before anything starts.
    pub(crate) fn check_push(&self, config: &PushConfig) -> Result<(), ServiceError> {
        let invalid = |what: &str| {
            Err(ServiceError::new(ErrorCode::InvalidParams, format!("push notification config: {what}")))
        };
        let Ok(url) = Url::parse(&config.url) else {
            return invalid("url: expected an address such as https://example.com/hook");
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return invalid("url: expected an http or https address");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return invalid("url: expected no user and password; use authentication");
        }
        let login = config.authentication.as_ref();
        let credentials = login.and_then(|login| login.credentials.as_ref());
        let texts = [Some(&config.url), config.id.as_ref(), config.token.as_ref(), credentials];
        if texts
            .into_iter()
            .flatten()
            .any(|text| text.len() > MAX_TEXT_LENGTH || text.contains(['\r', '\n', '\0']))
        {
            return invalid("expected texts of one line and at most 8192 characters");
        }
        // Host names are checked at each delivery, after resolution.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if let Some(address) = literal
            && let Some(what) = self.config.push_reach().forbids(address)
        {
            // Some addresses are blocked in every configuration.
            let advice =
                if Reach::Private.forbids(address).is_none() { "; see [a2a] push_private" } else { "" };
            return invalid(&format!("url: {address} is {what}{advice}"));
        }
        Ok(())
    }

    fn push_of(
        &self,
        visit: &A2aRequestContext,
        head: &TaskHead,
        config: PushConfig,
    ) -> Result<PushSubscription, ServiceError> {
        self.check_push(&config)?;
        Ok(PushSubscription {
            task: head.id.clone(),
            id: config.id.filter(|id| !id.is_empty()).unwrap_or_else(|| unnamed(visit.wire)),
            scope: head.scope.clone(),
            caller: head.caller.clone(),
            created_with: visit.caller.token.clone(),
            url: config.url,
            token: config.token.filter(|token| !token.is_empty()).map(Secret::from),
            login: config.authentication.map(|login| PushLogin {
                schemes: login.schemes,
                credentials: login.credentials.map(Secret::from),
            }),
            dialect: if head.door == EntryProtocol::A2aFirst {
                rialto_model::card::Dialect::V01
            } else {
                visit.wire.dialect()
            },
            extra: config.extra,
            created_at: self.engine.now(),
            standing: PushDeliveryState { told: head.version, ..PushDeliveryState::default() },
        })
    }
}

/// Converts a config for its caller.
fn told(head: &TaskHead, push: &PushSubscription) -> PushConfig {
    PushConfig {
        tenant: None,
        task_id: Some(render::name(head)),
        id: Some(push.id.clone()),
        url: push.url.clone(),
        token: push.token.as_ref().map(|token| token.expose().to_owned()),
        authentication: push.login.as_ref().map(|login| PushAuthentication {
            schemes: login.schemes.clone(),
            credentials: login.credentials.as_ref().map(|secret| secret.expose().to_owned()),
            extra: Extra::new(),
        }),
        extra: push.extra.clone(),
    }
}

/// Id of a config without a name: 0.3 has one such config per task, which the next replaces.
fn unnamed(wire: Wire) -> String {
    if wire == Wire::V10 { fresh() } else { "default".to_owned() }
}

fn no_config(wanted: &PushRef) -> ServiceError {
    let name = wanted.id.as_deref().unwrap_or_default();
    ServiceError::new(
        ErrorCode::TaskNotFound,
        format!("task {} has no push notification config \"{name}\"", wanted.task_id),
    )
}
