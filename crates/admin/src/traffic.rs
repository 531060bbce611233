//! Statistics of the calls of the last hour, from the audit log.
//!
//! Up to [`MAX_EXACT_RECORDS`] records are all read. The audit log has no index by time and an hour can contain millions of records, so more
//! are sampled: the newest records, and then about one block for each minute. Records are numbered without gaps, so the number of records
//! that a block represents is exact, and only their outcomes are estimated. A block does not represent records that came much faster than
//! its own: around a burst, more blocks are read.

use jiff::Timestamp;
use rialto_api_types::overview::RecentCalls;
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    call::Caller,
    failure::Failure,
    store::{AuditFilter, StoredAuditEvent},
};

use crate::{Administration, administration::store_failure};

/// Number of time slots of the statistics, and seconds of each.
const MINUTES: usize = 60;
const MINUTE_SECS: i64 = 60;

/// Number of newest records that are all read, of records in a batch, and of records in a sampled block.
const MAX_EXACT_RECORDS: usize = 20_000;
const BATCH_RECORDS: usize = 4_000;
const BLOCK_RECORDS: usize = 100;

/// Maximum number of sampled blocks.
const MAX_BLOCKS: usize = 240;

/// Maximum ratio between the rate of skipped records and that of the block that represents them.
const MAX_RATE_RATIO: f64 = 3.0;

/// Maximum time that one block may skip, in seconds.
const MAX_GAP_SECS: i64 = 2 * MINUTE_SECS;

/// Counts of calls, each with the weight of the records it represents.
struct CallTally {
    now: Timestamp,
    ended: f64,
    failed: f64,
    denied: f64,
    latencies: Vec<(u64, f64)>,
    per_minute: Vec<f64>,
    failed_per_minute: Vec<f64>,
    is_estimated: bool,
}

/// Statistics of the calls of the last hour in the caller's org.
pub(super) async fn recent_calls(admin: &Administration, caller: &Caller) -> Result<RecentCalls, Failure> {
    let mut tally = CallTally::new(admin.engine().now());
    let read = async |before: Option<u64>, limit: usize| {
        let filter = AuditFilter { before, limit, ..AuditFilter::default() };
        admin.store().audit_records(&caller.scope, &filter).await.map_err(store_failure)
    };
    let mut newest = Vec::new();
    let mut oldest = None;
    for _ in 0..MAX_EXACT_RECORDS / BATCH_RECORDS {
        newest = read(oldest.as_ref().map(|it: &StoredAuditEvent| it.record), BATCH_RECORDS).await?;
        tally.add(&newest, 1.0);
        oldest = newest.last().cloned().or(oldest);
        if newest.len() < BATCH_RECORDS || !oldest.as_ref().is_some_and(|it| tally.is_within(it)) {
            return Ok(tally.into_recent_calls(false));
        }
    }
    let Some(mut oldest) = oldest else { return Ok(tally.into_recent_calls(false)) };
    let mut skip = records_to_skip(&newest);
    for _ in 0..MAX_BLOCKS {
        if !tally.is_within(&oldest) {
            return Ok(tally.into_recent_calls(false));
        }
        let block = read(Some(oldest.record.saturating_sub(skip)), BLOCK_RECORDS).await?;
        let Some(last) = block.last().cloned() else {
            if skip == 0 {
                return Ok(tally.into_recent_calls(false));
            }
            skip /= 4;
            continue;
        };
        if skip > 0 && !represents_gap(&block, &oldest) {
            skip /= 4;
            continue;
        }
        let span = oldest.record - last.record;
        tally.add(&block, span as f64 / block.len() as f64);
        (oldest, skip) = (last, records_to_skip(&block));
    }
    Ok(tally.into_recent_calls(true))
}

/// Whether a block can represent the records that were skipped before it: it is near enough, and not much slower.
fn represents_gap(block: &[StoredAuditEvent], before: &StoredAuditEvent) -> bool {
    let (Some(first), Some(last)) = (block.first(), block.last()) else { return false };
    let (at, left_out) = (first.event.emitted_at, before.record.saturating_sub(first.record));
    let gap = before.event.emitted_at.duration_since(at).as_secs_f64().max(0.001);
    let rate = block.len() as f64 / at.duration_since(last.event.emitted_at).as_secs_f64().max(0.001);
    seconds(before) - seconds(first) <= MAX_GAP_SECS
        && left_out as f64 <= (MAX_RATE_RATIO * rate * gap).max(BLOCK_RECORDS as f64)
}

/// Number of records to skip, so that about one block is read for each minute.
fn records_to_skip(read: &[StoredAuditEvent]) -> u64 {
    let (Some(first), Some(last)) = (read.first(), read.last()) else { return 0 };
    let span = first.record - last.record + 1;
    let took = first.event.emitted_at.duration_since(last.event.emitted_at).as_secs_f64().max(0.001);
    let in_a_minute = span as f64 / took * MINUTE_SECS as f64;
    // The clamped value fits into a u64.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is neither large nor negative"
    )]
    let in_a_minute = in_a_minute.clamp(0.0, 1e12) as u64;
    in_a_minute.saturating_sub(BLOCK_RECORDS as u64)
}

fn seconds(record: &StoredAuditEvent) -> i64 {
    record.event.emitted_at.as_second()
}

// === impl CallTally ===

impl CallTally {
    fn new(now: Timestamp) -> Self {
        Self {
            now,
            ended: 0.0,
            failed: 0.0,
            denied: 0.0,
            latencies: Vec::new(),
            per_minute: vec![0.0; MINUTES],
            failed_per_minute: vec![0.0; MINUTES],
            is_estimated: false,
        }
    }

    fn is_within(&self, record: &StoredAuditEvent) -> bool {
        self.minute_index(&record.event).is_some()
    }

    /// Index of the minute of an event, if it is within the hour.
    fn minute_index(&self, event: &AuditEvent) -> Option<usize> {
        let ago = (self.now.as_second() - event.emitted_at.as_second()).max(0) / MINUTE_SECS;
        usize::try_from(ago).ok().and_then(|ago| (MINUTES - 1).checked_sub(ago))
    }

    /// Counts records with a weight.
    fn add(&mut self, records: &[StoredAuditEvent], weight: f64) {
        self.is_estimated |= weight > 1.0;
        for event in
            records.iter().map(|record| &record.event).filter(|event| event.phase == AuditPhase::PostVerb)
        {
            let Some(at) = self.minute_index(event) else { continue };
            let has_failed = event.outcome == Some(InvocationOutcome::Failed);
            let counts = |is_so: bool| if is_so { weight } else { 0.0 };
            self.ended += weight;
            self.failed += counts(has_failed && !event.context.denied);
            self.denied += counts(event.context.denied);
            self.latencies
                .extend(event.duration_ms.filter(|_| !event.context.denied).map(|took| (took, weight)));
            self.per_minute.get_mut(at).into_iter().for_each(|count| *count += weight);
            self.failed_per_minute.get_mut(at).into_iter().for_each(|count| *count += counts(has_failed));
        }
    }

    fn into_recent_calls(mut self, is_cut: bool) -> RecentCalls {
        self.latencies.sort_unstable_by_key(|(took, _)| *took);
        RecentCalls {
            ended: rounded(self.ended),
            failed: rounded(self.failed),
            denied: rounded(self.denied),
            p50_ms: quantile(&self.latencies, 0.50),
            p99_ms: quantile(&self.latencies, 0.99),
            per_minute: self.per_minute.into_iter().map(rounded).collect(),
            failed_per_minute: self.failed_per_minute.into_iter().map(rounded).collect(),
            is_estimated: self.is_estimated,
            is_cut,
        }
    }
}

/// Weighted quantile of sorted values.
fn quantile(sorted: &[(u64, f64)], part: f64) -> Option<u64> {
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut before = 0.0;
    let reaches = |(_, weight): &&(u64, f64)| {
        before += weight;
        // Tolerance for rounding errors of the sum.
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
    fn quantiles_are_values_of_the_data() {
        let numbers: Vec<(u64, f64)> = (1..=100).map(|number| (number, 1.0)).collect();
        assert_eq!((quantile(&numbers, 0.5), quantile(&numbers, 0.99)), (Some(50), Some(99)));
        assert_eq!(
            (quantile(&[(7, 1.0)], 0.5), quantile(&[(7, 1.0)], 0.99), quantile(&[], 0.5)),
            (Some(7), Some(7), None)
        );
    }

    #[test]
    fn quantiles_count_weights() {
        let numbers = [(1, 90.0), (50, 8.0), (900, 2.0)];
        assert_eq!(
            (quantile(&numbers, 0.5), quantile(&numbers, 0.95), quantile(&numbers, 0.99)),
            (Some(1), Some(50), Some(900))
        );
    }
}
