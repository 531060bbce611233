//! The card of this server: one document that clients of 0.1 to 1.0 all read.
//!
//! It lists the skills that its reader may discover, and is cached per version of the registry and the policies.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use arc_swap::ArcSwap;
use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use rialto_a2a_codec::{
    card::{self, signature},
    error::ErrorCode,
    request::{A2aRequest as Asked, ExtendedCard},
    rest::Release,
    wire::Wire,
};
use rialto_engine::directory::{Directory, Entry};
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller, EntryProtocol},
    card::{Binding, Card, Dialect, Interface, Skill},
    ids::SkillId,
    json::{Extra, Json},
    media::{self, JSON},
};
use rialto_policy::Policy;
use serde_json::{Value, json};

use super::{
    AGENTS,
    error::ServiceError,
    media_types::TEXT,
    request_context::A2aRequestContext,
    service::{Service, ServiceReply},
};

/// Maximum number of cached cards: per org and base URL.
const MAX_CACHED_CARDS: usize = 64;

/// Cache of encoded cards.
#[derive(Default)]
pub(crate) struct CardCache {
    kept: ArcSwap<Vec<Arc<CachedCard>>>,
}

struct CachedCard {
    agent: Option<String>,
    caller: Caller,
    base: String,
    directory: Arc<Directory>,
    policy: Arc<Policy>,
    text: Arc<str>,
    etag: HeaderValue,
}

/// Serves the public card.
pub(crate) async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Err(failure) = service.engine.policies().sync().await {
        return (StatusCode::SERVICE_UNAVAILABLE, failure.message).into_response();
    }
    let base = service.site.url_for(request.uri(), request.headers(), &caller.scope);
    let kept = service.cards.of(&service, &caller, &base, None);
    marked(&service, &caller, shown(&request, &kept)).await
}

/// Serves the card of one agent, with this server as its endpoint.
pub(crate) async fn serve_agent(
    State(service): State<Arc<Service>>,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    let caller = request.extensions().get::<Caller>();
    match (service.agent(caller, &slug).await, caller) {
        (Ok(agent), Some(caller)) => {
            let base = service.site.url_for(request.uri(), request.headers(), &caller.scope);
            let kept = service.cards.of(&service, caller, &base, Some(&agent));
            marked(&service, caller, shown(&request, &kept)).await
        }
        (Err(trouble), _) => (StatusCode::NOT_FOUND, trouble.error.message).into_response(),
        (Ok(_), None) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Serves the extended card at its 0.2 path.
pub(crate) async fn serve_extended(State(service): State<Arc<Service>>, request: Request) -> Response {
    extended(&service, visit_of(&service, &request, None)).await
}

/// Serves the extended card of one agent at its 0.2 path.
pub(crate) async fn serve_extended_agent(
    State(service): State<Arc<Service>>,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    match service.agent(request.extensions().get::<Caller>(), &slug).await {
        Ok(agent) => extended(&service, visit_of(&service, &request, Some(agent))).await,
        Err(trouble) => (StatusCode::NOT_FOUND, trouble.error.message).into_response(),
    }
}

/// Context of a 0.2 card request, if it has a caller.
fn visit_of(service: &Service, request: &Request, agent: Option<Arc<Agent>>) -> Option<A2aRequestContext> {
    let caller = request.extensions().get::<Caller>().cloned()?;
    Some(A2aRequestContext {
        base: service.site.url_for(request.uri(), request.headers(), &caller.scope),
        trace: None,
        extensions: Vec::new(),
        caller,
        door: EntryProtocol::A2aRest,
        wire: Wire::V03,
        agent,
    })
}

async fn extended(service: &Service, visit: Option<A2aRequestContext>) -> Response {
    let Some(visit) = visit else { return StatusCode::UNAUTHORIZED.into_response() };
    if let Err(failure) = service.engine.policies().sync().await {
        return (StatusCode::SERVICE_UNAVAILABLE, failure.message).into_response();
    }
    match service.answer(&visit, Asked::ExtendedCard(ExtendedCard::default())).await {
        Ok(ServiceReply::Card(card)) => {
            let headers = [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, "private, no-cache")];
            (headers, card.to_string()).into_response()
        }
        Ok(_) => StatusCode::NOT_FOUND.into_response(),
        Err(trouble) => {
            let (status, _) = trouble.http(Wire::V03Proto, Release::First);
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, trouble.error.message).into_response()
        }
    }
}

/// Adds the installation marker: this installation must not register its own card as another agent.
async fn marked(service: &Service, caller: &Caller, mut response: Response) -> Response {
    if let Some(instance) = &service.config.instance {
        instance.mark(&caller.scope, response.headers_mut()).await;
    }
    response
}

fn shown(request: &Request, kept: &CachedCard) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let etag = kept.etag.to_str().unwrap_or_default();
    // Entity tags are compared weakly.
    let is_it = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    let is_known = known.is_some_and(|tags| tags.split(',').any(|tag| is_it(tag.trim())));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Response::new(Body::from(kept.text.to_string()))
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert(header::ETAG, kept.etag.clone());
    response
}

// === impl CardCache ===

impl CardCache {
    /// Extended card for an authenticated caller.
    pub(crate) fn extended(
        &self,
        service: &Service,
        visit: &A2aRequestContext,
    ) -> Result<Arc<str>, ServiceError> {
        if !service.config.needs_token {
            // Without authentication there is nothing more to see: the public card is enough.
            let code = if visit.wire == Wire::V10 {
                ErrorCode::UnsupportedOperation
            } else {
                ErrorCode::ExtendedAgentCardNotConfigured
            };
            return Err(ServiceError::new(
                code,
                "there is no extended card: everybody is shown all there is",
            ));
        }
        Ok(Arc::clone(&self.of(service, &visit.caller, &visit.base, visit.agent.as_ref()).text))
    }

    fn of(
        &self,
        service: &Service,
        caller: &Caller,
        base: &str,
        agent: Option<&Arc<Agent>>,
    ) -> Arc<CachedCard> {
        let directory = service.engine.registry().directory(&caller.scope);
        let policy = service.engine.policies().active();
        let slug = agent.map(|agent| agent.slug.as_str());
        let is_meant = |kept: &&Arc<CachedCard>| {
            kept.base == base && kept.caller == *caller && kept.agent.as_deref() == slug
        };
        if let Some(known) = self.kept.load().iter().find(is_meant)
            && Arc::ptr_eq(&known.directory, &directory)
            && Arc::ptr_eq(&known.policy, &policy)
        {
            return Arc::clone(known);
        }
        let text: Arc<str> = match agent {
            Some(agent) => rewritten(service, caller, base, agent),
            None => written(service, caller, base, &directory),
        }
        .into();
        let kept = Arc::new(CachedCard {
            agent: slug.map(str::to_owned),
            caller: caller.clone().without_proof(),
            base: base.to_owned(),
            directory,
            policy,
            etag: etag(&text),
            text,
        });
        self.kept.rcu(|all| {
            let others = all.iter().filter(|other| !is_meant(other)).cloned();
            let mut all: Vec<_> = others.chain([Arc::clone(&kept)]).collect();
            all.drain(..all.len().saturating_sub(MAX_CACHED_CARDS));
            all
        });
        kept
    }
}

fn written(service: &Service, caller: &Caller, base: &str, directory: &Directory) -> String {
    let public = service.config.public_skills;
    let visible = directory.listed().filter(|entry| public.include(caller, &entry.agent));
    let visible = visible.filter(|entry| service.engine.policies().may_discover(caller, &entry.target()));
    let skills: Vec<Arc<Skill>> = visible.map(|entry| Arc::new(skill(entry))).collect();
    let config = &service.config;
    let counted = || format!("AI agent powered by Rialto with {} tool(s)", skills.len());
    let card = Card {
        name: config.agent_name.clone().unwrap_or_else(|| format!("rialto-{}", caller.scope.org)),
        description: config.agent_description.clone().unwrap_or_else(counted),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        interfaces: interfaces(
            &format!("{base}/a2a"),
            grpc_target(base, config.needs_token).as_deref(),
            None,
        ),
        skills,
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        streaming: true,
        push_notifications: true,
        extended: config.needs_token,
        signed: false,
        cost: None,
        raw: Json::from(besides(config.needs_token)),
    };
    signed(card::encode(&card), service)
}

/// An agent's own card, with this server's URL and authentication. Its signatures would be invalid and are dropped.
fn rewritten(service: &Service, caller: &Caller, base: &str, agent: &Arc<Agent>) -> String {
    let target = |skill: &Arc<Skill>| CallTarget { agent: Arc::clone(agent), skill: Some(Arc::clone(skill)) };
    let is_shown = service.config.public_skills.include(caller, agent);
    let visible = agent
        .card
        .skills
        .iter()
        .filter(|skill| is_shown && service.engine.policies().may_discover(caller, &target(skill)));
    let mut raw: Extra = agent.card.raw.read().unwrap_or_default();
    for name in ["securitySchemes", "security", "securityRequirements", "authentication"] {
        let _ = raw.take(name);
    }
    for (name, value) in security(service.config.needs_token) {
        raw.push(name, Json::from(value));
    }
    let card = Card {
        interfaces: interfaces(
            &format!("{base}{AGENTS}/{}", agent.slug),
            grpc_target(base, service.config.needs_token).as_deref(),
            Some(&agent.slug),
        ),
        skills: visible.map(without_security).collect(),
        streaming: true,
        push_notifications: true,
        extended: service.config.needs_token,
        signed: false,
        raw: Json::encode(&raw),
        ..Card::clone(&agent.card)
    };
    signed(card::encode(&card), service)
}

/// Skill without the agent's security requirements: they refer to schemes that are not in this card.
fn without_security(skill: &Arc<Skill>) -> Arc<Skill> {
    let names = ["security", "securityRequirements"];
    if names.iter().all(|name| skill.extra.get(name).is_none()) {
        return Arc::clone(skill);
    }
    let mut skill = Skill::clone(skill);
    for name in names {
        let _ = skill.extra.take(name);
    }
    Arc::new(skill)
}

/// Signs the card, if there is a key. An unusable key was rejected at startup.
fn signed(card: String, service: &Service) -> String {
    let Some(signer) = &service.config.signer else { return card };
    signature::sign(&card, signer).unwrap_or_else(|error| {
        tracing::error!("the card could not be signed and is served without a signature: {error}");
        card
    })
}

/// Serves the public keys of card signatures.
pub(crate) async fn serve_keys(State(service): State<Arc<Service>>) -> Response {
    let keys = service.config.signer.as_ref().and_then(|signer| signer.public_jwk().ok());
    let keys: Vec<Value> = keys.iter().map(Json::value).collect();
    axum::Json(json!({ "keys": keys })).into_response()
}

/// Interfaces, the newest dialect first. Each supports all of them. Over gRPC agents are distinguished by tenant, which only 1.0 has.
fn interfaces(url: &str, grpc: Option<&str>, tenant: Option<&str>) -> Vec<Interface> {
    let mut interfaces = Vec::new();
    for dialect in [Dialect::V10, Dialect::V03] {
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            interfaces.push(Interface { url: url.to_owned(), binding, dialect, tenant: None });
        }
        let grpc = grpc.filter(|_| tenant.is_none() || dialect == Dialect::V10);
        interfaces.extend(grpc.map(|url| Interface {
            url: url.to_owned(),
            binding: Binding::Grpc,
            dialect,
            tenant: tenant.map(str::to_owned),
        }));
    }
    interfaces
}

/// gRPC target as clients expect it: `host:port`. It cannot contain the path of an org, so there is none where callers have no token
/// that identifies their org.
fn grpc_target(base: &str, needs_token: bool) -> Option<String> {
    let base = url::Url::parse(base).ok()?;
    if base.path() != "/" && !needs_token {
        return None;
    }
    Some(format!("{}:{}", base.host_str()?, base.port_or_known_default()?))
}

/// Constant members of a card. Security schemes are written in the format of 0.3 and of 1.0.
fn besides(needs_token: bool) -> Value {
    let mut besides = json!({ "defaultInputModes": [JSON, TEXT], "defaultOutputModes": [JSON, TEXT] });
    for (name, value) in security(needs_token) {
        besides[name] = value;
    }
    besides
}

fn security(needs_token: bool) -> Vec<(&'static str, Value)> {
    if !needs_token {
        return Vec::new();
    }
    let scheme = json!({
        "type": "http", "scheme": "bearer", "httpAuthSecurityScheme": { "scheme": "Bearer" },
    });
    vec![
        ("securitySchemes", json!({ "bearer": scheme })),
        ("security", json!([{ "bearer": [] }])),
        ("securityRequirements", json!([{ "schemes": { "bearer": { "list": [] } } }])),
    ]
}

/// Skill under its name on this server.
fn skill(entry: &Entry) -> Skill {
    let known = &entry.skill;
    let agent = entry.target().agent;
    let or_json = |said: Vec<String>| if said.is_empty() { vec![JSON.to_owned()] } else { said };
    Skill {
        id: SkillId::from(&entry.canonical),
        name: known.name.clone(),
        description: known.description.clone(),
        tags: known.tags.clone(),
        examples: known.examples.clone(),
        input_modes: or_json(media::accepted_types(&agent, Some(known))),
        output_modes: or_json(media::returned_types(&agent, Some(known))),
        input_schema: known.input_schema.clone(),
        called: None,
        cost: known.cost,
        extra: known.extra.clone(),
    }
}

fn etag(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_clients_are_told_a_host_and_a_port() {
        let target = |base| grpc_target(base, true);
        assert_eq!(target("http://127.0.0.1:8420").as_deref(), Some("127.0.0.1:8420"));
        assert_eq!(target("https://bridge.example").as_deref(), Some("bridge.example:443"));
        assert_eq!(target("http://[::1]:8420/orgs/acme").as_deref(), Some("[::1]:8420"));
        assert_eq!(grpc_target("http://127.0.0.1:8420/orgs/acme", false), None);
    }
}
