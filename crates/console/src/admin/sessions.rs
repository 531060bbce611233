//! Console sessions: who is signed in, and how a session is ended.
//!
//! A session is a row among the tokens that no bearer token leads to. Ending one revokes it, so its cookie is refused by every process of
//! the store from the next request on, and the pages and streams that are open with it end. Everybody sees and ends their own sessions;
//! whoever may administer tokens does so for the whole org.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use jiff::Timestamp;
use rialto_api_types::tokens::SessionRow;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::TokenId,
    store::Token,
};
use rialto_policy::Action;
use serde_json::json;

use crate::{Console, console::store_failure, operation::Operation};

/// So many refused sign-ins are recorded in a minute: whoever is not in can cause them, and the trail is not theirs to fill.
const MAX_REFUSED_PER_MINUTE: u32 = 60;

/// Somebody who has signed in, with the cookie and the session; or why not.
type SignedIn = Result<(String, Caller, TokenId), String>;

/// Counts the refused sign-ins of this minute.
#[derive(Debug, Default)]
pub(crate) struct RefusedSignIns {
    minute: AtomicI64,
    count: AtomicU32,
}

// === impl RefusedSignIns ===

impl RefusedSignIns {
    /// Whether one more is recorded.
    fn is_recorded(&self, now: Timestamp) -> bool {
        let minute = now.as_second() / 60;
        if self.minute.swap(minute, Ordering::Relaxed) != minute {
            self.count.store(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) < MAX_REFUSED_PER_MINUTE
    }
}

/// The sessions that count, newest first: the caller's own, or all of its org.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Token>, Failure> {
    console.engine().sync().await?;
    let now = console.engine().now();
    let tokens = console.store().tokens().await.map_err(store_failure)?;
    let sees_all = console.may(caller, Action::AdminTokens).is_ok();
    let is_good = |id: &str| tokens.iter().any(|token| token.id == id && counts(token, now));
    let is_seen = |token: &&Token| {
        let parent = token.session_of.as_deref();
        parent.is_some_and(|parent| parent.is_empty() || parent == "RIALTO_TOKEN" || is_good(parent))
            && counts(token, now)
            && (console.at_machine()
                || token.scope.org == caller.scope.org && (sees_all || token.caller == caller.id))
    };
    let mut sessions: Vec<Token> = tokens.iter().filter(is_seen).cloned().collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.created_at));
    Ok(sessions)
}

/// Ends a session: its cookie is refused from the next request on.
pub async fn end(console: &Console, caller: &Caller, id: &str) -> Result<(), Failure> {
    let operation = Operation::new("session.end", id);
    let done = end_now(console, caller, id, &operation).await;
    console.record(caller, &operation, done).await
}

/// Ends the caller's own session.
pub(crate) async fn sign_out(console: &Console, caller: &Caller, session: &TokenId) -> Result<(), Failure> {
    let operation = Operation::new("session.sign_out", session.as_str());
    let done = end_now(console, caller, session.as_str(), &operation).await;
    console.record(caller, &operation, done).await
}

/// Records that somebody has signed in, or was refused.
pub(crate) async fn record_sign_in(console: &Console, signed_in: &SignedIn) {
    let recorded = match signed_in {
        Ok((_, caller, session)) => {
            let operation = Operation::new("session.sign_in", session.as_str());
            operation.after(json!({ "session": session, "caller": caller.id, "kind": caller.kind }));
            console.record(caller, &operation, Ok(())).await
        }
        Err(why) => {
            if !console.refused_sign_ins().is_recorded(console.engine().now()) {
                return;
            }
            let operation = Operation::new("session.sign_in", "");
            let refused: Result<(), Failure> = Err(Failure::new(FailureKind::Denied, why.as_str()));
            let _ = console.record(&Caller::stranger(), &operation, refused).await;
            return;
        }
    };
    if let Err(failure) = recorded {
        tracing::error!("a sign-in is not in the audit trail: {failure}");
    }
}

/// Row of a session.
pub fn session_row(session: &Token) -> SessionRow {
    let token = session.session_of.clone().filter(|token| !token.is_empty());
    SessionRow {
        id: session.id.clone(),
        caller: session.caller.clone(),
        kind: session.kind,
        org: session.scope.org.clone(),
        token_id: token,
        created_at: session.created_at,
        expires_at: session.expires_at,
    }
}

async fn end_now(console: &Console, caller: &Caller, id: &str, operation: &Operation) -> Result<(), Failure> {
    let session = list(console, caller).await?.into_iter().find(|session| session.id == id);
    let missing = || {
        let message = format!(
            "there is no session \"{id}\" that you may end; `rialto sessions list` shows those there are"
        );
        Failure::new(FailureKind::NotFound, message)
    };
    let session = session.ok_or_else(missing)?;
    operation.org(&session.scope.org);
    operation.before(json!(session_row(&session)));
    console.store().revoke_token(id, console.engine().now()).await.map_err(store_failure)?;
    Ok(())
}

fn counts(token: &Token, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end)
}
