//! What every page has: head, menu, messages, and the headers that keep it to itself.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use rialto_edge::status;
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::Scope,
};

use crate::{admin::approvals::COUNTED, assets, text};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 20 20'%3E%3Cpath d='M1 15c0-8 4-11 9-11s9 3 9 11h-4c0-5-2-7-5-7s-5 2-5 7z' fill='%232352c8'/%3E%3C/svg%3E";

const MARK: &str = r#"<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M1 15c0-8 4-11 9-11s9 3 9 11h-4c0-5-2-7-5-7s-5 2-5 7z" fill="currentColor"/></svg>"#;

/// The entry of the menu that says how much waits.
const APPROVALS: &str = "/approvals";

/// The menu: where it leads, what it is called, and its key.
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
    ("/audit", "Audit", "u"),
];

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// What stands around every page.
pub(crate) struct Frame {
    pub(crate) base: String,
    pub(crate) scope: Scope,
    pub(crate) who: String,
    pub(crate) csrf: String,
    pub(crate) is_signed_in: bool,
    pub(crate) theme: Option<Theme>,
    /// What was just done.
    pub(crate) done: Option<String>,
    /// Whether the policies in force are those that are kept.
    pub(crate) is_sound: bool,
    /// How much waits for the word of whoever looks.
    pub(crate) waiting: usize,
    /// The entry of the menu that the address belongs to.
    pub(crate) place: &'static str,
    /// The page of ours that somebody came from.
    pub(crate) back: Option<String>,
    /// What time it is here: browsers' clocks differ.
    pub(crate) now: Timestamp,
}

/// One page.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// The entry of the menu that it belongs to.
    pub(crate) at: &'a str,
    /// The events that have it look again.
    pub(crate) live: Option<String>,
    /// Whether nothing more will happen on it.
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

// === impl Frame ===

impl Frame {
    /// The address of a page of the project.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}/factory{path}", self.base)
    }

    /// What every form has in it.
    pub(crate) fn proof(&self) -> Markup {
        html! { input type="hidden" name="csrf" value=(self.csrf); }
    }

    /// A page with a good status.
    pub(crate) fn page(&self, page: &Page<'_>) -> Response {
        self.answer(StatusCode::OK, page)
    }

    pub(crate) fn answer(&self, status: StatusCode, page: &Page<'_>) -> Response {
        let html = html! {
            (DOCTYPE)
            html lang="en" data-theme=[self.theme.map(Theme::as_str)] {
                (head(page.title, &self.base, &self.csrf))
                body {
                    a.skip href="#main" { "Skip to the content" }
                    div.shell {
                        (self.menu(page.at))
                        main #main tabindex="-1" data-live=[page.live.as_ref()] data-over[page.is_over] data-now=(self.now.as_second()) {
                            @if !self.is_sound {
                                p.said.bad role="alert" {
                                    "The policies that are kept do not hold up, so those before stay in force. "
                                    "Run " code { "rialto policy check" } " to see what is wrong."
                                }
                            }
                            @if let Some(said) = self.done.as_deref().and_then(told) {
                                p.said.good role="status" tabindex="-1" { (said) }
                            }
                            (page.body)
                        }
                    }
                    (dialogs())
                    div #aloud.vh aria-live="polite" {}
                }
            }
        };
        respond(status, html)
    }

    /// How much waits, beside the entry of the menu.
    fn badge(&self) -> Markup {
        let told = if self.waiting > COUNTED { format!("{COUNTED}+") } else { self.waiting.to_string() };
        html! {
            span data-region="badge" {
                @if self.waiting > 0 { span.badge { (told) span.vh { " waiting" } } }
            }
        }
    }

    fn menu(&self, at: &str) -> Markup {
        html! {
            nav.side aria-label="Console" {
                a.brand href=(self.to("")) { (PreEscaped(MARK)) "Rialto" }
                div.where { (text::line(&format!("{} / {}", self.scope.org, self.scope.project), 60)) }
                ul {
                    @for (path, name, key) in MENU {
                        li {
                            a href=(self.to(path)) data-key=(key) aria-current=[(path == at).then_some("page")] {
                                (name)
                                @if path == APPROVALS { (self.badge()) }
                            }
                        }
                    }
                }
                div.foot {
                    span.muted.small { "Signed in as " (text::line(&self.who, 40)) }
                    form method="post" action=(self.to("/theme")) {
                        (self.proof())
                        button.quiet type="submit" data-theme-switch { "Light or dark" }
                    }
                    @if self.is_signed_in {
                        form method="post" action=(self.to("/sign-out")) data-plain {
                            (self.proof())
                            button.quiet type="submit" { "Sign out" }
                        }
                    }
                }
            }
        }
    }
}

/// A page that says what went wrong. Whoever did not come from one of ours is led to the first.
pub(crate) fn trouble(frame: &Frame, failure: &Failure) -> Response {
    let heading = match failure.kind {
        FailureKind::Denied => "You may not do that",
        FailureKind::NotFound => "There is no such thing",
        _ => "That did not work",
    };
    let body = html! {
        div data-dialog-body {
            div.top { h1 { (heading) } }
            div.said.bad role="alert" tabindex="-1" { (text::told(&failure.message, 2_000)) }
            div.actions {
                a.button href=(frame.back.clone().unwrap_or_else(|| frame.to(""))) { "Back" }
                @if failure.kind == FailureKind::Denied && frame.back.is_some() { a.button href=(frame.to("")) { "First steps" } }
            }
        }
    };
    let page = Page { title: "Trouble", at: frame.place, live: None, is_over: false, body };
    frame.answer(status::of(failure.kind), &page)
}

/// What is said in place about a form that was not taken.
pub(crate) fn refused(failure: Option<&Failure>) -> Markup {
    html! {
        @if let Some(failure) = failure {
            div.said.bad role="alert" tabindex="-1" { (text::told(&failure.message, 2_000)) }
        }
    }
}

/// What is said where somebody may look but not do.
pub(crate) fn barred(may: &Result<(), Failure>) -> Markup {
    html! {
        @if let Err(failure) = may {
            div.said.warn { p { "You can look, but not change anything here: " (text::phrase(&failure.message, 600)) } }
        }
    }
}

/// A page without a menu, for whoever is not in yet.
pub(super) fn outside(theme: Option<Theme>, status: StatusCode, title: &str, body: &Markup) -> Response {
    let html = html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme.map(Theme::as_str)] {
            (head(title, "", ""))
            body { main #main.narrow tabindex="-1" { (body) } div #aloud.vh aria-live="polite" {} }
        }
    };
    respond(status, html)
}

/// The entry of the menu that an address belongs to, which need not lead to a page.
pub(super) fn place(path: &str) -> &'static str {
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

/// The colours that a browser remembers.
pub(crate) fn theme(headers: &HeaderMap) -> Option<Theme> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).map(str::trim);
    pairs.find_map(|pair| match pair {
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
            title { (text::visible(&text::cut(title, 120).0, false)) " · Rialto" }
            link rel="icon" href=(ICON);
            link rel="stylesheet" href=(assets::style());
            script src=(assets::script()) defer {}
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
            h2 #keys-title { "Keys" }
            dl.facts {
                @for (key, does) in keys { dt { kbd { (key) } } dd { (does) } }
                @for (_, name, key) in MENU {
                    dt { kbd { "g" } " " kbd { (key) } } dd { (name) }
                }
            }
        }
    }
}

fn respond(status: StatusCode, html: Markup) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // Without any, browsers would not say where a form comes from.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, html.into_string()).into_response()
}

/// What was done, in words. Only these can be said: an address cannot put others here.
fn told(done: &str) -> Option<&'static str> {
    Some(match done {
        "registered" => "The agent is registered.",
        "updated" => "The agent was known; its row is up to date.",
        "refreshed" => "The card was fetched again and is as it was.",
        "changed" => "The card was fetched again, and has changed.",
        "held" => "The card has changed, and waits for approval.",
        "refreshed-all" => "All cards were fetched again.",
        "refreshed-some" => "Cards were fetched again; some agents did not answer.",
        "unanswered" => "The agent did not answer as it should; what went wrong stands on its page.",
        "nobody" => "Nobody fits, so nobody was asked.",
        "removed" => "It is removed.",
        "deployed" => "It is deployed; its tools are offered as soon as it has answered.",
        "asked" => "It was asked again what it offers, and has answered.",
        "silent" => "It was asked again, and did not answer; what keeps it from that stands beside its name.",
        "trusted" => "The level of trust is changed; the next call goes by it.",
        "approved" => "The new card is in use.",
        "allowed" => "It is approved, and goes on.",
        "denied" => "It is denied.",
        "canceled" => "The task is called off.",
        "stopped" => "The run is called off.",
        "run" => "The run has begun.",
        "said" => "Your message was sent.",
        "begun" => "The task has begun.",
        "saved" => "The policy is saved and in force.",
        "kept" => "The workflow is kept.",
        "draft" => "The workflow is a draft now: it runs only to be tried out.",
        "active" => "The workflow is in use now.",
        "archived" => "The workflow is archived: it runs no more.",
        "resumed" => "The run goes on.",
        "revoked" => "The token lets nobody in any more.",
        "ended" => "The session is ended.",
        _ => return None,
    })
}
