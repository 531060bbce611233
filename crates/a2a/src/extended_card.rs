//! Authenticated extended cards.
//!
//! A public card may declare an extended one, with more skills. It is fetched with the agent's credential, over the first interface of
//! the card that may receive it. A credential of single callers is not used: skills visible to one of them are not for all.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a_codec::{
    error::ErrorCode,
    request::{A2aRequest, ExtendedCard},
    rest,
    rpc::{self, Id},
};
use rialto_engine::peer::DiscoveryRequest;
use rialto_http_client::fetch;
use rialto_model::card::Dialect;

use crate::endpoints::{AgentEndpoint, Carrier};

/// Result of requesting an extended card.
pub(crate) enum Extended {
    /// Text of the card.
    Card(String),
    /// The agent has none for this credential.
    Refused,
    /// The agent could not be reached; a retry may work.
    NotNow,
}

/// True when an extended card may be requested.
pub(crate) fn is_wanted(place: &DiscoveryRequest) -> bool {
    place.credential.as_ref().is_some_and(|credential| !credential.is_personal())
}

/// Request for the extended card over one interface; none if the dialect has no such request.
pub(crate) fn request(route: &AgentEndpoint) -> Option<fetch::FetchRequest> {
    let asked =
        A2aRequest::ExtendedCard(ExtendedCard { tenant: route.tenant.clone(), ..ExtendedCard::default() });
    let mut request = match route.carrier {
        Carrier::Rpc => {
            let body = rpc::encode_bytes(route.wire, &Id::from(1), &asked).ok()?;
            let mut request = fetch::FetchRequest::new(Method::POST, route.uri.clone());
            request.body = Bytes::from(body);
            request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        }
        Carrier::Rest => {
            let call = rest::encode(route.wire, &asked).ok()?;
            fetch::FetchRequest::new(Method::GET, format!("{}{}", route.base, call.path).parse().ok()?)
        }
        Carrier::Grpc => return None,
    };
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if route.dialect == Dialect::V10 {
        request.headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    }
    Some(request)
}

/// Request in 0.2: a path below the base URL, over plain HTTP.
pub(crate) fn oldest(base: &str) -> Option<fetch::FetchRequest> {
    let uri: Uri = format!("{}/agent/authenticatedExtendedCard", base.trim_end_matches('/')).parse().ok()?;
    let request = fetch::FetchRequest::new(Method::GET, uri);
    Some(request.header(header::ACCEPT, HeaderValue::from_static("application/json")))
}

/// Parses the agent's response.
pub(crate) fn read(carrier: Carrier, status: StatusCode, body: &[u8]) -> Extended {
    if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
        return Extended::NotNow;
    }
    if !status.is_success() {
        return Extended::Refused;
    }
    let text = match carrier {
        Carrier::Rpc => match rpc::decode_response(body).map(|response| response.result) {
            Ok(Ok(card)) => Some(card.get().to_owned()),
            Ok(Err(error)) if error.known() == Some(ErrorCode::Internal) => return Extended::NotNow,
            Ok(Err(_)) | Err(_) => None,
        },
        Carrier::Rest | Carrier::Grpc => std::str::from_utf8(body).ok().map(str::to_owned),
    };
    text.map_or(Extended::Refused, Extended::Card)
}
