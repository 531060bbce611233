//! Who may come in: bearer tokens of the caller's org.

use jiff::{SignedDuration, Timestamp};
use rialto_api_types::tokens::{NewToken, TokenRole, TokenRow, TokenState};
use rialto_model::{
    call::{Caller, CallerId, CallerKind},
    failure::{Failure, FailureKind},
    ids::{OrgId, ProjectId, Scope, fresh, is_slug},
    store::{TaskFilter, Token},
    token_scopes::TokenScopes,
};
use rialto_policy::Action;
use serde_json::json;

use crate::{Console, console::store_failure, operation::Operation};

/// The longest name of a caller.
const LONGEST_NAME: usize = 200;

/// The tokens of the caller's org.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Token>, Failure> {
    console.admit(caller, Action::AdminTokens).await?;
    let mut tokens = console.store().tokens().await.map_err(store_failure)?;
    tokens.retain(|token| token.session_of.is_none());
    tokens.retain(|token| console.at_machine() || token.scope.org == caller.scope.org);
    tokens.sort_by_key(|token| std::cmp::Reverse(token.created_at));
    Ok(tokens)
}

/// Makes a token. It is answered this once: only its hash is kept.
pub async fn create(
    console: &Console,
    caller: &Caller,
    wanted: &NewToken,
) -> Result<(Token, String), Failure> {
    let operation = Operation::new("token.create", wanted.caller.trim());
    let work = create_now(console, caller, wanted, &operation);
    console.administer(caller, Action::AdminTokens, &operation, work).await
}

/// Makes a token for an operation that is recorded.
pub(super) async fn create_now(
    console: &Console,
    caller: &Caller,
    wanted: &NewToken,
    operation: &Operation,
) -> Result<(Token, String), Failure> {
    let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
    let name = wanted.caller.trim();
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(invalid("caller: say whose token it is, in at most 200 bytes"));
    }
    let scopes = wanted.scopes.iter().copied();
    let rights = match wanted.role {
        _ if !wanted.scopes.is_empty() => TokenScopes::from_scopes(scopes),
        Some(TokenRole::Owner) => TokenScopes::ALL,
        None => TokenScopes::default(),
    };
    let rights = if wanted.role == Some(TokenRole::Owner) { rights.with_owner() } else { rights };
    if rights.is_owner() && !console.at_machine() && !caller.rights.is_owner() {
        let message = "role: only an owner makes a token of an owner; at the machine that is `rialto tokens create NAME --role owner`";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    if let Some(right) = rights.each().find(|right| !caller.rights.have(*right)) {
        return Err(right.lacking());
    }
    let now = console.engine().now();
    let expires_at = match (wanted.expires_at, wanted.expires_days) {
        (Some(_), Some(_)) => return Err(invalid("say once how long it is good: expiresAt, or expiresDays")),
        (at, days) => at.or(days.map(|days| end(now, days)).transpose()?),
    };
    let scope = scope(console, caller, wanted)?;
    if !console.at_machine() && name != caller.id.as_str() {
        is_new_name(console, &scope, name).await?;
    }
    let token = console.office().fresh_token()?;
    let row = Token {
        id: format!("tok_{}", fresh()),
        hash: rialto_edge::auth::hash(&token),
        scope,
        caller: CallerId::from(name),
        kind: wanted.kind.unwrap_or(CallerKind::User),
        rights,
        created_at: now,
        expires_at,
        revoked_at: None,
        created_by: Some(creator(console, caller)),
        session_of: None,
    };
    operation.org(&row.scope.org);
    console.store().put_token(&row).await.map_err(store_failure)?;
    operation.after(json!(token_row(&row, now)));
    Ok((row, token))
}

/// The caller that makes a token, or the operator at the machine.
fn creator(console: &Console, caller: &Caller) -> String {
    if console.at_machine() { console.office().operator() } else { caller.id.to_string() }
}

/// Refuses the name of a caller that exists: its tasks, approvals and permissions are its own.
async fn is_new_name(console: &Console, scope: &Scope, name: &str) -> Result<(), Failure> {
    let tokens = console.store().tokens().await.map_err(store_failure)?;
    let has_token = tokens.iter().any(|token| token.scope.org == scope.org && token.caller.as_str() == name);
    let filter = TaskFilter { caller: Some(CallerId::from(name)), limit: 1, ..TaskFilter::default() };
    let is_known =
        has_token || !console.store().tasks(scope, &filter).await.map_err(store_failure)?.is_empty();
    if !is_known {
        return Ok(());
    }
    let message = format!(
        "\"{name}\" is a caller already, and a token in its name could read its tasks and decide in its name: \
         choose another name, have {name} make it with a token of its own, or make it at the server's machine with \
         `rialto tokens create {name}`"
    );
    Err(Failure::new(FailureKind::Denied, message))
}

/// Takes a token back: it lets nobody in from the very next request on.
pub async fn revoke(console: &Console, caller: &Caller, id: &str) -> Result<(), Failure> {
    let operation = Operation::new("token.revoke", id);
    console
        .administer(caller, Action::AdminTokens, &operation, async {
            let (tokens, now) = (list(console, caller).await?, console.engine().now());
            let token = tokens.into_iter().find(|token| token.id == id);
            let missing =
                || Failure::new(FailureKind::NotFound, format!("there is no token \"{id}\" in this org"));
            let token = token.ok_or_else(missing)?;
            operation.org(&token.scope.org);
            operation.before(json!(token_row(&token, now)));
            console.store().revoke_token(id, now).await.map_err(store_failure)?;
            let revoked_at = token.revoked_at.or(Some(now));
            operation.after(json!(token_row(&Token { revoked_at, ..token }, now)));
            Ok(())
        })
        .await
}

/// Row of a token, without its secret.
pub fn token_row(token: &Token, now: Timestamp) -> TokenRow {
    TokenRow {
        id: token.id.clone(),
        caller: token.caller.clone(),
        kind: token.kind,
        scopes: token.rights.each().collect(),
        role: token.rights.is_owner().then_some(TokenRole::Owner),
        org: token.scope.org.clone(),
        project: token.scope.project.clone(),
        created_at: token.created_at,
        created_by: token.created_by.clone(),
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
        state: state(token, now),
    }
}

/// Whether it lets callers in.
pub fn is_active(token: &Token, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now)
}

/// Whether a token is accepted.
pub fn state(token: &Token, now: Timestamp) -> TokenState {
    if token.revoked_at.is_some() {
        TokenState::Revoked
    } else if token.expires_at.is_some_and(|end| end <= now) {
        TokenState::Expired
    } else {
        TokenState::Active
    }
}

/// Where a new token belongs.
fn scope(console: &Console, caller: &Caller, wanted: &NewToken) -> Result<Scope, Failure> {
    let given = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let org = given(&wanted.org).map_or_else(|| caller.scope.org.clone(), OrgId::from);
    let project = given(&wanted.project).map_or_else(|| caller.scope.project.clone(), ProjectId::from);
    if !is_slug(org.as_str()) || !is_slug(project.as_str()) {
        let message =
            "org and project: use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first";
        return Err(Failure::new(FailureKind::Invalid, message));
    }
    if org != caller.scope.org && !console.at_machine() {
        let message = "org: a token of another org is made at the server's machine, with `rialto tokens create NAME --org ORG`";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    Ok(Scope { org, project })
}

fn end(now: Timestamp, days: u32) -> Result<Timestamp, Failure> {
    if days == 0 {
        let message =
            "expiresDays: write a number of days, 1 or more, or leave it out for a token without an end";
        return Err(Failure::new(FailureKind::Invalid, message));
    }
    let end = now.checked_add(SignedDuration::from_hours(i64::from(days) * 24));
    end.map_err(|_| {
        Failure::new(FailureKind::Invalid, "expiresDays: that is further away than the calendar goes")
    })
}
