//! The rest of `/api/v1`: how things go, the audit trail, tokens, and the document of all of it.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::{
    audit::{AuditPage, AuditRecord, AuditVerification},
    overview::{CallerIdentity, ProjectOverview, UnhealthyAgent},
    tokens::{CreatedToken, NewToken, SessionList, TokenList},
};
use rialto_model::failure::Failure;
use rialto_policy::Action;

use super::{asking::Asking, done, good, openapi::document, told};
use crate::{
    admin::{
        audit::{self, Filter},
        costs,
        overview::overview as look,
        sessions, tokens,
    },
    pages::base_of,
};

pub(super) async fn openapi(asking: Asking) -> Result<Response, Failure> {
    good(&document(&base_of(&asking.caller.scope)))
}

/// Who asks, and what it may administer by the policies in force.
pub(super) async fn me(asking: Asking) -> Result<Response, Failure> {
    let (console, caller) = (&asking.console, &asking.caller);
    console.engine().policies().sync().await?;
    let admin = Action::ALL.into_iter().filter(|action| action.is_admin());
    let may = admin.map(|action| (action.as_str().to_owned(), console.may(caller, action).is_ok().into()));
    good(&CallerIdentity {
        caller: caller.id.clone(),
        kind: caller.kind,
        org: caller.scope.org.clone(),
        project: caller.scope.project.clone(),
        scopes: caller.rights.each().collect(),
        may: may.collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub(super) async fn overview(asking: Asking) -> Result<Response, Failure> {
    let seen = look(&asking.console, &asking.caller).await?;
    let unwell = seen.unwell.iter().map(|agent| UnhealthyAgent {
        agent: agent.slug.clone(),
        health: agent.health,
        last_error: agent.last_error.clone(),
    });
    good(&ProjectOverview {
        agents: seen.agents,
        unwell: unwell.collect(),
        skills: seen.skills,
        tools: seen.tools,
        waiting: seen.waiting,
        calls: seen.calls,
    })
}

pub(super) async fn audit(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        limit: asking.limit()?,
        cursor: asking.read_query("cursor", |text| text.parse().ok())?,
        ..Filter::read(|name| asking.query(name))
    };
    let page = audit::search(&asking.console, &asking.caller, &filter).await?;
    good(&AuditPage { records: page.records.iter().map(AuditRecord::from).collect(), next: page.next })
}

pub(super) async fn costs(asking: Asking) -> Result<Response, Failure> {
    let text = |name| asking.query(name).map(str::to_owned);
    let filter = costs::Filter {
        since: text("since"),
        until: text("until"),
        agent: text("agent"),
        caller: text("caller"),
        by: asking.read_query("by", costs::by)?.unwrap_or_default(),
    };
    good(&costs::costs(&asking.console, &asking.caller, &filter).await?)
}

pub(super) async fn verify(asking: Asking) -> Result<Response, Failure> {
    good(&AuditVerification::from(audit::verify(&asking.console, &asking.caller).await?))
}

pub(super) async fn sessions(asking: Asking) -> Result<Response, Failure> {
    let sessions = sessions::list(&asking.console, &asking.caller).await?;
    good(&SessionList { sessions: sessions.iter().map(sessions::session_row).collect() })
}

pub(super) async fn end_session(asking: Asking) -> Result<Response, Failure> {
    sessions::end(&asking.console, &asking.caller, asking.part("id")).await?;
    done()
}

pub(super) async fn tokens(asking: Asking) -> Result<Response, Failure> {
    let now = asking.console.engine().now();
    let tokens = tokens::list(&asking.console, &asking.caller).await?;
    good(&TokenList { tokens: tokens.iter().map(|token| tokens::token_row(token, now)).collect() })
}

pub(super) async fn create_token(asking: Asking) -> Result<Response, Failure> {
    let new: NewToken = asking.json()?;
    let (row, token) = tokens::create(&asking.console, &asking.caller, &new).await?;
    let row = tokens::token_row(&row, asking.console.engine().now());
    Ok(told(StatusCode::CREATED, &CreatedToken { row, token }))
}

pub(super) async fn revoke_token(asking: Asking) -> Result<Response, Failure> {
    tokens::revoke(&asking.console, &asking.caller, asking.part("id")).await?;
    done()
}
