//! The data folder of this machine, asked as a server would be.

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{Request, header};
use rialto_admin::Administration;
use rialto_http_server::in_process;
use rialto_model::failure::{Failure, FailureKind};

use super::request::{ApiRequest, ApiResponse};
use crate::{app::App, console_host};

/// The program, opened, and its routes.
pub(crate) struct LocalApi {
    pub(crate) program: App,
    /// Operations, for a local user.
    pub(crate) admin: Administration,
    /// API routes of these operations.
    api: Router,
}

// === impl LocalApi ===

impl LocalApi {
    pub(super) fn new(program: App) -> Self {
        let admin = console_host::administration_at_machine(&program);
        let api = rialto_api::router(&admin);
        Self { program, admin, api }
    }

    pub(super) async fn send(&self, question: &ApiRequest<'_>) -> Result<ApiResponse, Failure> {
        let internal = |why: String| Failure::new(FailureKind::Internal, why);
        let body = question.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.get().to_owned()));
        let request = Request::builder()
            .method(question.method.clone())
            .uri(question.path_and_query())
            .extension(self.program.local_caller())
            .body(body)
            .map_err(|error| internal(error.to_string()))?;
        let (head, body) = in_process::call(self.api.clone(), request).await.into_parts();
        let media = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        // It is our own, and of this machine: it may be as large as it is.
        let body = to_bytes(body, usize::MAX).await.map_err(|error| internal(error.to_string()))?;
        Ok(ApiResponse { status: head.status, media, body })
    }
}
