//! One request of a program, read.

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
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::{Json, MAX_DEPTH, is_too_deep},
    trace::Trace,
};
use serde::de::DeserializeOwned;

use super::Route;
use crate::{Console, admin::MOST};

/// Nobody waits longer; what goes on then goes on by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// What is asked, by whom.
pub(crate) struct Asking {
    pub(crate) console: Console,
    pub(crate) caller: Caller,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    /// Whether something of it could not be read.
    is_unreadable: Arc<AtomicBool>,
}

// === impl Asking ===

impl Asking {
    pub(super) async fn read(
        console: Console,
        route: &Route,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let unknown = || Failure::new(FailureKind::Unauthenticated, "this request does not say who calls");
        let caller = caller.ok_or_else(unknown)?;
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query: Vec<(String, String)> = url::form_urlencoded::parse(query).into_owned().collect();
        let is_known = |name: &str| route.query.iter().any(|(known, _)| *known == name);
        if let Some((name, _)) = query.iter().find(|(name, _)| !is_known(name)) {
            let known: Vec<&str> = route.query.iter().map(|(known, _)| *known).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(invalid(&format!("\"{name}\" is no parameter of this; there are: {known}")));
        }
        let headers = request.headers().clone();
        let body = to_bytes(request.into_body(), console.parts().max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body did not come whole, or is too large"))?;
        let is_unreadable = Arc::default();
        Ok(Self { console, caller, params, query, headers, body, is_unreadable })
    }

    /// Says, also after the request was handled, whether something of it could not be read.
    pub(super) fn unreadable(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_unreadable)
    }

    /// The failure of a request that cannot be read.
    fn reject(&self, message: &str) -> Failure {
        self.is_unreadable.store(true, Ordering::Relaxed);
        invalid(message)
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

    /// Whether a parameter says yes.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.query(name).is_some_and(|value| value != "false")
    }

    /// The same, as one of a few values.
    pub(crate) fn read_query<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.query(name) else { return Ok(None) };
        let wrong = || self.reject(&format!("{name}: \"{text}\" is not one of its values"));
        read(text).map(Some).ok_or_else(wrong)
    }

    /// How many rows a page shall have.
    pub(crate) fn limit(&self) -> Result<Option<usize>, Failure> {
        let Some(text) = self.query("limit") else { return Ok(None) };
        let wrong = || self.reject(&format!("limit: \"{text}\" is no number; write one from 1 to {MOST}"));
        text.parse().ok().filter(|limit| *limit > 0).map(Some).ok_or_else(wrong)
    }

    /// Where a page begins: `next` of the one before. `before` is what it was called once.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.query("cursor").or_else(|| self.query("before"))
    }

    /// The trace that the caller has begun.
    pub(crate) fn trace(&self) -> Option<Box<Trace>> {
        rialto_edge::trace::of(&self.headers)
    }

    /// How long the caller waits, by a parameter in milliseconds.
    pub(crate) fn patience(&self) -> Result<Option<Duration>, Failure> {
        let given = self.read_query("timeoutMs", |text| text.parse::<u64>().ok())?;
        Ok(given.map(patience))
    }

    /// The body as it came.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        if is_too_deep(&self.body) {
            return Err(self.reject(&format!("the body is nested deeper than {MAX_DEPTH} levels")));
        }
        std::str::from_utf8(&self.body).map_err(|_| self.reject("the body is not UTF-8 text"))
    }

    /// The body, or nothing where there is none.
    pub(crate) fn json_if_any<T: DeserializeOwned + Default>(&self) -> Result<T, Failure> {
        if self.body.trim_ascii().is_empty() { Ok(T::default()) } else { self.json() }
    }

    /// Arguments: the body, or an empty object. Numbers keep every digit.
    pub(crate) fn arguments(&self) -> Result<Json, Failure> {
        let text = self.text()?.trim();
        if text.is_empty() {
            return Ok(Json::empty_object());
        }
        Json::parse(text).map_err(|error| self.reject(&format!("the body is not JSON: {error}")))
    }

    /// The body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if is_too_deep(&self.body) {
            return Err(self.reject(&format!("the body is nested deeper than {MAX_DEPTH} levels")));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| self.reject(&format!("the body does not fit: {error}")))
    }
}

/// How long a caller waits who says so.
pub(crate) fn patience(ms: u64) -> Duration {
    Duration::from_millis(ms).min(LONGEST_WAIT)
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}
