//! The card that an agent shows to those who log in.
//!
//! A public card may say that there is an extended one, with more skills. It is fetched with the agent's credential, where that
//! may be shown, in the first way that the card offers. A credential of single callers is not used: what one of them may
//! see is not for all.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a_wire::{
    error::Code,
    request::{ExtendedCard, Request},
    rest,
    rpc::{self, Id},
};
use rialto_edge::fetch;
use rialto_engine::peer::Place;
use rialto_model::card::Dialect;

use crate::route::{Carrier, Route};

/// What came of asking for an extended card.
pub(crate) enum Extended {
    /// Its text.
    Card(String),
    /// The agent has none for us.
    Refused,
    /// The agent could not be asked; later may work.
    NotNow,
}

/// Whether an extended card may be asked for at a place.
pub(crate) fn is_wanted(place: &Place) -> bool {
    place.credential.as_ref().is_some_and(|credential| !credential.is_personal())
}

/// The request for the extended card in one way; none where there is no such request.
pub(crate) fn request(route: &Route) -> Option<fetch::Request> {
    let asked =
        Request::ExtendedCard(ExtendedCard { tenant: route.tenant.clone(), ..ExtendedCard::default() });
    let mut request = match route.carrier {
        Carrier::Rpc => {
            let body = rpc::encode_bytes(route.wire, &Id::from(1), &asked).ok()?;
            let mut request = fetch::Request::new(Method::POST, route.uri.clone());
            request.body = Bytes::from(body);
            request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        }
        Carrier::Rest => {
            let call = rest::encode(route.wire, &asked).ok()?;
            fetch::Request::new(Method::GET, format!("{}{}", route.base, call.path).parse().ok()?)
        }
        Carrier::Grpc => return None,
    };
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if route.dialect == Dialect::V10 {
        request.headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    }
    Some(request)
}

/// Where 0.2 has it: below the base URL, over plain HTTP.
pub(crate) fn oldest(base: &str) -> Option<fetch::Request> {
    let uri: Uri = format!("{}/agent/authenticatedExtendedCard", base.trim_end_matches('/')).parse().ok()?;
    let request = fetch::Request::new(Method::GET, uri);
    Some(request.header(header::ACCEPT, HeaderValue::from_static("application/json")))
}

/// Reads what an agent has answered.
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
            Ok(Err(error)) if error.known() == Some(Code::Internal) => return Extended::NotNow,
            Ok(Err(_)) | Err(_) => None,
        },
        Carrier::Rest | Carrier::Grpc => std::str::from_utf8(body).ok().map(str::to_owned),
    };
    text.map_or(Extended::Refused, Extended::Card)
}
