//! `/api/v1/tools`: what is deployed, for whoever may administer over the network.
//!
//! Somebody at another machine gets less than somebody at this one: no private addresses, and neither programs nor secrets
//! of this machine, unless the configuration says so.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{delete, get},
};
use http::{HeaderValue, StatusCode, header};
use rialto_edge::status;
use rialto_engine::{
    Engine,
    registry::{Deployment, RegistryError},
};
use rialto_model::{
    call::Caller,
    clock::{Clock, SystemClock},
    deployed::{Piece, Via},
};
use rialto_policy::Action;
use serde::Deserialize;

use super::shown::{self, Shown};
use crate::{
    config::deployed::{Function, McpServer, Wanted},
    events::{admit, refused},
    policies::Book,
    program::Program,
};

/// Where it is.
pub(crate) const PATH: &str = "/api/v1/tools";

/// The largest description of something to be deployed.
const LARGEST: usize = 1024 * 1024;

#[derive(Clone)]
struct Api {
    engine: Engine,
    policies: Book,
    allow_commands: bool,
}

/// Something to be deployed.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Body {
    Mcp(McpServer),
    Function(Function),
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    let api = Api {
        engine: program.engine.clone(),
        policies: program.policies.clone(),
        allow_commands: program.config.server.allow_commands_over_api,
    };
    Router::new()
        .route(PATH, get(list).post(add))
        .route("/api/v1/tools/{name}", delete(remove))
        .with_state(Arc::new(api))
}

async fn list(State(api): State<Arc<Api>>, request: Request) -> Response {
    match admit(&api.engine, caller_of(&request), Action::AdminAgents).await {
        Ok(caller) => answer(StatusCode::OK, shown::all(api.engine.registry(), &caller.scope)),
        Err(refusal) => refusal,
    }
}

async fn add(State(api): State<Arc<Api>>, request: Request) -> Response {
    let caller = match admit(&api.engine, caller_of(&request), Action::AdminAgents).await {
        Ok(caller) => caller,
        Err(refusal) => return refusal,
    };
    let Ok(body) = to_bytes(request.into_body(), LARGEST).await else {
        return refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid",
            "the body did not come whole, or is too large",
        );
    };
    let body: Body = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(error) => return refused(StatusCode::BAD_REQUEST, "invalid", &error.to_string()),
    };
    let wanted = match body.deployment(&caller) {
        Ok(wanted) => wanted,
        Err(why) => return refused(StatusCode::BAD_REQUEST, "invalid", &why),
    };
    if let Err(why) = api.allows(&wanted) {
        return refused(StatusCode::FORBIDDEN, "denied", why);
    }
    match api.engine.registry().deploy(wanted).await {
        Ok(registered) => {
            let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
            let shown = Shown::of(api.engine.registry(), &registered.agent);
            answer(status, rialto_model::json::Json::of(&shown).get().to_owned())
        }
        Err(error) => trouble(&error),
    }
}

async fn remove(State(api): State<Arc<Api>>, Path(name): Path<String>, request: Request) -> Response {
    let caller = match admit(&api.engine, caller_of(&request), Action::AdminAgents).await {
        Ok(caller) => caller,
        Err(refusal) => return refusal,
    };
    let rows = api.engine.registry().deployed(&caller.scope);
    let Some(row) = rows.iter().find(|row| row.slug == name || row.url == name) else {
        return refused(StatusCode::NOT_FOUND, "not-found", "nothing is deployed under this name");
    };
    if let Err(error) = api.engine.registry().remove(row).await {
        return trouble(&error);
    }
    if let Err(error) = api.policies.forget(row, SystemClock.now()).await {
        tracing::error!("the policies about {} were not removed: {error}", row.slug);
    }
    StatusCode::NO_CONTENT.into_response()
}

// === impl Api ===

impl Api {
    /// Whether this may be deployed from another machine.
    fn allows(&self, wanted: &Deployment) -> Result<(), &'static str> {
        let Some(via) = wanted.backing.via().filter(|_| !self.allow_commands) else { return Ok(()) };
        if matches!(via, Via::Command(_)) {
            return Err(
                "commands run on this server's machine: set [server] allow_commands_over_api, or use `rialto tools add` there",
            );
        }
        let leads_here = |piece: &Piece| matches!(piece, Piece::From(_));
        if via.settings().values().any(|setting| setting.pieces().iter().any(leads_here)) {
            return Err(
                "these are secrets of this server's machine: set [server] allow_commands_over_api, or use `rialto tools add` there",
            );
        }
        Ok(())
    }
}

// === impl Body ===

impl Body {
    /// What is to be deployed, in the caller's own project.
    fn deployment(mut self, caller: &Caller) -> Result<Deployment, String> {
        let way = match &mut self {
            Self::Mcp(server) => &mut server.way,
            Self::Function(function) => &mut function.way,
        };
        if way.org.is_some() || way.project.is_some() {
            return Err("the org and the project are the caller's; the address selects others".to_owned());
        }
        way.org = Some(caller.scope.org.to_string());
        way.project = Some(caller.scope.project.to_string());
        if let Self::Function(function) = &self {
            let names_file = |schema: &Option<serde_json::Value>| {
                schema.as_ref().is_some_and(serde_json::Value::is_string)
            };
            if names_file(&function.input_schema) || names_file(&function.output_schema) {
                return Err("a schema is given as an object here, not as a file of this machine".to_owned());
            }
        }
        let made = match &self {
            Self::Mcp(server) => Wanted::Server(server).deployment(),
            Self::Function(function) => Wanted::Function(function).deployment(),
        };
        let wanted = made.map_err(|(key, reason)| format!("{key}: {reason}"))?;
        Ok(Deployment { allow_private: false, ..wanted })
    }
}

fn caller_of(request: &Request) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

fn answer(status: StatusCode, json: String) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response()
}

fn trouble(error: &RegistryError) -> Response {
    refused(status::of(error.kind()), "not-deployed", &error.to_string())
}
