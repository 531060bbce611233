//! Push notification configs: who asks for them, and what they may say.

use std::net::IpAddr;

use rialto_a2a_wire::{
    error::Code,
    request::{PushAuthentication, PushConfig, PushList, PushListing, PushRef},
    wire::Wire,
};
use rialto_edge::address::Reach;
use rialto_model::{
    call::Door,
    credential::Secret,
    ids::fresh,
    json::Extra,
    push::{Login, Push, PushStanding},
    task::TaskHead,
};
use url::{Host, Url};

use super::{
    incoming::Visit,
    render,
    service::{Reply, Service},
    trouble::Trouble,
};

/// So many may be told of one task.
const MOST: usize = 16;

/// The longest text in a config.
const LONGEST: usize = 8 * 1024;

// === impl Service ===

impl Service {
    /// Has somebody told of a task that is there.
    pub(crate) async fn create_push(&self, visit: &Visit, config: PushConfig) -> Result<Reply, Trouble> {
        let id = config.task_id.clone().unwrap_or_default();
        let task = self.find(visit, &id).await?;
        let push = self.push_of(visit, &task.head, config)?;
        let known = self.engine.pushes(&visit.caller, &task.head.id).await?;
        if known.len() >= MOST && known.iter().all(|known| known.id != push.id) {
            let message = format!("task {id} is told to {MOST} addresses already; delete one first");
            return Err(Trouble::new(Code::InvalidParams, message));
        }
        self.engine.put_push(&push).await?;
        self.asked_to_push.notify_one();
        Ok(Reply::Push(told(&task.head, &push)))
    }

    /// Has somebody told of a task from its beginning.
    pub(crate) async fn push_along(
        &self,
        visit: &Visit,
        head: &TaskHead,
        config: PushConfig,
    ) -> Result<(), Trouble> {
        let push = self.push_of(visit, head, config)?;
        self.engine.put_push(&push).await?;
        self.asked_to_push.notify_one();
        Ok(())
    }

    pub(crate) async fn get_push(&self, visit: &Visit, wanted: &PushRef) -> Result<Reply, Trouble> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.pushes(&visit.caller, &task.head.id).await?;
        let is_it = |push: &&Push| wanted.id.as_ref().is_none_or(|id| *id == push.id);
        let push = pushes.iter().find(is_it).ok_or_else(|| no_config(wanted))?;
        Ok(Reply::Push(told(&task.head, push)))
    }

    pub(crate) async fn list_pushes(&self, visit: &Visit, wanted: &PushListing) -> Result<Reply, Trouble> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.pushes(&visit.caller, &task.head.id).await?;
        // There are never more than fit on one page.
        let configs = pushes.iter().map(|push| told(&task.head, push)).collect();
        Ok(Reply::Pushes(PushList { configs, next_page_token: String::new(), extra: Extra::new() }))
    }

    pub(crate) async fn delete_push(&self, visit: &Visit, wanted: &PushRef) -> Result<Reply, Trouble> {
        let task = self.find(visit, &wanted.task_id).await?;
        let pushes = self.engine.pushes(&visit.caller, &task.head.id).await?;
        let only = pushes.first().filter(|_| pushes.len() == 1).map(|push| push.id.clone());
        // Asking twice is asking once: what is not there is deleted.
        if let Some(id) = wanted.id.clone().or(only) {
            self.engine.remove_push(&visit.caller, &task.head.id, &id).await?;
        }
        Ok(Reply::Nothing)
    }

    /// Refuses what could never be delivered, before anything is begun.
    pub(crate) fn check_push(&self, config: &PushConfig) -> Result<(), Trouble> {
        let invalid =
            |what: &str| Err(Trouble::new(Code::InvalidParams, format!("push notification config: {what}")));
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
        if texts.into_iter().flatten().any(|text| text.len() > LONGEST || text.contains(['\r', '\n', '\0'])) {
            return invalid("expected texts of one line and at most 8192 characters");
        }
        // A name is looked at when it is resolved, each time.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if let Some(address) = literal
            && let Some(what) = self.config.push_reach().forbids(address)
        {
            // What is never called is so whatever is set.
            let advice =
                if Reach::Private.forbids(address).is_none() { "; see [a2a] push_private" } else { "" };
            return invalid(&format!("url: {address} is {what}{advice}"));
        }
        Ok(())
    }

    fn push_of(&self, visit: &Visit, head: &TaskHead, config: PushConfig) -> Result<Push, Trouble> {
        self.check_push(&config)?;
        Ok(Push {
            task: head.id.clone(),
            id: config.id.filter(|id| !id.is_empty()).unwrap_or_else(|| unnamed(visit.wire)),
            scope: head.scope.clone(),
            caller: head.caller.clone(),
            created_with: visit.caller.token.clone(),
            url: config.url,
            token: config.token.filter(|token| !token.is_empty()).map(Secret::from),
            login: config.authentication.map(|login| Login {
                schemes: login.schemes,
                credentials: login.credentials.map(Secret::from),
            }),
            dialect: if head.door == Door::A2aFirst {
                rialto_model::card::Dialect::V01
            } else {
                visit.wire.dialect()
            },
            extra: config.extra,
            created_at: self.engine.now(),
            standing: PushStanding { told: head.version, ..PushStanding::default() },
        })
    }
}

/// A config as its caller reads it back.
fn told(head: &TaskHead, push: &Push) -> PushConfig {
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

/// What a config is called that its caller gave no name: 0.3 knows one such config of a task, which another replaces.
fn unnamed(wire: Wire) -> String {
    if wire == Wire::V10 { fresh() } else { "default".to_owned() }
}

fn no_config(wanted: &PushRef) -> Trouble {
    let name = wanted.id.as_deref().unwrap_or_default();
    Trouble::new(
        Code::TaskNotFound,
        format!("task {} has no push notification config \"{name}\"", wanted.task_id),
    )
}
