//! One question of a command, and the answer read into what the command shows.

use std::time::Duration;

use axum::body::Bytes;
use http::{Method, StatusCode};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    name::in_path,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Desk, trouble};

/// How long an answer may take that should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an answer may take for which agents are asked.
const MORE_PATIENCE: Duration = Duration::from_secs(600);

/// The largest page that is handed out.
const PAGE: usize = 500;

/// A question that is put together.
pub(crate) struct Question<'a> {
    desk: &'a Desk,
    pub(super) method: Method,
    /// Below `/api/v1`, with a slash in front.
    pub(super) path: String,
    query: Vec<(&'static str, String)>,
    pub(super) body: Option<Json>,
    pub(super) patience: Duration,
    /// Whether a part of the path is nothing at all, which would ask for something else.
    is_empty: bool,
}

/// What came back, read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) media: String,
    pub(super) body: Bytes,
}

// === impl Question ===

impl<'a> Question<'a> {
    pub(super) fn new(desk: &'a Desk, method: Method, parts: &[&str]) -> Self {
        let path = parts.iter().map(|part| format!("/{}", in_path(part))).collect();
        let is_empty = parts.iter().any(|part| part.is_empty());
        Self { desk, method, path, query: Vec::new(), body: None, patience: PATIENCE, is_empty }
    }

    /// The same, with a parameter.
    #[expect(clippy::needless_pass_by_value, reason = "what is asked is mostly made for the question")]
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// The same, with a parameter, if it is given.
    pub(crate) fn with_given(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same, with a body.
    pub(crate) fn saying<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        self.body = Some(Json::encode(body));
        self
    }

    /// The same, for what takes its time because agents are asked.
    pub(crate) const fn patiently(mut self) -> Self {
        self.patience = MORE_PATIENCE;
        self
    }

    /// What is answered.
    pub(crate) async fn read<T: DeserializeOwned>(self) -> Result<T, Failure> {
        self.made().await.map(|(_, value)| value)
    }

    /// What is answered, and whether it was made by this.
    pub(crate) async fn made<T: DeserializeOwned>(self) -> Result<(bool, T), Failure> {
        let answer = self.send().await?;
        let value = serde_json::from_slice(&answer.body).map_err(|error| self.desk.unfit(&answer, &error))?;
        Ok((answer.status == StatusCode::CREATED, value))
    }

    /// Has it done; there is nothing to tell about it.
    pub(crate) async fn done(self) -> Result<(), Failure> {
        self.send().await.map(drop)
    }

    /// The rows of a list that is handed out in pages: all, or as many as are wanted.
    pub(crate) async fn rows<T: DeserializeOwned>(
        mut self,
        name: &str,
        limit: Option<usize>,
    ) -> Result<Vec<T>, Failure> {
        let mut rows: Vec<T> = Vec::new();
        loop {
            let wanted = limit.map_or(PAGE, |limit| limit.saturating_sub(rows.len()).min(PAGE));
            if wanted == 0 {
                return Ok(rows);
            }
            self.query.retain(|(name, _)| *name != "limit");
            self.query.push(("limit", wanted.to_string()));
            let answer = self.send().await?;
            let unfit = |error: serde_json::Error| self.desk.unfit(&answer, &error);
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
    pub(super) fn address(&self) -> String {
        let mut address = format!("/api/v1{}", self.path);
        for (at, (name, value)) in self.query.iter().enumerate() {
            address.push(if at == 0 { '?' } else { '&' });
            address += &format!("{name}={}", in_path(value));
        }
        address
    }

    async fn send(&self) -> Result<Answer, Failure> {
        if self.is_empty {
            return Err(Failure::new(
                FailureKind::Invalid,
                "an empty name means nothing; say which one is meant",
            ));
        }
        match self.desk {
            Desk::Here(here) => {
                let answer = here.send(self).await?;
                if answer.status.is_success() { Ok(answer) } else { Err(trouble::told(&answer)) }
            }
            Desk::There(there) => {
                let answer = there.send(self).await?;
                if answer.status.is_success() {
                    Ok(answer)
                } else {
                    Err(there.told(&self.method, &self.path, &answer).await)
                }
            }
        }
    }
}

// === impl Desk ===

impl Desk {
    /// The answer is not what it should be.
    fn unfit(&self, answer: &Answer, error: &serde_json::Error) -> Failure {
        match self {
            Self::Here(_) => {
                Failure::new(FailureKind::Internal, format!("what was answered cannot be read: {error}"))
            }
            Self::There(there) => there.garbled(answer, error),
        }
    }
}
