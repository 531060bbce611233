//! What comes on record, as it comes: of every process on the data folder, or of a server.

use std::{sync::Arc, time::Duration};

use rialto_api_types::{
    agents::AgentRow,
    audit::{AuditRecord, MissedRecords},
};
use rialto_hooks::live::{Live, News as Noticed, Watch};
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    store::{AuditFilter, AuditOutcome},
};
use tokio::time::sleep;

use super::row;
use crate::{
    cli::{AuditSearch, OutcomeName},
    desk::{Desk, Stream, There},
    output::{self, Trouble},
};

/// How long is waited before a stream that broke off is asked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// So often a server may be away, one try after the other.
const TRIES: u32 = 60;

/// What is told to whoever follows.
enum News {
    /// A record, and its JSON.
    Record(u64, Box<AuditEvent>, String),
    /// So many came too fast.
    Missed(u64),
}

/// Where it comes from.
enum Source<'a> {
    Here(Box<Watch>),
    There { there: &'a There, stream: Option<Box<Stream<'a>>>, seen: Option<String> },
}

/// Shows what comes on record, until nobody reads it any more.
pub(super) async fn follow(desk: &Desk, search: &AuditSearch) -> Result<(), Trouble> {
    let filter = filter(desk, search).await;
    let mut source = Source::open(desk).await?;
    output::note("Shows what comes on record from now on; Ctrl-C ends it.");
    loop {
        let written = match source.next().await? {
            News::Record(_, event, _) if !filter.fits(&event) => Ok(()),
            News::Record(_, _, json) if search.listing.json => output::try_line(json),
            News::Record(record, event, _) => {
                output::try_line(output::printable(&row(record, &event).join("  ")))
            }
            News::Missed(missed) => {
                output::note(format!(
                    "{missed} records came too fast and are not shown here; `rialto audit` has them"
                ));
                Ok(())
            }
        };
        if written.is_err() {
            return Ok(());
        }
    }
}

// === impl Source ===

impl<'a> Source<'a> {
    async fn open(desk: &'a Desk) -> Result<Self, Trouble> {
        match desk {
            Desk::Here(here) => {
                let live = Live::new(Arc::clone(&here.program.store));
                Ok(Self::Here(Box::new(live.watch(here.program.scope.org.clone(), None).await?)))
            }
            Desk::There(there) => {
                let stream = Some(Box::new(there.listen("/events", None).await?));
                Ok(Self::There { there, stream, seen: None })
            }
        }
    }

    async fn next(&mut self) -> Result<News, Trouble> {
        match self {
            Self::Here(watch) => Ok(match watch.next().await? {
                Noticed::Record(told) => {
                    let json = serde_json::to_string(&AuditRecord::from(&*told)).unwrap_or_default();
                    News::Record(told.record, Box::new(told.event.clone()), json)
                }
                Noticed::Missed(missed) => News::Missed(missed),
            }),
            Self::There { there, stream, seen } => Ok(next_there(there, stream, seen).await?),
        }
    }
}

/// What a server tells next. A stream that ends, as they do after a while, is gone on with.
async fn next_there<'a>(
    there: &'a There,
    stream: &mut Option<Box<Stream<'a>>>,
    seen: &mut Option<String>,
) -> Result<News, Failure> {
    let mut tries = 0;
    loop {
        let told = match stream {
            Some(open) => open.next().await,
            None => match there.listen("/events", seen.as_deref()).await {
                Ok(open) => {
                    *stream = Some(Box::new(open));
                    continue;
                }
                Err(failure) => Err(failure),
            },
        };
        match told {
            Ok(Some(event)) => {
                *seen = event.id.clone().or_else(|| seen.take());
                if let Ok(MissedRecords { missed }) = serde_json::from_str(&event.data) {
                    return Ok(News::Missed(missed));
                }
                if let Ok(AuditRecord { record, event: verb, .. }) = serde_json::from_str(&event.data) {
                    return Ok(News::Record(record, Box::new(verb), event.data));
                }
            }
            Err(failure) if !is_passing(&failure) || tries >= TRIES => return Err(failure),
            Ok(None) | Err(_) => {
                tries += 1;
                *stream = None;
                sleep(PAUSE).await;
            }
        }
    }
}

/// What is to be followed. An agent that is no longer registered can still be asked for by its id.
async fn filter(desk: &Desk, search: &AuditSearch) -> AuditFilter {
    let agent = match &search.agent {
        Some(key) => {
            let found: Result<AgentRow, _> = desk.get(&["agents", key]).read().await;
            Some(found.map_or_else(|_| AgentId::from(key.as_str()), |agent| agent.id))
        }
        None => None,
    };
    AuditFilter {
        agent,
        caller: search.caller.as_deref().map(CallerId::from),
        task: search.task.as_deref().map(TaskId::from),
        outcome: search.outcome.map(|outcome| match outcome {
            OutcomeName::Completed => AuditOutcome::Completed,
            OutcomeName::Failed => AuditOutcome::Failed,
            OutcomeName::Denied => AuditOutcome::Denied,
        }),
        admin: search.admin,
        ..AuditFilter::default()
    }
}

/// Whether trouble of this kind may be over in a moment.
const fn is_passing(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::PeerUnreachable | FailureKind::PeerTimeout | FailureKind::Busy)
}
