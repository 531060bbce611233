//! Who may come in.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_api_types::tokens::{NewToken, TokenState};
use rialto_model::{
    failure::{Failure, FailureKind},
    store::Token,
    token_scopes::TokenScope,
};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{sessions, tokens},
    text,
};

const HERE: &str = "/tokens";

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    show(&visit, StatusCode::OK, &html! {}).await
}

pub(super) async fn create(visit: Visit) -> Result<Response, Failure> {
    let made = match wanted(&visit) {
        Ok(wanted) => tokens::create(&visit.console, &visit.caller, &wanted).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match made {
        Ok((row, token)) => {
            let said = html! {
                div.said.good role="status" tabindex="-1" {
                    p { "A token for " (text::line(row.caller.as_str(), 80)) ". It is shown this once, and only its hash is kept:" }
                    div.copy { pre tabindex="0" { code #fresh-token { (token) } } button.needs-script type="button" data-copy { "Copy" } }
                }
            };
            show(&visit, StatusCode::CREATED, &said).await
        }
        Err(failure) => {
            show(&visit, StatusCode::UNPROCESSABLE_ENTITY, &layout::refused(Some(&failure))).await
        }
    }
}

/// What the form says.
fn wanted(visit: &Visit) -> Result<NewToken, &'static str> {
    let days = visit.field("days").map(str::trim).filter(|days| !days.is_empty());
    let days: Option<u32> = match days.map(str::parse) {
        None => None,
        Some(Ok(days)) if days > 0 => Some(days),
        Some(_) => {
            return Err("days: write a number of days, 1 or more, or nothing for a token without an end");
        }
    };
    let scopes: Vec<TokenScope> = visit.fields("scope").iter().filter_map(|word| word.parse().ok()).collect();
    if scopes.is_empty() {
        return Err("scopes: tick at least one of call, discover and admin");
    }
    let caller = visit.field("caller").unwrap_or_default().to_owned();
    Ok(NewToken { caller, scopes, expires_days: days, ..NewToken::default() })
}

pub(super) async fn ask_revoke(visit: Visit) -> Result<Response, Failure> {
    let (frame, id) = (visit.frame(), visit.part("id"));
    let body = html! {
        div data-dialog-body {
            h1 { "Revoke this token?" }
            p { "Whoever comes with " code { (text::line(id, 80)) } " is refused from the very next request on. That cannot be undone." }
            form method="post" action=(frame.to(&format!("/tokens/{}/revoke", encoded(id)))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Revoke" } a.button href=(frame.to(HERE)) { "Keep it" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Revoke a token", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn end_session(visit: Visit) -> Result<Response, Failure> {
    sessions::end(&visit.console, &visit.caller, visit.part("id")).await?;
    Ok(visit.go(HERE, "ended"))
}

pub(super) async fn revoke(visit: Visit) -> Result<Response, Failure> {
    tokens::revoke(&visit.console, &visit.caller, visit.part("id")).await?;
    Ok(visit.go(HERE, "revoked"))
}

async fn show(visit: &Visit, status: StatusCode, said: &Markup) -> Result<Response, Failure> {
    let tokens = tokens::list(&visit.console, &visit.caller).await?;
    let signed_in = sessions::list(&visit.console, &visit.caller).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Tokens" } p.sub { "Who may come in over HTTP" } } }
        (said)
        (form(&frame, (status == StatusCode::UNPROCESSABLE_ENTITY).then_some(visit)))
        div.panel.flush {
            @if tokens.is_empty() { div.empty { p { "No tokens are kept here yet: make one above for each who calls. The one that you came with stands in the server's environment or configuration." } } } @else { (table(visit, &frame, &tokens)) }
        }
        @if !signed_in.is_empty() { (sessions_table(visit, &frame, &signed_in)) }
    };
    Ok(frame.answer(status, &Page { title: "Tokens", at: HERE, live: None, is_over: false, body }))
}

/// The form, filled in as it was where it was not taken.
fn form(frame: &Frame, given: Option<&Visit>) -> Markup {
    let field = |name| given.and_then(|visit| visit.field(name));
    let is_ticked = |right: TokenScope| match given {
        Some(visit) => visit.fields("scope").iter().any(|word| word == right.as_str()),
        None => right != TokenScope::Admin,
    };
    html! {
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            h2 { "Make a token" }
            div.filters {
                div { label for="caller" { "Caller" } input #caller type="text" name="caller" value=[field("caller")] required autocomplete="off" placeholder="ann"; }
                div { label for="days" { "Days" } input #days type="text" inputmode="numeric" name="days" value=[field("days")] placeholder="for ever"; }
                @for right in TokenScope::EACH {
                    label.check { input type="checkbox" name="scope" value=(right.as_str()) checked[is_ticked(right)]; (right.as_str()) }
                }
                button.first type="submit" { "Make" }
            }
        }
    }
}

/// Who is signed in. A session ends at once, so it needs no second question: signing in again is all that it costs.
fn sessions_table(visit: &Visit, frame: &Frame, sessions: &[Token]) -> Markup {
    let now = visit.console.engine().now();
    html! {
        h2 { "Console sessions" }
        div.panel.flush {
            table.cards {
                thead { tr { th { "Session" } th { "Caller" } th { "Since" } th { "Expires" } th { span.vh { "Actions" } } } }
                tbody {
                    @for session in sessions {
                        tr {
                            td { code { (session.id) } }
                            td data-label="Caller" { (text::line(session.caller.as_str(), 60)) }
                            td data-label="Since" { (text::moment(session.created_at, now)) }
                            td data-label="Expires" { @if let Some(at) = session.expires_at { (at.strftime("%F %T")) } }
                            td.acts {
                                form.inline method="post" action=(frame.to(&format!("/sessions/{}/end", encoded(&session.id)))) {
                                    (frame.proof())
                                    button.quiet type="submit" aria-label=(format!("End {}", session.id)) { "End" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table(visit: &Visit, frame: &Frame, tokens: &[Token]) -> Markup {
    let now = visit.console.engine().now();
    html! {
        table.cards {
            thead { tr { th { "Token" } th { "Caller" } th { "Scopes" } th { "Project" } th { "Created" } th { "Created by" } th { "Expires" } th { "State" } th { span.vh { "Actions" } } } }
            tbody {
                @for token in tokens {
                    @let state = tokens::state(token, now);
                    tr {
                        td { code { (token.id) } }
                        td data-label="Caller" { (text::line(token.caller.as_str(), 60)) }
                        td data-label="Scopes" { (token.rights.to_string()) }
                        td data-label="Project" { (text::line(token.scope.project.as_str(), 60)) }
                        td data-label="Created" { (text::moment(token.created_at, now)) }
                        td data-label="Created by" { (text::line(token.created_by.as_deref().unwrap_or_default(), 60)) }
                        td data-label="Expires" { @match token.expires_at { Some(at) => (at.strftime("%F")), None => "never" } }
                        td data-label="State" { span class=(if state == TokenState::Active { "state good" } else { "state" }) { (state.as_str()) } }
                        td.acts {
                            @if state == TokenState::Active {
                                a.button.quiet href=(frame.to(&format!("/tokens/{}/revoke", encoded(&token.id)))) data-dialog aria-label=(format!("Revoke {}", token.id)) { "Revoke" }
                            }
                        }
                    }
                }
            }
        }
    }
}
