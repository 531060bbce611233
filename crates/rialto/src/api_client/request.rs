//! Request of a command, and its parsed response.

use std::time::Duration;

use axum::body::Bytes;
use http::{Method, StatusCode};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    name::in_path,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ApiClient, response_errors};

/// Timeout of requests that are answered at once.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of requests for which agents are called.
const LONG_RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// The largest page that is handed out.
const MAX_PAGE_SIZE: usize = 500;

/// A question that is put together.
pub(crate) struct ApiRequest<'a> {
    api: &'a ApiClient,
    pub(super) method: Method,
    /// Below `/api/v1`, with a slash in front.
    pub(super) path: String,
    query: Vec<(&'static str, String)>,
    pub(super) body: Option<Json>,
    pub(super) patience: Duration,
    /// True if a part of the path is empty, which would address another resource.
    is_empty: bool,
}

/// Response, read to its end.
pub(super) struct ApiResponse {
    pub(super) status: StatusCode,
    pub(super) media: String,
    pub(super) body: Bytes,
}

// === impl ApiRequest ===

impl<'a> ApiRequest<'a> {
    pub(super) fn new(api: &'a ApiClient, method: Method, parts: &[&str]) -> Self {
        let path = parts.iter().map(|part| format!("/{}", in_path(part))).collect();
        let is_empty = parts.iter().any(|part| part.is_empty());
        Self { api, method, path, query: Vec::new(), body: None, patience: RESPONSE_TIMEOUT, is_empty }
    }

    /// Adds a query parameter.
    #[expect(clippy::needless_pass_by_value, reason = "arguments are mostly temporary values")]
    pub(crate) fn with_query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Adds a query parameter, if there is a value.
    pub(crate) fn with_optional_query(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with_query(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub(crate) fn with_json<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        self.body = Some(Json::encode(body));
        self
    }

    /// Sets the timeout of requests for which agents are called.
    pub(crate) const fn with_long_timeout(mut self) -> Self {
        self.patience = LONG_RESPONSE_TIMEOUT;
        self
    }

    /// Sends the request and parses the response.
    pub(crate) async fn read<T: DeserializeOwned>(self) -> Result<T, Failure> {
        self.send_created().await.map(|(_, value)| value)
    }

    /// Sends the request; returns the response, and true if it created a row.
    pub(crate) async fn send_created<T: DeserializeOwned>(self) -> Result<(bool, T), Failure> {
        let answer = self.send().await?;
        let value = serde_json::from_slice(&answer.body)
            .map_err(|error| self.api.invalid_response(&answer, &error))?;
        Ok((answer.status == StatusCode::CREATED, value))
    }

    /// Sends the request and ignores the body of the response.
    pub(crate) async fn send_unit(self) -> Result<(), Failure> {
        self.send().await.map(drop)
    }

    /// Reads the rows of a paged list: all, or a maximum number.
    pub(crate) async fn fetch_rows<T: DeserializeOwned>(
        mut self,
        name: &str,
        limit: Option<usize>,
    ) -> Result<Vec<T>, Failure> {
        let mut rows: Vec<T> = Vec::new();
        loop {
            let wanted =
                limit.map_or(MAX_PAGE_SIZE, |limit| limit.saturating_sub(rows.len()).min(MAX_PAGE_SIZE));
            if wanted == 0 {
                return Ok(rows);
            }
            self.query.retain(|(name, _)| *name != "limit");
            self.query.push(("limit", wanted.to_string()));
            let answer = self.send().await?;
            let unfit = |error: serde_json::Error| self.api.invalid_response(&answer, &error);
            let mut page: Extra = serde_json::from_slice(&answer.body).map_err(unfit)?;
            let some: Vec<T> = page.take(name).unwrap_or_else(Json::null).read().map_err(unfit)?;
            let is_over = some.is_empty();
            rows.extend(some);
            let Some(next) = page.take("next").filter(|next| !next.is_null() && !is_over) else {
                return Ok(rows);
            };
            let next = next.read::<String>().unwrap_or_else(|_| next.get().to_owned());
            self.query.retain(|(name, _)| *name != "cursor");
            self.query.push(("cursor", next));
        }
    }

    /// Path and query.
    pub(super) fn path_and_query(&self) -> String {
        let mut address = format!("/api/v1{}", self.path);
        for (at, (name, value)) in self.query.iter().enumerate() {
            address.push(if at == 0 { '?' } else { '&' });
            address += &format!("{name}={}", in_path(value));
        }
        address
    }

    async fn send(&self) -> Result<ApiResponse, Failure> {
        if self.is_empty {
            return Err(Failure::new(FailureKind::Invalid, "a name is empty; pass the name of a resource"));
        }
        match self.api {
            ApiClient::Local(local) => {
                let answer = local.send(self).await?;
                if answer.status.is_success() {
                    Ok(answer)
                } else {
                    Err(response_errors::parse_failure(&answer))
                }
            }
            ApiClient::Remote(remote) => {
                let answer = remote.send(self).await?;
                if answer.status.is_success() {
                    Ok(answer)
                } else {
                    Err(remote.response_failure(&self.method, &self.path, &answer).await)
                }
            }
        }
    }
}

// === impl ApiClient ===

impl ApiClient {
    /// The answer is not what it should be.
    fn invalid_response(&self, answer: &ApiResponse, error: &serde_json::Error) -> Failure {
        match self {
            Self::Local(_) => {
                Failure::new(FailureKind::Internal, format!("what was answered cannot be read: {error}"))
            }
            Self::Remote(remote) => remote.unreadable_response(answer, error),
        }
    }
}
