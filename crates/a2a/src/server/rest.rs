//! HTTP+JSON, of 1.0 and of 0.3.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response, sse::Event},
};
use http::{HeaderValue, StatusCode, header};
use rialto_a2a_codec::{
    answer,
    error::ErrorCode,
    rest::{self, Release},
    rpc::{DecodedRequest, RejectedRequest},
    wire::Wire,
};
use rialto_model::{
    agent::Agent,
    call::{Caller, EntryProtocol},
    json::{MAX_DEPTH, is_too_deep},
};

use super::{
    error::ServiceError,
    request_context::{self, A2aRequestContext},
    rpc::told,
    service::{Service, ServiceReply},
};
use crate::extension;

pub(crate) async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let path = request.uri().path();
    let rest =
        ["/a2a", "/_a2a"].into_iter().find_map(|root| path.strip_prefix(root)).unwrap_or(path).to_owned();
    answered(&service, request, &rest, None).await
}

/// Serves the HTTP+JSON endpoint of one agent.
pub(crate) async fn serve_agent(
    State(service): State<Arc<Service>>,
    Path((slug, rest)): Path<(String, String)>,
    request: Request,
) -> Response {
    match service.agent(request.extensions().get::<Caller>(), &slug).await {
        Ok(agent) => answered(&service, request, &rest, Some(agent)).await,
        Err(trouble) => refuse(Wire::V10, request_context::release(request.headers()), &trouble),
    }
}

async fn answered(service: &Service, request: Request, path: &str, agent: Option<Arc<Agent>>) -> Response {
    let (parts, body) = request.into_parts();
    let release = request_context::release(&parts.headers);
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let body = match rialto_http_server::body::read_to_end(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    if is_too_deep(&body) {
        let message = format!("the body is nested deeper than {MAX_DEPTH} levels; send it flatter");
        return refuse(Wire::V10, release, &ServiceError::new(ErrorCode::InvalidRequest, message));
    }
    let method = parts.method.as_str();
    let kind = if body.is_empty() { Ok(()) } else { request_context::check_kind(&parts.headers) };
    if let Err(error) = kind {
        return refuse(rest::wire_of(path), release, &error.into());
    }
    let asked = rest::decode_request(method, path, parts.uri.query().unwrap_or_default(), &body);
    let DecodedRequest { wire, request, .. } = match asked {
        Ok(incoming) => incoming,
        Err(RejectedRequest { wire, error, .. }) => return refuse(wire, release, &error.into()),
    };
    if let Err(error) = request_context::check_version(&parts) {
        return refuse(wire, release, &error.into());
    }
    let visit = A2aRequestContext {
        base: service.site.url_for(&parts.uri, &parts.headers, &caller.scope),
        trace: rialto_http_server::trace::from_headers(&parts.headers),
        extensions: extension::named(&parts.headers),
        caller,
        door: EntryProtocol::A2aRest,
        wire,
        agent,
    };
    match service.answer(&visit, request).await {
        Ok(ServiceReply::Stream(events)) => told(
            wire,
            move |event| match event {
                Ok((event, _)) => Event::default().data(answer::encode_stream_event(wire, &event).text()),
                Err(trouble) => Event::default().event("error").data(trouble.http(wire, release).1),
            },
            events,
        ),
        Ok(reply) => {
            let mut response = json(wire, release, StatusCode::OK, written(wire, &reply));
            reply.put_beside(wire, response.headers_mut());
            response
        }
        Err(trouble) => refuse(wire, release, &trouble),
    }
}

/// Encodes a response that is not a stream as JSON.
pub(crate) fn written(wire: Wire, reply: &ServiceReply) -> String {
    match reply {
        ServiceReply::Sent { answer, .. } => answer::encode_send(wire, answer).text(),
        ServiceReply::Task { task, .. } => answer::encode_task(wire, task).text(),
        ServiceReply::Tasks(list) => answer::encode_task_list(wire, list).text(),
        ServiceReply::Push(push) => answer::encode_push(wire, push).text(),
        ServiceReply::Pushes(list) => answer::encode_push_list(wire, list).text(),
        ServiceReply::Card(card) => card.to_string(),
        ServiceReply::Nothing | ServiceReply::Stream(_) => "{}".to_owned(),
    }
}

fn refuse(wire: Wire, release: Release, trouble: &ServiceError) -> Response {
    let (status, body) = trouble.http(wire, release);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(wire, release, status, body);
    if let Some(seconds) = trouble.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(wire: Wire, release: Release, status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = match (wire, release) {
        (Wire::V10, Release::Second) => "application/a2a+json",
        _ => "application/json",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
