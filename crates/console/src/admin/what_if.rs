//! Who may call what: as the policies in force say, and as others would.

use rialto_api_types::tokens::TokenState;
use rialto_model::{call::Caller, failure::Failure};
use rialto_policy::{Action, Policy, Question};

use super::policies::replaced;
use crate::Console;

/// So many callers and targets are in a matrix at most.
const WIDEST: usize = 12;
const LONGEST: usize = 60;

/// Who may call what: a row for each skill or agent, a column for each caller.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The callers.
    pub callers: Vec<String>,
    /// What is called, and for each caller whether it may.
    pub rows: Vec<(String, Vec<bool>)>,
    /// How many more there are.
    pub more: usize,
}

/// Something that would be different under other policies.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Who.
    pub caller: String,
    /// What is called, or administered.
    pub target: String,
    /// Whether it is administered.
    pub is_admin: bool,
    /// Whether they may then.
    pub allowed: bool,
}

/// Who may call what, for these callers.
pub async fn matrix(console: &Console, caller: &Caller, callers: &[String]) -> Result<Matrix, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let policy = console.engine().policies().active();
    let callers: Vec<String> = callers.iter().take(WIDEST).cloned().collect();
    let directory = console.engine().registry().directory(&caller.scope);
    let people: Vec<Caller> =
        callers.iter().map(|name| Caller { scope: caller.scope.clone(), ..Caller::user(name) }).collect();
    let rows = directory.entries().iter().take(LONGEST).map(|entry| {
        let target = entry.target();
        let may = |who: &Caller| policy.decide(&Question::about(who, Action::Invoke, &target)).allowed;
        (entry.canonical.clone(), people.iter().map(may).collect())
    });
    let rows: Vec<_> = rows.collect();
    Ok(Matrix { callers, more: directory.entries().len() - rows.len(), rows })
}

/// What would be different if a text took the place of the one with that name: who may call or administer what then and not now, or
/// the other way around. Asked for the caller and for those who have tokens, where the caller may see these.
pub async fn what_if(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<Difference>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let (sources, _) = replaced(console, caller, name, text).await?;
    let Ok(then) = Policy::parse(&sources) else { return Ok(Vec::new()) };
    let now = console.engine().policies().active();
    let directory = console.engine().registry().directory(&caller.scope);
    let mut found = Vec::new();
    for who in callers(console, caller).await? {
        let person = Caller { scope: caller.scope.clone(), ..Caller::user(&who) };
        let mut ask = |question: &Question<'_>, target: &str, is_admin: bool| {
            let (before, allowed) = (now.decide(question).allowed, then.decide(question).allowed);
            if before != allowed {
                let (caller, target) = (who.clone(), target.to_owned());
                found.push(Difference { caller, target, is_admin, allowed });
            }
        };
        for action in Action::ALL.into_iter().filter(|action| action.is_admin()) {
            ask(&Question::admin(&person, action), action.as_str(), true);
        }
        for entry in directory.entries().iter().take(LONGEST) {
            ask(&Question::about(&person, Action::Invoke, &entry.target()), &entry.canonical, false);
        }
    }
    Ok(found)
}

/// Those whom a matrix is about when nobody says: the caller, and those who have tokens, where the caller may see these.
pub async fn callers(console: &Console, caller: &Caller) -> Result<Vec<String>, Failure> {
    let mut names = vec![caller.id.to_string()];
    if console.may(caller, Action::AdminTokens).is_ok() {
        let now = console.engine().now();
        for token in super::tokens::list(console, caller).await? {
            let name = token.caller.to_string();
            if super::tokens::state(&token, now) == TokenState::Active && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.truncate(WIDEST);
    Ok(names)
}
