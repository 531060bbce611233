//! Layout of all pages: head, menu, notices, errors and security headers.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use rialto_admin::approvals::MAX_COUNTED;
use rialto_http_server::status;
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::Scope,
};

use crate::{assets, text};

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 20 20'%3E%3Cpath d='M1 15c0-8 4-11 9-11s9 3 9 11h-4c0-5-2-7-5-7s-5 2-5 7z' fill='%232352c8'/%3E%3C/svg%3E";

const LOGO: &str = r#"<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M1 15c0-8 4-11 9-11s9 3 9 11h-4c0-5-2-7-5-7s-5 2-5 7z" fill="currentColor"/></svg>"#;

/// Menu entry with the number of pending approvals.
const APPROVALS: &str = "/approvals";

/// Menu entries: path, label and keyboard shortcut.
const MENU: [(&str, &str, &str); 11] = [
    ("", "Overview", "o"),
    ("/agents", "Agents", "a"),
    ("/tools", "Tools", "l"),
    ("/tasks", "Tasks", "t"),
    ("/workflows", "Workflows", "w"),
    (APPROVALS, "Approvals", "v"),
    ("/dispatches", "Routing", "r"),
    ("/policies", "Policies", "p"),
    ("/guardrails", "Guardrails", "n"),
    ("/tokens", "Tokens", "k"),
    ("/audit", "Audit log", "u"),
];

/// Color theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// Frame of a page: project, caller, session and menu state.
pub(crate) struct PageFrame {
    pub(crate) base: String,
    pub(crate) scope: Scope,
    pub(crate) caller_name: String,
    pub(crate) csrf: String,
    pub(crate) is_signed_in: bool,
    pub(crate) theme: Option<Theme>,
    /// Key of the notice to show.
    pub(crate) done: Option<String>,
    /// Whether the saved policies are valid and active.
    pub(crate) policies_are_valid: bool,
    /// Number of approvals that the caller can decide.
    pub(crate) waiting: usize,
    /// Menu entry of the requested path.
    pub(crate) menu_path: &'static str,
    /// Administration page that the request came from.
    pub(crate) back: Option<String>,
    /// Time of the server, because clocks of browsers differ.
    pub(crate) now: Timestamp,
}

/// Content of a page.
pub(crate) struct PageContent<'a> {
    pub(crate) title: &'a str,
    /// Menu entry it belongs to.
    pub(crate) at: &'a str,
    /// Event stream that reloads it.
    pub(crate) live: Option<String>,
    /// Whether its content is final.
    pub(crate) is_over: bool,
    pub(crate) body: Markup,
}

// === impl Theme ===

impl Theme {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

// === impl PageFrame ===

impl PageFrame {
    /// URL of a page of the project.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/factory{path}", self.base)
    }

    /// Hidden field with the CSRF token, part of every form.
    pub(crate) fn csrf_field(&self) -> Markup {
        html! { input type="hidden" name="csrf" value=(self.csrf); }
    }

    /// Response with status 200.
    pub(crate) fn respond_ok(&self, page: &PageContent<'_>) -> Response {
        self.respond(StatusCode::OK, page)
    }

    pub(crate) fn respond(&self, status: StatusCode, page: &PageContent<'_>) -> Response {
        let html = html! {
            (DOCTYPE)
            html lang="en" data-theme=[self.theme.map(Theme::as_str)] {
                (head(page.title, &self.base, &self.csrf))
                body {
                    a.skip href="#main" { "Skip to the content" }
                    div.shell {
                        (self.menu(page.at))
                        main #main tabindex="-1" data-live=[page.live.as_ref()] data-over[page.is_over] data-now=(self.now.as_second()) {
                            @if !self.policies_are_valid {
                                p.notice.bad role="alert" {
                                    "The saved policies are invalid, so the previous ones stay active. "
                                    "Run " code { "rialto policy check" } " to see the errors."
                                }
                            }
                            @if let Some(notice) = self.done.as_deref().and_then(notice_text) {
                                p.notice.good role="status" tabindex="-1" { (notice) }
                            }
                            (page.body)
                        }
                    }
                    (dialogs())
                    div #aloud.vh aria-live="polite" {}
                }
            }
        };
        html_response(status, html)
    }

    /// Badge with the number of pending approvals, beside the menu entry.
    fn badge(&self) -> Markup {
        let count =
            if self.waiting > MAX_COUNTED { format!("{MAX_COUNTED}+") } else { self.waiting.to_string() };
        html! {
            span data-region="badge" {
                @if self.waiting > 0 { span.badge { (count) span.vh { " waiting" } } }
            }
        }
    }

    fn menu(&self, at: &str) -> Markup {
        html! {
            nav.side aria-label="Administration" {
                a.brand href=(self.url("")) { (PreEscaped(LOGO)) "Rialto" }
                div.where { (text::render_line(&format!("{} / {}", self.scope.org, self.scope.project), 60)) }
                ul {
                    @for (path, name, key) in MENU {
                        li {
                            a href=(self.url(path)) data-key=(key) aria-current=[(path == at).then_some("page")] {
                                (name)
                                @if path == APPROVALS { (self.badge()) }
                            }
                        }
                    }
                }
                div.foot {
                    span.muted.small { "Signed in as " (text::render_line(&self.caller_name, 40)) }
                    form method="post" action=(self.url("/theme")) {
                        (self.csrf_field())
                        button.quiet type="submit" data-theme-switch { "Theme" }
                    }
                    @if self.is_signed_in {
                        form method="post" action=(self.url("/sign-out")) data-plain {
                            (self.csrf_field())
                            button.quiet type="submit" { "Sign out" }
                        }
                    }
                }
            }
        }
    }
}

/// Error page, with a link to the previous console page or the overview.
pub(crate) fn error_page(frame: &PageFrame, failure: &Failure) -> Response {
    let heading = match failure.kind {
        FailureKind::Denied => "Permission denied",
        FailureKind::NotFound => "Not found",
        _ => "Error",
    };
    let body = html! {
        div data-dialog-body {
            div.top { h1 { (heading) } }
            div.notice.bad role="alert" tabindex="-1" { (text::render_message(&failure.message, 2_000)) }
            div.actions {
                a.button href=(frame.back.clone().unwrap_or_else(|| frame.url(""))) { "Back" }
                @if failure.kind == FailureKind::Denied && frame.back.is_some() { a.button href=(frame.url("")) { "First steps" } }
            }
        }
    };
    let page = PageContent { title: "Error", at: frame.menu_path, live: None, is_over: false, body };
    frame.respond(status::from_kind(failure.kind), &page)
}

/// Error message beside the form it is about.
pub(crate) fn error_message(failure: Option<&Failure>) -> Markup {
    html! {
        @if let Some(failure) = failure {
            div.notice.bad role="alert" tabindex="-1" { (text::render_message(&failure.message, 2_000)) }
        }
    }
}

/// Notice for a caller that can read a page, but not change anything.
pub(crate) fn read_only_notice(may: &Result<(), Failure>) -> Markup {
    html! {
        @if let Err(failure) = may {
            div.notice.warn { p { "You have read-only access to this page: " (text::render_message_line(&failure.message, 600)) } }
        }
    }
}

/// Page without a menu, for browsers that are not signed in.
pub(super) fn signed_out_page(
    theme: Option<Theme>,
    status: StatusCode,
    title: &str,
    body: &Markup,
) -> Response {
    let html = html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme.map(Theme::as_str)] {
            (head(title, "", ""))
            body { main #main.narrow tabindex="-1" { (body) } div #aloud.vh aria-live="polite" {} }
        }
    };
    html_response(status, html)
}

/// Menu entry of a path, also if the path is no page.
pub(super) fn menu_entry(path: &str) -> &'static str {
    let first = path.strip_prefix("/factory/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let first = match first {
        "register" | "refresh" => "agents",
        "deploy" => "tools",
        "runs" | "new-workflow" | "check-workflow" => "workflows",
        "check-policy" => "policies",
        own => own,
    };
    MENU.iter().find(|(path, ..)| path.strip_prefix('/') == Some(first)).map_or("", |(path, ..)| path)
}

/// Theme from the cookie of the browser.
pub(crate) fn theme(headers: &HeaderMap) -> Option<Theme> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut parse_pairs = texts.flat_map(|text| text.split(';')).map(str::trim);
    parse_pairs.find_map(|pair| match pair {
        "rialto_theme=light" => Some(Theme::Light),
        "rialto_theme=dark" => Some(Theme::Dark),
        _ => None,
    })
}

fn head(title: &str, base: &str, csrf: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="base" content=(base);
            meta name="csrf" content=(csrf);
            title { (text::escape_invisible(&text::truncate(title, 120).0, false)) " · Rialto" }
            link rel="icon" href=(ICON);
            link rel="stylesheet" href=(assets::style_path());
            script src=(assets::script_path()) defer {}
        }
    }
}

fn dialogs() -> Markup {
    let keys = [("/", "Search"), ("?", "This help"), ("Esc", "Close")];
    html! {
        dialog #over aria-label="Dialog" {
            button.quiet.close type="button" data-close aria-label="Close" { "✕" }
            div data-dialog-body {}
        }
        dialog #keys aria-labelledby="keys-title" {
            button.quiet.close type="button" data-close aria-label="Close" { "✕" }
            h2 #keys-title { "Keyboard shortcuts" }
            dl.facts {
                @for (key, does) in keys { dt { kbd { (key) } } dd { (does) } }
                @for (_, name, key) in MENU {
                    dt { kbd { "g" } " " kbd { (key) } } dd { (name) }
                }
            }
        }
    }
}

fn html_response(status: StatusCode, html: Markup) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // Without a policy, browsers would not send the origin of a form.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, html.into_string()).into_response()
}

/// Notice for a completed operation. The key comes from the query, so only these texts are possible.
fn notice_text(done: &str) -> Option<&'static str> {
    Some(match done {
        "registered" => "The agent is registered.",
        "updated" => "The agent was registered before and is updated.",
        "refreshed" => "The card is unchanged.",
        "changed" => "The card has changed.",
        "held" => "The card has changed. The change is waiting for approval.",
        "refreshed-all" => "All agents were refreshed.",
        "refreshed-some" => "Refresh finished; some agents did not answer.",
        "unanswered" => "Refresh failed; the page of the agent shows the error.",
        "nobody" => "No agents match, so nothing was refreshed.",
        "removed" => "Successfully removed.",
        "deployed" => "Successfully added. Its tools are available as soon as it answers.",
        "asked" => "The tool list was refreshed.",
        "silent" => "Refresh failed; the error is shown beside its name.",
        "trusted" => "The trust level was changed and takes effect immediately.",
        "approved" => "The new card is in use.",
        "allowed" => "The call is approved and continues.",
        "denied" => "The call is denied.",
        "canceled" => "The task is canceled.",
        "stopped" => "The run is canceled.",
        "run" => "The run has started.",
        "said" => "Your message was sent.",
        "begun" => "The task has started.",
        "saved" => "The policy is saved and active.",
        "kept" => "The workflow is saved.",
        "draft" => "The workflow is a draft. Only test runs are possible.",
        "active" => "The workflow is active.",
        "archived" => "The workflow is archived.",
        "resumed" => "The run was resumed.",
        "revoked" => "The token is revoked.",
        "ended" => "The session has ended.",
        _ => return None,
    })
}
