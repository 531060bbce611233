//! Administrative operations, each once.
//!
//! Pages (`/factory`), the API (`/api/v1`) and commands call the same functions. Each checks its own permission, and each change writes one
//! audit record ([`operation`]). Files, keys and network of the program come in through one port ([`host`]).

mod administration;
pub mod agent_scores;
pub mod agents;
pub mod approvals;
pub mod audit;
pub mod calls;
pub mod change_feed;
pub mod costs;
pub mod dispatches;
pub mod guardrails;
pub mod host;
pub mod inspection;
pub mod nodes;
pub mod operation;
pub mod overview;
pub mod policies;
pub mod policy_preview;
pub mod refresh_job;
pub mod runs;
pub mod secrets;
pub mod sessions;
pub mod tasks;
pub mod tenants;
pub mod tokens;
pub mod tools;
pub mod traffic;
pub mod verify_job;
pub mod webhooks;
pub mod workflow_drafts;
pub mod workflows;

pub use administration::{Administration, AdministrationDeps, require_right_or_admin, store_failure};

/// Default number of rows of a page.
pub(crate) const DEFAULT_PAGE_ROWS: usize = 50;

/// Maximum number of rows of a page.
pub const MAX_PAGE_ROWS: usize = 500;

/// Number of rows of a page, from the requested number.
pub(crate) fn page_size(requested: Option<usize>) -> usize {
    match requested {
        None | Some(0) => DEFAULT_PAGE_ROWS,
        Some(requested) => requested.min(MAX_PAGE_ROWS),
    }
}

/// Truncates rows that were read with one more than the page holds. Returns the cursor of the next page.
pub(crate) fn truncate_page<T, C>(found: &mut Vec<T>, limit: usize, place: impl Fn(&T) -> C) -> Option<C> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    found.last().filter(|_| has_more).map(place)
}
