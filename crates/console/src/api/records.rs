//! The rest of `/api/v1`: how things go, the audit trail, tokens, and the document of all of it.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::tokens::{CreatedToken, NewToken, SessionList, TokenList};
use rialto_model::{failure::Failure, store::Verdict};
use rialto_policy::Action;
use serde::Serialize;
use serde_json::{Map, json};

use super::{asking::Asking, done, good, openapi::document, told};
use crate::{
    admin::{
        audit::{self, Filter, Record},
        costs,
        overview::overview as look,
        sessions, tokens,
    },
    pages::base_of,
};

/// Arguments keep their digits only in a type of its own.
#[derive(Serialize)]
struct Records<'a> {
    records: Vec<Record<'a>>,
    next: Option<u64>,
}

pub(super) async fn openapi(asking: Asking) -> Result<Response, Failure> {
    good(&document(&base_of(&asking.caller.scope)))
}

/// Who asks, and what it may administer by the policies in force.
pub(super) async fn me(asking: Asking) -> Result<Response, Failure> {
    let (console, caller) = (&asking.console, &asking.caller);
    console.engine().sync().await?;
    let admin = Action::ALL.into_iter().filter(|action| action.is_admin());
    let may = admin.map(|action| (action.as_str().to_owned(), json!(console.may(caller, action).is_ok())));
    good(&json!({
        "caller": caller.id,
        "kind": caller.kind,
        "org": caller.scope.org,
        "project": caller.scope.project,
        "scopes": caller.rights.each().collect::<Vec<_>>(),
        "may": may.collect::<Map<_, _>>(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

pub(super) async fn overview(asking: Asking) -> Result<Response, Failure> {
    let seen = look(&asking.console, &asking.caller).await?;
    let unwell: Vec<_> = seen
        .unwell
        .iter()
        .map(|agent| json!({ "agent": agent.slug, "health": agent.health, "lastError": agent.last_error }))
        .collect();
    good(&json!({
        "agents": seen.agents,
        "unwell": unwell,
        "skills": seen.skills,
        "tools": seen.tools,
        "waiting": seen.waiting,
        "calls": seen.calls,
    }))
}

pub(super) async fn audit(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        limit: asking.limit()?,
        cursor: asking.read_query("cursor", |text| text.parse().ok())?,
        ..Filter::read(|name| asking.query(name))
    };
    let page = audit::search(&asking.console, &asking.caller, &filter).await?;
    good(&Records { records: page.records.iter().map(Record::of).collect(), next: page.next })
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
    good(&match audit::verify(&asking.console, &asking.caller).await? {
        Verdict::Sound { records, last, seal } => {
            json!({ "sound": true, "records": records, "last": last, "seal": seal })
        }
        Verdict::Broken { record, why } => json!({ "sound": false, "record": record, "why": why }),
    })
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
