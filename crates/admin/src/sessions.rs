//! Console sessions: list and end.
//!
//! A session is a row of the token table without a bearer token. Ending it revokes the row, so every process of the store rejects its
//! cookie from the next request on and ends its streams. Callers see and end their own sessions; with permission to administer tokens,
//! they see and end those of the whole org.

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

use crate::{Administration, administration::store_failure, operation::AdminOperation};

/// Maximum number of recorded sign-in failures per minute, so that unauthenticated clients cannot fill the audit log.
const MAX_REFUSED_PER_MINUTE: u32 = 60;

/// Result of a sign-in: cookie, caller and session, or the reason of the failure.
type SignInResult = Result<(String, Caller, TokenId), String>;

/// Counter of the failed sign-ins of this minute.
#[derive(Debug, Default)]
pub(crate) struct RefusedSignIns {
    minute: AtomicI64,
    count: AtomicU32,
}

// === impl RefusedSignIns ===

impl RefusedSignIns {
    /// Counts a failure. Returns whether it is recorded.
    fn is_recorded(&self, now: Timestamp) -> bool {
        let minute = now.as_second() / 60;
        if self.minute.swap(minute, Ordering::Relaxed) != minute {
            self.count.store(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) < MAX_REFUSED_PER_MINUTE
    }
}

/// Active sessions, newest first: the caller's own, or all of its org.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<Token>, Failure> {
    admin.engine().policies().sync().await?;
    let now = admin.engine().now();
    let tokens = admin.store().tokens().await.map_err(store_failure)?;
    let sees_all = admin.check_admin(caller, Action::AdminTokens).is_ok();
    let has_active_token = |id: &str| tokens.iter().any(|token| token.id == id && is_active(token, now));
    let is_visible = |token: &&Token| {
        let parent = token.session_of.as_deref();
        parent.is_some_and(|parent| parent.is_empty() || parent == "RIALTO_TOKEN" || has_active_token(parent))
            && is_active(token, now)
            && (admin.is_local()
                || token.scope.org == caller.scope.org && (sees_all || token.caller == caller.id))
    };
    let mut sessions: Vec<Token> = tokens.iter().filter(is_visible).cloned().collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.created_at));
    Ok(sessions)
}

/// Ends a session.
pub async fn end(admin: &Administration, caller: &Caller, id: &str) -> Result<(), Failure> {
    let operation = AdminOperation::new("session.end", id);
    let done = end_authorized(admin, caller, id, &operation).await;
    admin.record(caller, &operation, done).await
}

/// Ends the caller's own session.
pub async fn sign_out(admin: &Administration, caller: &Caller, session: &TokenId) -> Result<(), Failure> {
    let operation = AdminOperation::new("session.sign_out", session.as_str());
    let done = end_authorized(admin, caller, session.as_str(), &operation).await;
    admin.record(caller, &operation, done).await
}

/// Records a sign-in or its failure.
pub async fn record_sign_in(admin: &Administration, signed_in: &SignInResult) {
    let recorded = match signed_in {
        Ok((_, caller, session)) => {
            let operation = AdminOperation::new("session.sign_in", session.as_str());
            operation.after(json!({ "session": session, "caller": caller.id, "kind": caller.kind }));
            admin.record(caller, &operation, Ok(())).await
        }
        Err(why) => {
            if !admin.refused_sign_ins().is_recorded(admin.engine().now()) {
                return;
            }
            let operation = AdminOperation::new("session.sign_in", "");
            let refused: Result<(), Failure> = Err(Failure::new(FailureKind::Denied, why.as_str()));
            let _ = admin.record(&Caller::stranger(), &operation, refused).await;
            return;
        }
    };
    if let Err(failure) = recorded {
        tracing::error!("a sign-in could not be recorded in the audit log: {failure}");
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

async fn end_authorized(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    operation: &AdminOperation,
) -> Result<(), Failure> {
    let session = list(admin, caller).await?.into_iter().find(|session| session.id == id);
    let missing = || {
        let message =
            format!("there is no session \"{id}\" that you are allowed to end; see `rialto sessions list`");
        Failure::new(FailureKind::NotFound, message)
    };
    let session = session.ok_or_else(missing)?;
    operation.org(&session.scope.org);
    operation.before(json!(session_row(&session)));
    admin.store().revoke_token(id, admin.engine().now()).await.map_err(store_failure)?;
    Ok(())
}

fn is_active(token: &Token, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end)
}
