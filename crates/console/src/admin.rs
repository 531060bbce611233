//! What can be administered. Every operation asks for its own permission, and answers what pages and programs show alike.

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod dispatches;
pub mod flows;
pub mod guardrails;
pub mod overview;
pub mod policies;
pub mod tasks;
pub mod tokens;
pub mod tools;

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
