//! Starts the program and everybody it talks to, and ends them with the test.
//!
//! Everything waits with a deadline, nothing waits longer than it must, and what a process said on stderr is shown when
//! the test that started it fails.

pub(crate) mod a2a_client;
pub(crate) mod agent;
pub(crate) mod certificate_authority;
pub(crate) mod client;
pub(crate) mod coding_agent;
pub(crate) mod foreign_agent;
pub(crate) mod grpc;
pub(crate) mod haproxy;
pub(crate) mod http;
pub(crate) mod kill_loop;
pub(crate) mod mcp_upstream;
pub(crate) mod model_server;
pub(crate) mod nginx;
pub(crate) mod nodes;
pub(crate) mod outage;
pub(crate) mod outcome;
pub(crate) mod placement;
pub(crate) mod process;
pub(crate) mod rialto;
pub(crate) mod server;
pub(crate) mod silent_agent;
pub(crate) mod simultaneous;
pub(crate) mod slow_agent;
pub(crate) mod stdio;
pub(crate) mod store_reader;
pub(crate) mod token_issuer;
pub(crate) mod unreliable_agent;
pub(crate) mod webhook_receiver;

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How often a thing is looked at that cannot tell by itself.
const LOOK: Duration = Duration::from_millis(20);

/// Looks until there is something to see; after [`PATIENCE`] the test has failed.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    seen(look).unwrap_or_else(|| panic!("waited {PATIENCE:?} for this: {what}"))
}

/// Looks until there is something to see, for at most [`PATIENCE`].
pub(crate) fn seen<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= end {
            return seen;
        }
        thread::sleep(LOOK);
    }
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap()
}

/// The script that starts foreign software.
pub(crate) fn interop() -> PathBuf {
    root().join("interop/run")
}
