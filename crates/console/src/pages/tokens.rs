//! Page of bearer tokens and console sessions.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{sessions, tokens};
use rialto_api_types::tokens::{NewToken, TokenState};
use rialto_model::{
    failure::{Failure, FailureKind},
    store::Token,
    token_scopes::TokenScope,
};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::text;

const PAGE_PATH: &str = "/tokens";

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    show(&request, StatusCode::OK, &html! {}).await
}

pub(super) async fn create(request: PageRequest) -> Result<Response, Failure> {
    let created = match read_form(&request) {
        Ok(new) => tokens::create(&request.admin, &request.caller, &new).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match created {
        Ok((row, token)) => {
            let notice = html! {
                div.notice.good role="status" tabindex="-1" {
                    p { "Token for " (text::render_line(row.caller.as_str(), 80)) ". Copy it now: it is shown once, and only its hash is stored." }
                    div.copy { pre tabindex="0" { code #fresh-token { (token) } } button.needs-script type="button" data-copy { "Copy" } }
                }
            };
            show(&request, StatusCode::CREATED, &notice).await
        }
        Err(failure) => {
            show(&request, StatusCode::UNPROCESSABLE_ENTITY, &layout::error_message(Some(&failure))).await
        }
    }
}

/// Token from the fields of the form.
fn read_form(request: &PageRequest) -> Result<NewToken, &'static str> {
    let days = request.field("days").map(str::trim).filter(|days| !days.is_empty());
    let days: Option<u32> = match days.map(str::parse) {
        None => None,
        Some(Ok(days)) if days > 0 => Some(days),
        Some(_) => {
            return Err(
                "days: enter a number of days, 1 or more, or leave it empty for a token that never expires",
            );
        }
    };
    let scopes: Vec<TokenScope> =
        request.fields("scope").iter().filter_map(|word| word.parse().ok()).collect();
    if scopes.is_empty() {
        return Err("scopes: select at least one of call, discover and admin");
    }
    let caller = request.field("caller").unwrap_or_default().to_owned();
    Ok(NewToken { caller, scopes, expires_days: days, ..NewToken::default() })
}

pub(super) async fn confirm_revoke(request: PageRequest) -> Result<Response, Failure> {
    let (frame, id) = (request.frame(), request.path_param("id"));
    let body = html! {
        div data-dialog-body {
            h1 { "Revoke this token?" }
            p { "Requests with " code { (text::render_line(id, 80)) } " are denied immediately. This cannot be undone." }
            form method="post" action=(frame.url(&format!("/tokens/{}/revoke", encode_segment(id)))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Revoke" } a.button href=(frame.url(PAGE_PATH)) { "Cancel" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Revoke a token",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn end_session(request: PageRequest) -> Result<Response, Failure> {
    sessions::end(&request.admin, &request.caller, request.path_param("id")).await?;
    Ok(request.redirect(PAGE_PATH, "ended"))
}

pub(super) async fn revoke(request: PageRequest) -> Result<Response, Failure> {
    tokens::revoke(&request.admin, &request.caller, request.path_param("id")).await?;
    Ok(request.redirect(PAGE_PATH, "revoked"))
}

async fn show(request: &PageRequest, status: StatusCode, notice: &Markup) -> Result<Response, Failure> {
    let tokens = tokens::list(&request.admin, &request.caller).await?;
    let signed_in = sessions::list(&request.admin, &request.caller).await?;
    let frame = request.frame();
    let body = html! {
        div.top { div { h1 { "Tokens" } p.sub { "Bearer tokens and console sessions of the org" } } }
        (notice)
        (form(&frame, (status == StatusCode::UNPROCESSABLE_ENTITY).then_some(request)))
        div.panel.flush {
            @if tokens.is_empty() { div.empty { p { "No tokens yet. Create one above for each caller. The token you use now comes from the server's environment or configuration." } } } @else { (table(request, &frame, &tokens)) }
        }
        @if !signed_in.is_empty() { (sessions_table(request, &frame, &signed_in)) }
    };
    Ok(frame
        .respond(status, &PageContent { title: "Tokens", at: PAGE_PATH, live: None, is_over: false, body }))
}

/// Form to create a token, with the previous values after an error.
fn form(frame: &PageFrame, given: Option<&PageRequest>) -> Markup {
    let field = |name| given.and_then(|request| request.field(name));
    let is_ticked = |right: TokenScope| match given {
        Some(request) => request.fields("scope").iter().any(|word| word == right.as_str()),
        None => right != TokenScope::Admin,
    };
    html! {
        form.panel method="post" action=(frame.url(PAGE_PATH)) {
            (frame.csrf_field())
            h2 { "Create a token" }
            div.filters {
                div { label for="caller" { "Caller" } input #caller type="text" name="caller" value=[field("caller")] required autocomplete="off" placeholder="ann"; }
                div { label for="days" { "Expires after days" } input #days type="text" inputmode="numeric" name="days" value=[field("days")] placeholder="never"; }
                @for right in TokenScope::EACH {
                    label.check { input type="checkbox" name="scope" value=(right.as_str()) checked[is_ticked(right)]; (right.as_str()) }
                }
                button.first type="submit" { "Create" }
            }
        }
    }
}

/// Table of console sessions. Ending one needs no confirmation, because its user can sign in again.
fn sessions_table(request: &PageRequest, frame: &PageFrame, sessions: &[Token]) -> Markup {
    let now = request.admin.engine().now();
    html! {
        h2 { "Console sessions" }
        div.panel.flush {
            table.cards {
                thead { tr { th { "Session" } th { "Caller" } th { "Started" } th { "Expires" } th { span.vh { "Actions" } } } }
                tbody {
                    @for session in sessions {
                        tr {
                            td { code { (session.id) } }
                            td data-label="Caller" { (text::render_line(session.caller.as_str(), 60)) }
                            td data-label="Started" { (text::time_ago(session.created_at, now)) }
                            td data-label="Expires" { @if let Some(at) = session.expires_at { (at.strftime("%F %T")) } }
                            td.acts {
                                form.inline method="post" action=(frame.url(&format!("/sessions/{}/end", encode_segment(&session.id)))) {
                                    (frame.csrf_field())
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

fn table(request: &PageRequest, frame: &PageFrame, tokens: &[Token]) -> Markup {
    let now = request.admin.engine().now();
    html! {
        table.cards {
            thead { tr { th { "Token" } th { "Caller" } th { "Scopes" } th { "Project" } th { "Created" } th { "Created by" } th { "Expires" } th { "State" } th { span.vh { "Actions" } } } }
            tbody {
                @for token in tokens {
                    @let state = tokens::state(token, now);
                    tr {
                        td { code { (token.id) } }
                        td data-label="Caller" { (text::render_line(token.caller.as_str(), 60)) }
                        td data-label="Scopes" { (token.rights.to_string()) }
                        td data-label="Project" { (text::render_line(token.scope.project.as_str(), 60)) }
                        td data-label="Created" { (text::time_ago(token.created_at, now)) }
                        td data-label="Created by" { (text::render_line(token.created_by.as_deref().unwrap_or_default(), 60)) }
                        td data-label="Expires" { @match token.expires_at { Some(at) => (at.strftime("%F")), None => "never" } }
                        td data-label="State" { span class=(if state == TokenState::Active { "state good" } else { "state" }) { (state_label(state)) } }
                        td.acts {
                            @if state == TokenState::Active {
                                a.button.quiet href=(frame.url(&format!("/tokens/{}/revoke", encode_segment(&token.id)))) data-dialog aria-label=(format!("Revoke {}", token.id)) { "Revoke" }
                            }
                        }
                    }
                }
            }
        }
    }
}

const fn state_label(state: TokenState) -> &'static str {
    match state {
        TokenState::Active => "active",
        TokenState::Expired => "expired",
        TokenState::Revoked => "revoked",
    }
}
