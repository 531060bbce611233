//! How much one caller and one org may ask for.
//!
//! These are limits of calls, whatever door they come in by. Calls are counted in this process. Those of orgs and tools are exchanged with
//! the other processes on the store ([`shared_counts`]), while calls under way are counted in each process. A caller is counted under a
//! hash, so nothing is allocated for a call, and only while it has calls under way, so there is nothing to tidy up.

mod shared_counts;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use rialto_model::{
    call::{CallTarget, Caller, CallerKind},
    clock::Timestamp,
    failure::{Failure, FailureKind},
    json::Json,
    maps::FastMap,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::hops;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// What is allowed. Zero is without a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many calls of one caller may be under way at once.
    pub concurrent_calls: usize,
    /// How many bytes of tasks and audit records each org may keep.
    pub org_storage_bytes: u64,
    /// What single orgs may.
    pub orgs: BTreeMap<String, Quota>,
    /// How many calls in each minute one caller may make of single tools, by their canonical names.
    pub tools: BTreeMap<String, u64>,
}

/// How many calls an org may make, and how much it may keep. Zero is without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// In each hour.
    pub calls_per_hour: u64,
    /// In each day, by UTC.
    pub calls_per_day: u64,
    /// How many bytes of tasks and audit records it may keep; zero is what every org may.
    pub storage_bytes: u64,
}

/// Counts.
pub(crate) struct CallLimits {
    concurrent_calls: AtomicUsize,
    hasher: RandomState,
    under_way: Mutex<FastMap<u64, usize>>,
    orgs: RwLock<OrgCounts>,
    /// Whether any tool has a limit.
    counts_tools: AtomicBool,
    tools: Mutex<ToolCounts>,
}

/// The hour and the day of each org that has a quota.
type OrgCounts = HashMap<String, Mutex<[RateWindow; 2]>>;

/// Calls of tools that have a limit, in this minute.
#[derive(Default)]
struct ToolCounts {
    max_per_minute: HashMap<String, u64>,
    began_at: i64,
    /// By caller and tool. It is emptied every minute.
    used: FastMap<u64, ToolCount>,
    /// Keys of those that have calls the other processes do not know of.
    unsent: Vec<u64>,
}

/// Calls of one tool by one caller in this minute.
struct ToolCount {
    /// Name of the count among all processes. Callers have names of any length: it has a digest of them.
    key: String,
    used: u64,
    /// Calls that the other processes do not know of.
    unsent: u64,
}

/// A caller's leave to have a call under way, for as long as it lives.
pub(crate) struct CallPermit {
    limits: Arc<CallLimits>,
    key: u64,
    /// Under this an agent's call of itself is counted.
    self_call: Option<u64>,
}

/// A stretch of time in which an org may make so many calls.
#[derive(Clone, Copy)]
struct RateWindow {
    name: &'static str,
    seconds: i64,
    most: u64,
    began_at: i64,
    /// Calls of this process, and of the others as far as they are known.
    used: u64,
    /// Calls that the other processes do not know of.
    unsent: u64,
    /// Whether the calls of the others were asked for.
    is_known: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { concurrent_calls: 256, org_storage_bytes: 0, orgs: BTreeMap::new(), tools: BTreeMap::new() }
    }
}

// === impl Limits ===

impl CallLimits {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let limits = Self {
            concurrent_calls: AtomicUsize::default(),
            hasher: RandomState::new(),
            under_way: Mutex::default(),
            orgs: RwLock::default(),
            counts_tools: AtomicBool::default(),
            tools: Mutex::default(),
        };
        limits.change(config);
        Arc::new(limits)
    }

    /// Allows something else from now on. What was counted stays counted.
    pub(crate) fn change(&self, config: &Config) {
        self.concurrent_calls.store(config.concurrent_calls, Ordering::Relaxed);
        let limited = config.tools.iter().filter(|(_, max)| **max > 0);
        let max_per_minute: HashMap<_, _> = limited.map(|(tool, max)| (tool.clone(), *max)).collect();
        self.counts_tools.store(!max_per_minute.is_empty(), Ordering::Relaxed);
        self.tools.lock().max_per_minute = max_per_minute;
        let mut orgs = self.orgs.write();
        let windows = |(org, quota): (&String, &Quota)| {
            let fresh = || [RateWindow::new("hour", HOUR), RateWindow::new("day", DAY)];
            let mut windows = orgs.get(org).map_or_else(fresh, |known| *known.lock());
            (windows[0].most, windows[1].most) = (quota.calls_per_hour, quota.calls_per_day);
            (org.clone(), Mutex::new(windows))
        };
        let changed = config.orgs.iter().map(windows).collect();
        *orgs = changed;
    }

    /// Lets a call begin, or says when to try again. No seat is given where seats are not counted.
    pub(crate) fn admit(
        self: &Arc<Self>,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<CallPermit>, Failure> {
        let seat = self.seat(caller)?;
        let orgs = self.orgs.read();
        if !orgs.is_empty()
            && let Some(windows) = orgs.get(caller.scope.org.as_str())
        {
            // Both or none: a call that one of them refuses is not counted by the other.
            let mut windows = windows.lock();
            for window in &mut *windows {
                window.look(now).map_err(|wait| window.used_up(caller, wait))?;
            }
            windows.iter_mut().for_each(RateWindow::count);
        }
        Ok(seat)
    }

    /// Counts a call of a tool; if there were too many in this minute, says when to try again.
    pub(crate) fn admit_tool(
        &self,
        caller: &Caller,
        target: &CallTarget,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if !self.counts_tools.load(Ordering::Relaxed) {
            return Ok(());
        }
        let tool = target.verb();
        let key = self.hasher.hash_one((caller.scope.org.as_str(), caller.id.as_str(), &tool));
        let mut counts = self.tools.lock();
        let Some(max) = counts.max_per_minute.get(&tool).copied() else { return Ok(()) };
        let now = now.as_second();
        let began_at = now - now.rem_euclid(MINUTE);
        if began_at != counts.began_at {
            counts.began_at = began_at;
            counts.used.clear();
            counts.unsent.clear();
        }
        let ToolCounts { used, unsent, .. } = &mut *counts;
        let count = used.entry(key).or_insert_with(|| ToolCount::new(caller, &tool));
        if count.used >= max {
            let wait = began_at + MINUTE - now;
            let message = format!(
                "{} has made its {max} calls of {tool} in this minute; the next begins in {wait} s, or raise \
                 [limits.tools.\"{tool}\"] calls_per_minute",
                caller.id
            );
            return Err(busy(message, wait));
        }
        count.used += 1;
        count.unsent += 1;
        if count.unsent == 1 {
            unsent.push(key);
        }
        Ok(())
    }

    fn seat(self: &Arc<Self>, caller: &Caller) -> Result<Option<CallPermit>, Failure> {
        let most = self.concurrent_calls.load(Ordering::Relaxed);
        if most == 0 {
            return Ok(None);
        }
        let key = self.hasher.hash_one((caller.scope.org.as_str(), caller.id.as_str()));
        let mut under_way = self.under_way.lock();
        let count = under_way.entry(key).or_insert(0);
        if *count >= most {
            drop(under_way);
            return Err(full(caller, most));
        }
        *count += 1;
        Ok(Some(CallPermit { limits: Arc::clone(self), key, self_call: None }))
    }

    /// Counts an agent's call of itself. What agents pass on may get lost on the way; that an agent is called by itself does not.
    pub(crate) fn count_self_call(
        &self,
        caller: &Caller,
        target: &CallTarget,
        max_hops: u8,
        seat: &mut Option<CallPermit>,
    ) -> Result<(), Failure> {
        let is_self = caller.kind == CallerKind::Agent && caller.id.as_str() == target.agent.id.as_str();
        let (true, Some(seat)) = (is_self, seat) else { return Ok(()) };
        let key = self.hasher.hash_one(("self", caller.scope.org.as_str(), caller.id.as_str()));
        let mut under_way = self.under_way.lock();
        let count = under_way.entry(key).or_insert(0);
        if *count >= usize::from(max_hops) {
            drop(under_way);
            return Err(hops::too_many(max_hops));
        }
        *count += 1;
        seat.self_call = Some(key);
        Ok(())
    }
}

// === impl ToolCount ===

impl ToolCount {
    fn new(caller: &Caller, tool: &str) -> Self {
        let mut hash = Sha256::new();
        for text in [caller.scope.org.as_str(), caller.id.as_str()] {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        let caller: String = hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { key: format!("tool {tool} {caller}"), used: 0, unsent: 0 }
    }
}

// === impl Seat ===

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut under_way = self.limits.under_way.lock();
        for key in std::iter::once(self.key).chain(self.self_call) {
            if let Some(count) = under_way.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    under_way.remove(&key);
                }
            }
        }
    }
}

impl fmt::Debug for CallPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").finish_non_exhaustive()
    }
}

// === impl Window ===

impl RateWindow {
    const fn new(name: &'static str, seconds: i64) -> Self {
        Self { name, seconds, most: 0, began_at: 0, used: 0, unsent: 0, is_known: false }
    }

    /// Whether there is room for one more; if not, in how many seconds there is.
    fn look(&mut self, now: Timestamp) -> Result<(), i64> {
        self.roll(now);
        let has_room = self.most == 0 || self.used < self.most;
        if has_room { Ok(()) } else { Err(self.began_at + self.seconds - now.as_second()) }
    }

    /// Begins the window that `now` is in, unless it has begun.
    fn roll(&mut self, now: Timestamp) {
        let began_at = now.as_second() - now.as_second().rem_euclid(self.seconds);
        if began_at != self.began_at {
            *self = Self { most: self.most, began_at, ..Self::new(self.name, self.seconds) };
        }
    }

    const fn count(&mut self) {
        self.used += 1;
        self.unsent += 1;
    }

    fn used_up(&self, caller: &Caller, wait: i64) -> Failure {
        let (org, most, name) = (&caller.scope.org, self.most, self.name);
        let message = format!(
            "org {org} has made its {most} calls of this {name}; the next {name} begins in {wait} s, or raise \
             [limits.orgs.{org}] calls_per_{name}"
        );
        busy(message, wait)
    }
}

fn full(caller: &Caller, most: usize) -> Failure {
    let message = format!(
        "{} has {most} calls under way, and that is the limit; wait for one to end, cancel one, or raise \
         [limits] concurrent_calls",
        caller.id
    );
    busy(message, 1)
}

/// A failure that passes: in so many seconds it may be another answer.
pub(crate) fn busy(message: impl Into<String>, retry_after: i64) -> Failure {
    Failure::new(FailureKind::Busy, message).with_data(Json::encode(&json!({ "retryAfter": retry_after })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn limits(concurrent_calls: usize, calls_per_hour: u64, calls_per_day: u64) -> Arc<CallLimits> {
        let quota = Quota { calls_per_hour, calls_per_day, storage_bytes: 0 };
        CallLimits::new(&Config {
            concurrent_calls,
            orgs: BTreeMap::from([("default".to_owned(), quota)]),
            ..Config::default()
        })
    }

    #[test]
    fn a_caller_has_so_many_seats_and_another_has_its_own() {
        let (limits, now) = (limits(2, 0, 0), at("2026-08-01T12:00:00Z"));
        let (ann, bob) = (Caller::user("ann"), Caller::user("bob"));
        let seats = [limits.admit(&ann, now).unwrap(), limits.admit(&ann, now).unwrap()];
        let refused = limits.admit(&ann, now).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Busy);
        assert!(refused.message.contains("ann") && refused.message.contains("concurrent_calls"), "{refused}");
        assert_eq!(refused.data.unwrap().get(), r#"{"retryAfter":1}"#);
        assert!(limits.admit(&bob, now).is_ok());
        drop(seats);
        assert!(limits.admit(&ann, now).is_ok());
        assert!(limits.under_way.lock().is_empty(), "who has nothing under way takes no room");
    }

    #[test]
    fn an_org_has_so_many_calls_until_the_hour_is_over() {
        let (limits, ann) = (limits(0, 2, 0), Caller::user("ann"));
        for _ in 0..2 {
            limits.admit(&ann, at("2026-08-01T12:10:00Z")).unwrap();
        }
        let refused = limits.admit(&ann, at("2026-08-01T12:59:58Z")).unwrap_err();
        assert_eq!(refused.data.unwrap().get(), r#"{"retryAfter":2}"#);
        assert!(refused.message.contains("[limits.orgs.default] calls_per_hour"), "{}", refused.message);
        assert!(limits.admit(&ann, at("2026-08-01T13:00:00Z")).is_ok());
    }

    #[test]
    fn other_limits_count_from_now_on_and_what_was_counted_stays_counted() {
        let (limits, ann, now) = (limits(0, 2, 0), Caller::user("ann"), at("2026-08-01T12:10:00Z"));
        limits.admit(&ann, now).unwrap();
        let quota = Quota { calls_per_hour: 1, ..Quota::default() };
        let orgs = BTreeMap::from([("default".to_owned(), quota)]);
        limits.change(&Config { concurrent_calls: 1, orgs, ..Config::default() });
        assert!(limits.admit(&ann, now).unwrap_err().message.contains("hour"));
        limits.change(&Config { concurrent_calls: 1, ..Config::default() });
        let seat = limits.admit(&ann, now).unwrap();
        assert!(limits.admit(&ann, now).unwrap_err().message.contains("concurrent_calls"));
        drop(seat);
        assert!(limits.admit(&ann, now).is_ok());
    }

    #[test]
    fn what_the_day_refuses_is_not_counted_in_the_hour() {
        let (limits, ann) = (limits(0, 2, 1), Caller::user("ann"));
        limits.admit(&ann, at("2026-08-01T23:30:00Z")).unwrap();
        for _ in 0..5 {
            assert!(limits.admit(&ann, at("2026-08-01T23:30:00Z")).unwrap_err().message.contains("day"));
        }
        assert_eq!(limits.orgs.read()["default"].lock()[0].used, 1);
        let elsewhere =
            Caller { scope: rialto_model::ids::Scope { org: "acme".into(), ..Default::default() }, ..ann };
        assert!(limits.admit(&elsewhere, at("2026-08-01T23:30:00Z")).is_ok());
    }
}
