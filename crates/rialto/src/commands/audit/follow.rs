//! `rialto audit --follow`: new records of all processes on the data folder, or of a server.

use std::{sync::Arc, time::Duration};

use rialto_api_types::{
    agents::AgentRow,
    audit::{AuditRecord, MissedRecords},
};
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    store::{AuditFilter, AuditOutcome},
};
use rialto_webhooks::audit_feed::{AuditFeed, FeedItem as Noticed, FeedSubscription};
use tokio::time::sleep;

use super::audit_row;
use crate::{
    api_client::{ApiClient, RemoteApi, ServerEventStream},
    cli::{AuditSearchOptions, CallOutcomeName},
    output::{self, CommandError},
};

/// Pause before a broken stream is requested again.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of reconnects in a row.
const MAX_RECONNECTS: u32 = 60;

/// Item of the followed log.
enum FollowUpdate {
    /// A record, and its JSON.
    Record(u64, Box<AuditEvent>, String),
    /// Number of records that were skipped because output was too slow.
    Missed(u64),
}

/// Source of records.
enum AuditEventSource<'a> {
    Local(Box<FeedSubscription>),
    Remote { remote: &'a RemoteApi, stream: Option<Box<ServerEventStream<'a>>>, seen: Option<String> },
}

/// Prints new records until output is closed.
pub(super) async fn follow(api: &ApiClient, search: &AuditSearchOptions) -> Result<(), CommandError> {
    let filter = audit_filter(api, search).await;
    let mut source = AuditEventSource::open(api).await?;
    output::print_note("Shows new records; Ctrl-C stops.");
    loop {
        let written = match source.next().await? {
            FollowUpdate::Record(_, event, _) if !filter.fits(&event) => Ok(()),
            FollowUpdate::Record(_, _, json) if search.listing.json => output::try_print_line(json),
            FollowUpdate::Record(record, event, _) => {
                output::try_print_line(output::sanitize(&audit_row(record, &event).join("  ")))
            }
            FollowUpdate::Missed(missed) => {
                output::print_note(format!(
                    "{missed} records were skipped because output was too slow; `rialto audit` lists them"
                ));
                Ok(())
            }
        };
        if written.is_err() {
            return Ok(());
        }
    }
}

// === impl AuditEventSource ===

impl<'a> AuditEventSource<'a> {
    async fn open(api: &'a ApiClient) -> Result<Self, CommandError> {
        match api {
            ApiClient::Local(local) => {
                let live = AuditFeed::new(Arc::clone(&local.program.store));
                Ok(Self::Local(Box::new(live.subscribe(local.program.scope.org.clone(), None).await?)))
            }
            ApiClient::Remote(remote) => {
                let stream = Some(Box::new(remote.listen("/events", None).await?));
                Ok(Self::Remote { remote, stream, seen: None })
            }
        }
    }

    async fn next(&mut self) -> Result<FollowUpdate, CommandError> {
        match self {
            Self::Local(watch) => Ok(match watch.next().await? {
                Noticed::Record(response) => {
                    let json = serde_json::to_string(&AuditRecord::from(&*response)).unwrap_or_default();
                    FollowUpdate::Record(response.record, Box::new(response.event.clone()), json)
                }
                Noticed::Missed(missed) => FollowUpdate::Missed(missed),
            }),
            Self::Remote { remote, stream, seen } => Ok(next_remote(remote, stream, seen).await?),
        }
    }
}

/// Next item from a server. A stream that ends is resumed.
async fn next_remote<'a>(
    remote: &'a RemoteApi,
    stream: &mut Option<Box<ServerEventStream<'a>>>,
    seen: &mut Option<String>,
) -> Result<FollowUpdate, Failure> {
    let mut tries = 0;
    loop {
        let response = match stream {
            Some(open) => open.next().await,
            None => match remote.listen("/events", seen.as_deref()).await {
                Ok(open) => {
                    *stream = Some(Box::new(open));
                    continue;
                }
                Err(failure) => Err(failure),
            },
        };
        match response {
            Ok(Some(event)) => {
                *seen = event.id.clone().or_else(|| seen.take());
                if let Ok(MissedRecords { missed }) = serde_json::from_str(&event.data) {
                    return Ok(FollowUpdate::Missed(missed));
                }
                if let Ok(AuditRecord { record, event: verb, .. }) = serde_json::from_str(&event.data) {
                    return Ok(FollowUpdate::Record(record, Box::new(verb), event.data));
                }
            }
            Err(failure) if !is_transient(&failure) || tries >= MAX_RECONNECTS => return Err(failure),
            Ok(None) | Err(_) => {
                tries += 1;
                *stream = None;
                sleep(RECONNECT_PAUSE).await;
            }
        }
    }
}

/// Filter of the followed records. An agent that was removed can be selected by its id.
async fn audit_filter(api: &ApiClient, search: &AuditSearchOptions) -> AuditFilter {
    let agent = match &search.agent {
        Some(key) => {
            let found: Result<AgentRow, _> = api.get(&["agents", key]).read().await;
            Some(found.map_or_else(|_| AgentId::from(key.as_str()), |agent| agent.id))
        }
        None => None,
    };
    AuditFilter {
        agent,
        caller: search.caller.as_deref().map(CallerId::from),
        task: search.task.as_deref().map(TaskId::from),
        outcome: search.outcome.map(|outcome| match outcome {
            CallOutcomeName::Completed => AuditOutcome::Completed,
            CallOutcomeName::Failed => AuditOutcome::Failed,
            CallOutcomeName::Denied => AuditOutcome::Denied,
        }),
        admin: search.admin,
        ..AuditFilter::default()
    }
}

/// True if a retry could succeed.
const fn is_transient(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::PeerUnreachable | FailureKind::PeerTimeout | FailureKind::Busy)
}
