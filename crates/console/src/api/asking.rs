//! One request of a program, read.

use axum::{
    body::{Bytes, to_bytes},
    extract::Request,
};
use http::HeaderMap;
use rialto_model::{
    call::Caller,
    failure::{Failure, Kind},
    json::{DEEPEST, is_too_deep},
};
use serde::de::DeserializeOwned;

use crate::Console;

/// What is asked, by whom.
pub(crate) struct Asking {
    pub(crate) console: Console,
    pub(crate) caller: Caller,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    body: Bytes,
}

// === impl Asking ===

impl Asking {
    pub(super) async fn read(
        console: Console,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let unknown = || Failure::new(Kind::Unauthenticated, "this request does not say who calls");
        let caller = caller.ok_or_else(unknown)?;
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query = url::form_urlencoded::parse(query).into_owned().collect();
        let headers = request.headers().clone();
        let body = to_bytes(request.into_body(), console.parts().max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body did not come whole, or is too large"))?;
        Ok(Self { console, caller, params, query, headers, body })
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A parameter behind the question mark; an empty one is none.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let given = self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        given.filter(|value| !value.is_empty())
    }

    /// The same, as one of a few values.
    pub(crate) fn read_query<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.query(name) else { return Ok(None) };
        let wrong = || invalid(&format!("{name}: \"{text}\" is not one of its values"));
        read(text).map(Some).ok_or_else(wrong)
    }

    /// How many rows a page shall have.
    pub(crate) fn limit(&self) -> Result<Option<usize>, Failure> {
        self.read_query("limit", |text| text.parse().ok())
    }

    /// The body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if is_too_deep(&self.body) {
            return Err(invalid(&format!("the body is nested deeper than {DEEPEST} levels")));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| invalid(&format!("the body does not fit: {error}")))
    }
}

fn invalid(message: &str) -> Failure {
    Failure::new(Kind::Invalid, message)
}
