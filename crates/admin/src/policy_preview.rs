//! Permission matrix, and the preview of decisions that a policy text would change.

use rialto_api_types::{
    policies::{DecisionChange, PermissionMatrix, PermissionRow},
    tokens::TokenState,
};
use rialto_model::{call::Caller, failure::Failure};
use rialto_policy::{Action, AuthorizationRequest, Policy};

use super::policies::with_replacement;
use crate::Administration;

/// Maximum number of callers and targets of a matrix.
const MAX_CALLERS: usize = 12;
const MAX_TARGETS: usize = 60;

/// Permission matrix for these callers.
pub async fn matrix(
    admin: &Administration,
    caller: &Caller,
    callers: &[String],
) -> Result<PermissionMatrix, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let policy = admin.engine().policies().active();
    let callers: Vec<String> = callers.iter().take(MAX_CALLERS).cloned().collect();
    let directory = admin.engine().registry().directory(&caller.scope);
    let people: Vec<Caller> =
        callers.iter().map(|name| Caller { scope: caller.scope.clone(), ..Caller::user(name) }).collect();
    let rows = directory.entries().iter().take(MAX_TARGETS).map(|entry| {
        let target = entry.target();
        let may = |who: &Caller| {
            policy.decide(&AuthorizationRequest::for_target(who, Action::Invoke, &target)).allowed
        };
        PermissionRow { target: entry.canonical.clone(), may: people.iter().map(may).collect() }
    });
    let rows: Vec<_> = rows.collect();
    Ok(PermissionMatrix { callers, more: directory.entries().len() - rows.len(), rows })
}

/// Decisions that would change if a text replaced the one with this name. They are evaluated for the caller and, with permission to
/// administer tokens, for all callers with active tokens.
pub async fn decision_changes(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<DecisionChange>, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let (sources, _) = with_replacement(admin, caller, name, text).await?;
    let Ok(then) = Policy::parse(&sources) else { return Ok(Vec::new()) };
    let now = admin.engine().policies().active();
    let directory = admin.engine().registry().directory(&caller.scope);
    let mut found = Vec::new();
    for who in default_callers(admin, caller).await? {
        let person = Caller { scope: caller.scope.clone(), ..Caller::user(&who) };
        let mut ask = |question: &AuthorizationRequest<'_>, target: &str, is_admin: bool| {
            let (before, allowed) = (now.decide(question).allowed, then.decide(question).allowed);
            if before != allowed {
                let (caller, target) = (who.clone(), target.to_owned());
                found.push(DecisionChange { caller, target, is_admin, allowed });
            }
        };
        for action in Action::ALL.into_iter().filter(|action| action.is_admin()) {
            ask(&AuthorizationRequest::for_admin(&person, action), action.as_str(), true);
        }
        for entry in directory.entries().iter().take(MAX_TARGETS) {
            ask(
                &AuthorizationRequest::for_target(&person, Action::Invoke, &entry.target()),
                &entry.canonical,
                false,
            );
        }
    }
    Ok(found)
}

/// Callers of a matrix by default: the caller and, with permission to administer tokens, all callers with active tokens.
pub async fn default_callers(admin: &Administration, caller: &Caller) -> Result<Vec<String>, Failure> {
    let mut names = vec![caller.id.to_string()];
    if admin.check_admin(caller, Action::AdminTokens).is_ok() {
        let now = admin.engine().now();
        for token in super::tokens::list(admin, caller).await? {
            let name = token.caller.to_string();
            if super::tokens::state(&token, now) == TokenState::Active && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.truncate(MAX_CALLERS);
    Ok(names)
}
