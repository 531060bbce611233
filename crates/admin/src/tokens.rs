//! Bearer tokens of the caller's org.

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

use crate::{Administration, administration::store_failure, operation::AdminOperation};

/// Maximum length of a caller's name.
const MAX_CALLER_NAME_BYTES: usize = 200;

/// Lists the tokens of the caller's org.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<Token>, Failure> {
    admin.authorize_admin(caller, Action::AdminTokens).await?;
    let mut tokens = admin.store().tokens().await.map_err(store_failure)?;
    tokens.retain(|token| token.session_of.is_none());
    tokens.retain(|token| admin.is_local() || token.scope.org == caller.scope.org);
    tokens.sort_by_key(|token| std::cmp::Reverse(token.created_at));
    Ok(tokens)
}

/// Creates a token. It is returned once, because only its hash is stored.
pub async fn create(
    admin: &Administration,
    caller: &Caller,
    new_token: &NewToken,
) -> Result<(Token, String), Failure> {
    let operation = AdminOperation::new("token.create", new_token.caller.trim());
    let work = create_authorized(admin, caller, new_token, &operation);
    admin.administer(caller, Action::AdminTokens, &operation, work).await
}

/// Creates a token as part of a recorded operation.
pub(super) async fn create_authorized(
    admin: &Administration,
    caller: &Caller,
    new_token: &NewToken,
    operation: &AdminOperation,
) -> Result<(Token, String), Failure> {
    let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
    let name = new_token.caller.trim();
    if name.is_empty() || name.len() > MAX_CALLER_NAME_BYTES {
        return Err(invalid("caller: set the name of the caller, at most 200 bytes"));
    }
    let scopes = new_token.scopes.iter().copied();
    let rights = match new_token.role {
        _ if !new_token.scopes.is_empty() => TokenScopes::from_scopes(scopes),
        Some(TokenRole::Owner) => TokenScopes::ALL,
        None => TokenScopes::default(),
    };
    let rights = if new_token.role == Some(TokenRole::Owner) { rights.with_owner() } else { rights };
    if rights.is_owner() && !admin.is_local() && !caller.rights.is_owner() {
        let message = "role: only an owner can create a token with the role owner; on the server's machine use `rialto tokens create NAME --role owner`";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    if let Some(right) = rights.each().find(|right| !caller.rights.have(*right)) {
        return Err(right.lacking());
    }
    let now = admin.engine().now();
    let expires_at = match (new_token.expires_at, new_token.expires_days) {
        (Some(_), Some(_)) => return Err(invalid("set either expiresAt or expiresDays, not both")),
        (at, days) => at.or(days.map(|days| expiry_after(now, days)).transpose()?),
    };
    let scope = token_scope(admin, caller, new_token)?;
    if !admin.is_local() && name != caller.id.as_str() {
        check_new_caller(admin, &scope, name).await?;
    }
    let token = admin.host().new_token()?;
    let row = Token {
        id: format!("tok_{}", fresh()),
        hash: rialto_http_server::auth::hash_token(&token),
        scope,
        caller: CallerId::from(name),
        kind: new_token.kind.unwrap_or(CallerKind::User),
        rights,
        created_at: now,
        expires_at,
        revoked_at: None,
        created_by: Some(creator_name(admin, caller)),
        session_of: None,
    };
    operation.org(&row.scope.org);
    admin.store().put_token(&row).await.map_err(store_failure)?;
    operation.after(json!(token_row(&row, now)));
    Ok((row, token))
}

/// Name of the caller that creates a token, or of the operator on the machine.
fn creator_name(admin: &Administration, caller: &Caller) -> String {
    if admin.is_local() { admin.host().operator_name() } else { caller.id.to_string() }
}

/// Fails for the name of an existing caller, whose tasks, approvals and permissions the token would get.
async fn check_new_caller(admin: &Administration, scope: &Scope, name: &str) -> Result<(), Failure> {
    let tokens = admin.store().tokens().await.map_err(store_failure)?;
    let has_token = tokens.iter().any(|token| token.scope.org == scope.org && token.caller.as_str() == name);
    let filter = TaskFilter { caller: Some(CallerId::from(name)), limit: 1, ..TaskFilter::default() };
    let is_known = has_token || !admin.store().tasks(scope, &filter).await.map_err(store_failure)?.is_empty();
    if !is_known {
        return Ok(());
    }
    let message = format!(
        "the caller \"{name}\" exists already, and a token with this name could read its tasks and decide for it: \
         choose another name, let {name} create it with its own token, or create it on the server's machine with \
         `rialto tokens create {name}`"
    );
    Err(Failure::new(FailureKind::Denied, message))
}

/// Revokes a token. It is rejected from the next request on.
pub async fn revoke(admin: &Administration, caller: &Caller, id: &str) -> Result<(), Failure> {
    let operation = AdminOperation::new("token.revoke", id);
    admin
        .administer(caller, Action::AdminTokens, &operation, async {
            let (tokens, now) = (list(admin, caller).await?, admin.engine().now());
            let token = tokens.into_iter().find(|token| token.id == id);
            let missing =
                || Failure::new(FailureKind::NotFound, format!("there is no token \"{id}\" in this org"));
            let token = token.ok_or_else(missing)?;
            operation.org(&token.scope.org);
            operation.before(json!(token_row(&token, now)));
            admin.store().revoke_token(id, now).await.map_err(store_failure)?;
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

/// Whether a token is neither revoked nor expired.
pub fn is_active(token: &Token, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now)
}

/// State of a token.
pub fn state(token: &Token, now: Timestamp) -> TokenState {
    if token.revoked_at.is_some() {
        TokenState::Revoked
    } else if token.expires_at.is_some_and(|end| end <= now) {
        TokenState::Expired
    } else {
        TokenState::Active
    }
}

/// Org and project of a new token.
fn token_scope(admin: &Administration, caller: &Caller, new_token: &NewToken) -> Result<Scope, Failure> {
    let given = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let org = given(&new_token.org).map_or_else(|| caller.scope.org.clone(), OrgId::from);
    let project = given(&new_token.project).map_or_else(|| caller.scope.project.clone(), ProjectId::from);
    if !is_slug(org.as_str()) || !is_slug(project.as_str()) {
        let message =
            "org and project: use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first";
        return Err(Failure::new(FailureKind::Invalid, message));
    }
    if org != caller.scope.org && !admin.is_local() {
        let message = "org: create tokens for another org on the server's machine, with `rialto tokens create NAME --org ORG`";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    Ok(Scope { org, project })
}

fn expiry_after(now: Timestamp, days: u32) -> Result<Timestamp, Failure> {
    if days == 0 {
        let message =
            "expiresDays: set a number of days, 1 or more, or omit it for a token that never expires";
        return Err(Failure::new(FailureKind::Invalid, message));
    }
    let end = now.checked_add(SignedDuration::from_hours(i64::from(days) * 24));
    end.map_err(|_| Failure::new(FailureKind::Invalid, "expiresDays: the date is out of range"))
}
