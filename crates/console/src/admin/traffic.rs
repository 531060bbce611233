//! What calls of the last hour were like, told by the audit trail.
//!
//! Up to so many records ([`EXACT`]) are all read. The trail has no index by time and an hour can hold millions of them, so of more
//! only some are read: the newest as they are, and then a block about every minute. Records are numbered without gaps, so how many a
//! block stands for is known exactly; only what they were like is guessed from it. A block stands for none that came much
//! faster than its own: where a burst begins or ends, it is read closer.

use jiff::Timestamp;
use rialto_api_types::overview::RecentCalls;
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    call::Caller,
    failure::Failure,
    store::{AuditFilter, StoredAuditEvent},
};

use crate::{Console, console::store_failure};

/// Calls are counted in so many pieces of so many seconds each.
const PIECES: usize = 60;
const PIECE: i64 = 60;

/// So many of the newest are read one by one, so many of them at once, and so many in each block behind them.
const EXACT: usize = 20_000;
const AT_ONCE: usize = 4_000;
const BLOCK: usize = 100;

/// So many blocks are read at most.
const BLOCKS: usize = 240;

/// What a block stands for came at most so many times as fast.
const FASTER: f64 = 3.0;

/// A block that lies further back than this, in seconds, has left too much out.
const FURTHEST: i64 = 2 * PIECE;

/// Calls as they are counted: each stands for so many.
struct Tally {
    now: Timestamp,
    ended: f64,
    failed: f64,
    denied: f64,
    took: Vec<(u64, f64)>,
    per_minute: Vec<f64>,
    failed_per_minute: Vec<f64>,
    is_estimated: bool,
}

/// What calls of the last hour were like in the caller's org.
pub(super) async fn calls(console: &Console, caller: &Caller) -> Result<RecentCalls, Failure> {
    let mut tally = Tally::new(console.engine().now());
    let read = async |before: Option<u64>, limit: usize| {
        let filter = AuditFilter { before, limit, ..AuditFilter::default() };
        console.store().audit_records(&caller.scope, &filter).await.map_err(store_failure)
    };
    let mut newest = Vec::new();
    let mut oldest = None;
    for _ in 0..EXACT / AT_ONCE {
        newest = read(oldest.as_ref().map(|it: &StoredAuditEvent| it.record), AT_ONCE).await?;
        tally.add(&newest, 1.0);
        oldest = newest.last().cloned().or(oldest);
        if newest.len() < AT_ONCE || !oldest.as_ref().is_some_and(|it| tally.is_within(it)) {
            return Ok(tally.told(false));
        }
    }
    let Some(mut oldest) = oldest else { return Ok(tally.told(false)) };
    let mut skip = skip(&newest);
    for _ in 0..BLOCKS {
        if !tally.is_within(&oldest) {
            return Ok(tally.told(false));
        }
        let block = read(Some(oldest.record.saturating_sub(skip)), BLOCK).await?;
        let Some(last) = block.last().cloned() else {
            if skip == 0 {
                return Ok(tally.told(false));
            }
            skip /= 4;
            continue;
        };
        if skip > 0 && !stands_for(&block, &oldest) {
            skip /= 4;
            continue;
        }
        let span = oldest.record - last.record;
        tally.add(&block, span as f64 / block.len() as f64);
        (oldest, skip) = (last, self::skip(&block));
    }
    Ok(tally.told(true))
}

/// Whether a block is like what was left out before it: near enough, and not much slower.
fn stands_for(block: &[StoredAuditEvent], before: &StoredAuditEvent) -> bool {
    let (Some(first), Some(last)) = (block.first(), block.last()) else { return false };
    let (at, left_out) = (first.event.emitted_at, before.record.saturating_sub(first.record));
    let gap = before.event.emitted_at.duration_since(at).as_secs_f64().max(0.001);
    let rate = block.len() as f64 / at.duration_since(last.event.emitted_at).as_secs_f64().max(0.001);
    seconds(before) - seconds(first) <= FURTHEST && left_out as f64 <= (FASTER * rate * gap).max(BLOCK as f64)
}

/// How many records to leave out behind these, so that about one block is read for each minute.
fn skip(read: &[StoredAuditEvent]) -> u64 {
    let (Some(first), Some(last)) = (read.first(), read.last()) else { return 0 };
    let span = first.record - last.record + 1;
    let took = first.event.emitted_at.duration_since(last.event.emitted_at).as_secs_f64().max(0.001);
    let in_a_minute = span as f64 / took * PIECE as f64;
    // No trail has more records than a u64 counts.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is neither large nor negative"
    )]
    let in_a_minute = in_a_minute.clamp(0.0, 1e12) as u64;
    in_a_minute.saturating_sub(BLOCK as u64)
}

fn seconds(record: &StoredAuditEvent) -> i64 {
    record.event.emitted_at.as_second()
}

// === impl Tally ===

impl Tally {
    fn new(now: Timestamp) -> Self {
        Self {
            now,
            ended: 0.0,
            failed: 0.0,
            denied: 0.0,
            took: Vec::new(),
            per_minute: vec![0.0; PIECES],
            failed_per_minute: vec![0.0; PIECES],
            is_estimated: false,
        }
    }

    fn is_within(&self, record: &StoredAuditEvent) -> bool {
        self.piece(&record.event).is_some()
    }

    /// The minute that something belongs to, if it is one of the hour.
    fn piece(&self, event: &AuditEvent) -> Option<usize> {
        let ago = (self.now.as_second() - event.emitted_at.as_second()).max(0) / PIECE;
        usize::try_from(ago).ok().and_then(|ago| (PIECES - 1).checked_sub(ago))
    }

    /// Counts records, each of which stands for so many.
    fn add(&mut self, records: &[StoredAuditEvent], weight: f64) {
        self.is_estimated |= weight > 1.0;
        for event in
            records.iter().map(|record| &record.event).filter(|event| event.phase == AuditPhase::PostVerb)
        {
            let Some(at) = self.piece(event) else { continue };
            let has_failed = event.outcome == Some(InvocationOutcome::Failed);
            let counts = |is_so: bool| if is_so { weight } else { 0.0 };
            self.ended += weight;
            self.failed += counts(has_failed && !event.context.denied);
            self.denied += counts(event.context.denied);
            self.took.extend(event.duration_ms.filter(|_| !event.context.denied).map(|took| (took, weight)));
            self.per_minute.get_mut(at).into_iter().for_each(|count| *count += weight);
            self.failed_per_minute.get_mut(at).into_iter().for_each(|count| *count += counts(has_failed));
        }
    }

    fn told(mut self, is_cut: bool) -> RecentCalls {
        self.took.sort_unstable_by_key(|(took, _)| *took);
        RecentCalls {
            ended: rounded(self.ended),
            failed: rounded(self.failed),
            denied: rounded(self.denied),
            p50_ms: share(&self.took, 0.50),
            p99_ms: share(&self.took, 0.99),
            per_minute: self.per_minute.into_iter().map(rounded).collect(),
            failed_per_minute: self.failed_per_minute.into_iter().map(rounded).collect(),
            is_estimated: self.is_estimated,
            is_cut,
        }
    }
}

/// The number that so many of them do not exceed.
fn share(sorted: &[(u64, f64)], part: f64) -> Option<u64> {
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut before = 0.0;
    let reaches = |(_, weight): &&(u64, f64)| {
        before += weight;
        // What was added up in many small steps is never quite the sum.
        before >= all * part - 1e-6
    };
    sorted.iter().find(reaches).map(|(took, _)| *took)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it counts records, of which there are fewer"
)]
fn rounded(count: f64) -> u64 {
    count.round().clamp(0.0, 1e15) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_that_were_there() {
        let numbers: Vec<(u64, f64)> = (1..=100).map(|number| (number, 1.0)).collect();
        assert_eq!((share(&numbers, 0.5), share(&numbers, 0.99)), (Some(50), Some(99)));
        assert_eq!(
            (share(&[(7, 1.0)], 0.5), share(&[(7, 1.0)], 0.99), share(&[], 0.5)),
            (Some(7), Some(7), None)
        );
    }

    #[test]
    fn what_stands_for_many_counts_for_many() {
        let numbers = [(1, 90.0), (50, 8.0), (900, 2.0)];
        assert_eq!(
            (share(&numbers, 0.5), share(&numbers, 0.95), share(&numbers, 0.99)),
            (Some(1), Some(50), Some(900))
        );
    }
}
