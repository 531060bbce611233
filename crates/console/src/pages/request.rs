//! Request for a page, or a submitted form.

use axum::{
    body::to_bytes,
    extract::Request,
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, Method, header};
use rialto_admin::{Administration, approvals, tenants::project_path};
use rialto_http_server::session::BrowserSession;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
};

use super::layout::{self, PageFrame, Theme};

/// Maximum size of a form.
const MAX_FORM_BYTES: usize = 1024 * 1024;

/// Request for a page: caller, session, parameters and form fields.
pub(crate) struct PageRequest {
    pub(crate) admin: Administration,
    pub(crate) caller: Caller,
    session: BrowserSession,
    theme: Option<Theme>,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    pub(crate) form: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) uri: http::Uri,
    /// Number of approvals that the caller can decide.
    waiting: usize,
}

// === impl PageRequest ===

impl PageRequest {
    /// Reads a request. A form without a valid CSRF token is rejected.
    pub(super) async fn read(
        admin: Administration,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, Box<Response>> {
        let (parts, body) = request.into_parts();
        let (caller, session) = (parts.extensions.get::<Caller>(), parts.extensions.get::<BrowserSession>());
        let (Some(caller), Some(session)) = (caller.cloned(), session.cloned()) else {
            let failure = Failure::new(FailureKind::Unauthenticated, "this request has no caller");
            return Err(Box::new(rialto_http_server::problem::respond(&failure)));
        };
        let query = parse_pairs(parts.uri.query().unwrap_or_default().as_bytes());
        let theme = layout::theme(&parts.headers);
        let waiting = approvals::count_waiting(&admin, &caller).await;
        let mut request = Self {
            admin,
            caller,
            session,
            theme,
            params,
            query,
            form: Vec::new(),
            headers: parts.headers,
            uri: parts.uri,
            waiting,
        };
        if parts.method == Method::POST {
            let Ok(body) = to_bytes(body, MAX_FORM_BYTES).await else {
                let failure = Failure::new(FailureKind::Invalid, "the form is incomplete or too large");
                return Err(Box::new(layout::error_page(&request.frame(), &failure)));
            };
            request.form = parse_pairs(&body);
            if !request.session.is_proven(request.field("csrf")) {
                let message =
                    "this page is outdated, or you signed in again since; reload it and send the form again";
                let failure = Failure::new(FailureKind::Denied, message);
                return Err(Box::new(layout::error_page(&request.frame(), &failure)));
            }
        }
        Ok(request)
    }

    /// Id of the session in its cookie, if there is one.
    pub(super) const fn session_id(&self) -> Option<&rialto_model::ids::TokenId> {
        self.session.id.as_ref()
    }

    /// Frame of the page.
    pub(crate) fn frame(&self) -> PageFrame {
        PageFrame {
            base: self.base(),
            scope: self.caller.scope.clone(),
            caller_name: self.caller.id.to_string(),
            csrf: self.session.csrf.to_string(),
            is_signed_in: self.session.is_signed_in,
            theme: self.theme,
            done: self.query("done").map(str::to_owned),
            policies_are_valid: self.admin.engine().policies().is_up_to_date(),
            waiting: self.waiting,
            menu_path: layout::menu_entry(self.uri.path()),
            back: self.referring_page(),
            now: self.admin.engine().now(),
        }
    }

    /// Path prefix of the caller's project.
    pub(crate) fn base(&self) -> String {
        project_path(&self.caller.scope)
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

    /// Field of the form.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All fields of the form with this name.
    pub(crate) fn fields(&self, name: &str) -> Vec<String> {
        self.form.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    /// Redirects to a page of the project, with a notice.
    pub(crate) fn redirect(&self, path: &str, done: &str) -> Response {
        let notice_query = if done.is_empty() { String::new() } else { format!("?done={done}") };
        Redirect::to(&format!("{}/factory{path}{notice_query}", self.base())).into_response()
    }

    /// Redirects to the console page that the request came from, with its query, or else to `path`.
    pub(crate) fn redirect_back(&self, path: &str, done: &str) -> Response {
        let target = self.referring_page().unwrap_or_else(|| format!("{}/factory{path}", self.base()));
        let separator = if target.contains('?') { '&' } else { '?' };
        Redirect::to(&format!("{target}{separator}done={done}")).into_response()
    }

    /// Administration page that the request came from, with its query.
    fn referring_page(&self) -> Option<String> {
        let from = self.headers.get(header::REFERER)?.to_str().ok()?;
        let from = url::Url::parse(from).ok()?;
        let rest = from.path().strip_prefix(&format!("{}/factory", self.base()))?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        // The notice of that page is not shown again.
        query.extend_pairs(from.query_pairs().filter(|(name, _)| name != "done"));
        let query = query.finish();
        Some(if query.is_empty() { from.path().to_owned() } else { format!("{}?{query}", from.path()) })
    }
}

/// Fields of a form, or parameters of a query.
pub(super) fn parse_pairs(text: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

/// Text encoded as a path segment.
pub(crate) fn encode_segment(text: &str) -> String {
    // A space is `%20`, because `+` means a space only in a query.
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
