//! What can be administered. Every operation asks for its own permission, and answers what pages and programs show alike.

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod calling;
pub mod costs;
pub mod definitions;
pub mod dispatches;
pub mod flows;
pub mod guardrails;
pub mod inspect;
pub mod nodes;
pub mod orgs;
pub mod overview;
pub mod policies;
pub mod refreshing;
pub mod runs;
pub mod secrets;
pub mod sessions;
pub mod standings;
pub mod tasks;
pub mod tokens;
pub mod tools;
pub mod traffic;
pub mod verifying;
pub mod webhooks;
pub mod what_if;

/// How many rows a page has when nobody says, and at most.
pub(crate) const USUAL: usize = 50;
pub(crate) const MOST: usize = 500;

/// The size of a page that was asked for.
pub(crate) fn page_size(asked: Option<usize>) -> usize {
    match asked {
        None | Some(0) => USUAL,
        Some(asked) => asked.min(MOST),
    }
}

/// Makes a page of what was found when one row more than a page has was looked for; answers where the next one begins.
pub(crate) fn cut<T, C>(found: &mut Vec<T>, limit: usize, place: impl Fn(&T) -> C) -> Option<C> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    found.last().filter(|_| has_more).map(place)
}
