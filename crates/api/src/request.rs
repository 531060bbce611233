//! Request of an API route: caller, parameters and body.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Bytes, to_bytes},
    extract::Request,
};
use http::HeaderMap;
use rialto_admin::{Administration, MAX_PAGE_ROWS};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::{Json, MAX_DEPTH, is_too_deep},
    trace::Trace,
};
use serde::de::DeserializeOwned;

use super::Route;

/// Maximum time that a caller waits. The work continues after it.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// Request of an API route.
pub(crate) struct RouteRequest {
    pub(crate) admin: Administration,
    pub(crate) caller: Caller,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    /// Whether part of the request could not be read.
    is_unreadable: Arc<AtomicBool>,
}

// === impl RouteRequest ===

impl RouteRequest {
    pub(super) async fn read(
        admin: Administration,
        route: &Route,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let unknown = || Failure::new(FailureKind::Unauthenticated, "this request has no caller");
        let caller = caller.ok_or_else(unknown)?;
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query: Vec<(String, String)> = url::form_urlencoded::parse(query).into_owned().collect();
        let is_known = |name: &str| route.query.iter().any(|(known, _)| *known == name);
        if let Some((name, _)) = query.iter().find(|(name, _)| !is_known(name)) {
            let known: Vec<&str> = route.query.iter().map(|(known, _)| *known).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(invalid(&format!("\"{name}\" is not a parameter of this route; it has: {known}")));
        }
        let headers = request.headers().clone();
        let body = to_bytes(request.into_body(), admin.deps().max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body is incomplete or too large"))?;
        let is_unreadable = Arc::default();
        Ok(Self { admin, caller, params, query, headers, body, is_unreadable })
    }

    /// Flag that is set when part of the request cannot be read.
    pub(super) fn unreadable(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_unreadable)
    }

    /// Error of a request that cannot be read.
    fn reject(&self, message: &str) -> Failure {
        self.is_unreadable.store(true, Ordering::Relaxed);
        invalid(message)
    }

    /// Path parameter.
    pub(crate) fn path_param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Query parameter; none if it is empty.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let given = self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        given.filter(|value| !value.is_empty())
    }

    /// Whether a query parameter is set and not `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.query(name).is_some_and(|value| value != "false")
    }

    /// Query parameter as one of several values.
    pub(crate) fn parse_query<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.query(name) else { return Ok(None) };
        let wrong = || self.reject(&format!("{name}: \"{text}\" is not a valid value"));
        read(text).map(Some).ok_or_else(wrong)
    }

    /// Number of rows of a page.
    pub(crate) fn limit(&self) -> Result<Option<usize>, Failure> {
        let Some(text) = self.query("limit") else { return Ok(None) };
        let wrong = || self.reject(&format!("limit: \"{text}\" is not a number from 1 to {MAX_PAGE_ROWS}"));
        text.parse().ok().filter(|limit| *limit > 0).map(Some).ok_or_else(wrong)
    }

    /// Cursor of a page: `next` of the previous one. `before` is its former name.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.query("cursor").or_else(|| self.query("before"))
    }

    /// Trace context of the caller.
    pub(crate) fn trace(&self) -> Option<Box<Trace>> {
        rialto_http_server::trace::from_headers(&self.headers)
    }

    /// Time that the caller waits, from a parameter in milliseconds.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Failure> {
        let given = self.parse_query("timeoutMs", |text| text.parse::<u64>().ok())?;
        Ok(given.map(to_timeout))
    }

    /// Body as text.
    pub(crate) fn body_text(&self) -> Result<&str, Failure> {
        if is_too_deep(&self.body) {
            return Err(self.reject(&format!("the body is nested deeper than {MAX_DEPTH} levels")));
        }
        std::str::from_utf8(&self.body).map_err(|_| self.reject("the body is not UTF-8 text"))
    }

    /// Body from JSON, or the default if it is empty.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Failure> {
        if self.body.trim_ascii().is_empty() { Ok(T::default()) } else { self.json() }
    }

    /// Arguments from the body, or an empty object. Numbers keep every digit.
    pub(crate) fn arguments(&self) -> Result<Json, Failure> {
        let text = self.body_text()?.trim();
        if text.is_empty() {
            return Ok(Json::empty_object());
        }
        Json::parse(text).map_err(|error| self.reject(&format!("the body is not JSON: {error}")))
    }

    /// Body from JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if is_too_deep(&self.body) {
            return Err(self.reject(&format!("the body is nested deeper than {MAX_DEPTH} levels")));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| self.reject(&format!("the body is invalid: {error}")))
    }
}

/// Timeout from milliseconds, with an upper limit.
pub(crate) fn to_timeout(ms: u64) -> Duration {
    Duration::from_millis(ms).min(MAX_WAIT)
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}
