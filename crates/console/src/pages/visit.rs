//! Somebody who looks at a page or sends a form.

use axum::{
    body::to_bytes,
    extract::Request,
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, Method, header};
use rialto_edge::session::Session;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::Scope,
};

use super::layout::{self, Frame, Theme};
use crate::{Console, admin::approvals};

/// The largest form.
const LARGEST: usize = 1024 * 1024;

/// Who looks, at what, with what filled in.
pub(crate) struct Visit {
    pub(crate) console: Console,
    pub(crate) caller: Caller,
    session: Session,
    theme: Option<Theme>,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    pub(crate) form: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) uri: http::Uri,
    /// How much waits for its word.
    waiting: usize,
}

// === impl Visit ===

impl Visit {
    /// Reads a request. A form that does not prove to be one of ours goes no further.
    pub(super) async fn read(
        console: Console,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Self, Box<Response>> {
        let (parts, body) = request.into_parts();
        let (caller, session) = (parts.extensions.get::<Caller>(), parts.extensions.get::<Session>());
        let (Some(caller), Some(session)) = (caller.cloned(), session.cloned()) else {
            let failure = Failure::new(FailureKind::Unauthenticated, "this request does not say who calls");
            return Err(Box::new(rialto_edge::problem::answer(&failure)));
        };
        let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
        let theme = layout::theme(&parts.headers);
        let waiting = approvals::count(&console, &caller).await;
        let mut visit = Self {
            console,
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
            let Ok(body) = to_bytes(body, LARGEST).await else {
                let failure =
                    Failure::new(FailureKind::Invalid, "the form did not come whole, or is too large");
                return Err(Box::new(layout::trouble(&visit.frame(), &failure)));
            };
            visit.form = pairs(&body);
            if !visit.session.is_proven(visit.field("csrf")) {
                let message = "this page is too old, or you have signed in anew since; load it again and send the form once more";
                let failure = Failure::new(FailureKind::Denied, message);
                return Err(Box::new(layout::trouble(&visit.frame(), &failure)));
            }
        }
        Ok(visit)
    }

    /// The session of its cookie, if it came with one.
    pub(super) const fn session_id(&self) -> Option<&rialto_model::ids::TokenId> {
        self.session.id.as_ref()
    }

    /// What stands around every page.
    pub(crate) fn frame(&self) -> Frame {
        Frame {
            base: self.base(),
            scope: self.caller.scope.clone(),
            who: self.caller.id.to_string(),
            csrf: self.session.csrf.to_string(),
            is_signed_in: self.session.is_signed_in,
            theme: self.theme,
            done: self.query("done").map(str::to_owned),
            is_sound: self.console.engine().policies_are_sound(),
            waiting: self.waiting,
            place: layout::place(self.uri.path()),
            back: self.came_from(),
            now: self.console.engine().now(),
        }
    }

    /// What stands before every address of the caller's project.
    pub(crate) fn base(&self) -> String {
        base_of(&self.caller.scope)
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

    /// A field of the form.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All fields of that name.
    pub(crate) fn fields(&self, name: &str) -> Vec<String> {
        self.form.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    /// Leads to another page of the project, which says what was done.
    pub(crate) fn go(&self, path: &str, done: &str) -> Response {
        let told = if done.is_empty() { String::new() } else { format!("?done={done}") };
        Redirect::to(&format!("{}/factory{path}{told}", self.base())).into_response()
    }

    /// Leads back to where somebody came from, if that is a page of ours; else to `path`. What was searched for there stays.
    pub(crate) fn back(&self, path: &str, done: &str) -> Response {
        let came = self.came_from().unwrap_or_else(|| format!("{}/factory{path}", self.base()));
        let joint = if came.contains('?') { '&' } else { '?' };
        Redirect::to(&format!("{came}{joint}done={done}")).into_response()
    }

    /// The page of ours that somebody came from, with what was searched for there.
    fn came_from(&self) -> Option<String> {
        let from = self.headers.get(header::REFERER)?.to_str().ok()?;
        let from = url::Url::parse(from).ok()?;
        let rest = from.path().strip_prefix(&format!("{}/factory", self.base()))?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        // What was done there is not done again.
        query.extend_pairs(from.query_pairs().filter(|(name, _)| name != "done"));
        let query = query.finish();
        Some(if query.is_empty() { from.path().to_owned() } else { format!("{}?{query}", from.path()) })
    }
}

/// What stands before every address of a project.
pub(crate) fn base_of(scope: &Scope) -> String {
    if *scope == Scope::default() { String::new() } else { format!("/{}/{}", scope.org, scope.project) }
}

/// What was filled in, or stands behind a question mark.
pub(super) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

/// A text as it may stand in an address.
pub(crate) fn encoded(text: &str) -> String {
    // A space is written out: `+` is one only behind the question mark.
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
