//! How often one may come.
//!
//! Two things are counted: the requests of a caller, and the wrong tokens from an address. Both are counted as a bucket that
//! fills with time (GCRA), one number for each; numbers that have become those of a stranger are dropped on the way. What
//! is off costs nothing.
//!
//! An address that showed too many wrong tokens is shut out for a moment, whatever it shows then: otherwise a limit would
//! only slow down those who guess wrong. Loopback addresses are not counted, because what comes from there through a
//! proxy is everybody; a proxy that is trusted says whose address it is.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr, SocketAddr},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock, DefaultClock},
};
use http::HeaderMap;
use parking_lot::Mutex;
use rialto_model::call::Caller;

/// Each time so many were counted, those that have not come for long are dropped.
const TIDY: u32 = 4_096;

/// No more addresses than this are shut out at a time.
const SHUT_OUT: usize = 10_000;

/// Where a proxy says whom it asks for; the last one is whom it has seen itself.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// How often one may come. Zero is without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How many requests a caller may send each second, over time.
    pub requests_per_second: u32,
    /// How many a caller may send at once; at least the above.
    pub burst: u32,
    /// How many wrong tokens may come from an address each minute.
    pub wrong_tokens_per_minute: u32,
}

/// Counts who comes, by limits that can be changed.
#[derive(Default)]
pub struct Limited(ArcSwap<Limits>);

/// Counts who comes.
#[derive(Default)]
pub(crate) struct Limits {
    config: Config,
    requests: Option<Counted<u64>>,
    wrong_tokens: Option<Counted<IpAddr>>,
    hasher: RandomState,
    shut_out: Arc<ShutOut>,
}

struct Counted<K: std::hash::Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    clock: DefaultClock,
    since_tidy: AtomicU32,
}

/// Addresses that have to wait, and until when.
#[derive(Default)]
struct ShutOut {
    /// How many there are, so that nobody looks while there are none.
    count: AtomicUsize,
    until: Mutex<HashMap<IpAddr, Instant>>,
}

// === impl Limited ===

impl Limited {
    /// Nobody has come yet.
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(Limits::new(config)))
    }

    /// Other limits from now on. Requests are counted anew then; whoever is shut out stays so.
    pub fn change(&self, config: Config) {
        let known = self.0.load();
        if known.config != config {
            let shut_out = Arc::clone(&known.shut_out);
            self.0.store(Arc::new(Limits { shut_out, ..Limits::new(config) }));
        }
    }

    pub(crate) fn now(&self) -> arc_swap::Guard<Arc<Limits>> {
        self.0.load()
    }
}

impl std::fmt::Debug for Limited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limited").field("config", &self.0.load().config).finish_non_exhaustive()
    }
}

// === impl Limits ===

impl Limits {
    pub(crate) fn new(config: Config) -> Self {
        let rate = NonZeroU32::new(config.requests_per_second);
        let burst = NonZeroU32::new(config.burst.max(config.requests_per_second));
        let requests = rate.zip(burst).map(|(rate, burst)| Quota::per_second(rate).allow_burst(burst));
        let wrong_tokens = NonZeroU32::new(config.wrong_tokens_per_minute).map(Quota::per_minute);
        Self {
            config,
            requests: requests.map(Counted::new),
            wrong_tokens: wrong_tokens.map(Counted::new),
            ..Self::default()
        }
    }

    /// Counts a request of `caller`; if there were too many, says how long to wait.
    pub(crate) fn request(&self, caller: &Caller) -> Result<(), Duration> {
        let Some(requests) = &self.requests else { return Ok(()) };
        requests.count(&self.hasher.hash_one((caller.scope.org.as_str(), caller.id.as_str())))
    }

    /// Counts a wrong token from an address.
    pub(crate) fn wrong_token(&self, from: Option<IpAddr>) {
        if let (Some(wrong_tokens), Some(from)) = (&self.wrong_tokens, from)
            && let Err(wait) = wrong_tokens.count(&from)
        {
            self.shut_out.add(from, wait);
        }
    }

    /// Whether wrong tokens are counted at all.
    pub(crate) const fn counts_tokens(&self) -> bool {
        self.wrong_tokens.is_some()
    }

    /// How long an address has to wait, if it has to. `from` is asked only if anybody has to.
    pub(crate) fn shut_out(&self, from: impl FnOnce() -> Option<IpAddr>) -> Option<Duration> {
        if self.shut_out.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.shut_out.left(from()?)
    }
}

// === impl Counted ===

impl<K: std::hash::Hash + Eq + Clone> Counted<K> {
    fn new(quota: Quota) -> Self {
        Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            since_tidy: AtomicU32::new(0),
        }
    }

    fn count(&self, key: &K) -> Result<(), Duration> {
        if self.since_tidy.fetch_add(1, Ordering::Relaxed) % TIDY == TIDY - 1 {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(key).map_err(|too_soon| too_soon.wait_time_from(self.clock.now()))
    }
}

// === impl ShutOut ===

impl ShutOut {
    fn add(&self, address: IpAddr, wait: Duration) {
        let now = Instant::now();
        let mut until = self.until.lock();
        until.retain(|_, end| *end > now);
        if until.len() < SHUT_OUT {
            until.insert(address, now + wait);
        }
        self.count.store(until.len(), Ordering::Relaxed);
    }

    fn left(&self, address: IpAddr) -> Option<Duration> {
        let mut until = self.until.lock();
        let left = until.get(&address)?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            until.remove(&address);
            self.count.store(until.len(), Ordering::Relaxed);
            return None;
        }
        Some(left)
    }
}

/// The address that a request is counted under: the peer's, or the one that a trusted proxy names.
pub(crate) fn source(peer: Option<IpAddr>, headers: &HeaderMap, trust_proxy: bool) -> Option<IpAddr> {
    let forwarded = || {
        let values = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
        let last = values.rsplit(',').next()?.trim();
        // Some proxies name the port too.
        last.parse::<IpAddr>().ok().or_else(|| Some(last.parse::<SocketAddr>().ok()?.ip()))
    };
    let address = if trust_proxy { forwarded().or(peer) } else { peer }?;
    network_of(address)
}

/// The address that whoever comes from `address` is counted under: none for loopback, and the network for IPv6, because whoever has one
/// address there has all those around it.
pub(crate) fn network_of(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    match address {
        _ if address.is_loopback() => None,
        IpAddr::V4(_) => Some(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            Some(IpAddr::V6(Ipv6Addr::from(network)))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_caller_may_come_so_often_and_another_is_not_affected() {
        let limits = Limits::new(Config { requests_per_second: 1, burst: 3, ..Config::default() });
        let (ann, bob) = (Caller::user("ann"), Caller::user("bob"));
        let passed = (0..5).filter(|_| limits.request(&ann).is_ok()).count();
        assert_eq!(passed, 3);
        let wait = limits.request(&ann).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert!(limits.request(&bob).is_ok());
    }

    #[test]
    fn without_a_limit_nobody_is_counted() {
        let limits = Limits::new(Config::default());
        assert!(limits.requests.is_none() && !limits.counts_tokens());
        assert!((0..10_000).all(|_| limits.request(&Caller::user("ann")).is_ok()));
    }

    #[test]
    fn those_who_have_not_come_for_long_take_no_room() {
        let limits = Limits::new(Config { requests_per_second: 1_000_000, ..Config::default() });
        for n in 0..3 * TIDY {
            limits.request(&Caller::user(n.to_string())).unwrap();
        }
        let kept = limits.requests.unwrap().limiter.len();
        assert!(kept <= TIDY as usize + 1, "{kept} are kept");
    }

    #[test]
    fn an_address_with_too_many_wrong_tokens_is_shut_out_and_others_are_not() {
        let limits = Limits::new(Config { wrong_tokens_per_minute: 2, ..Config::default() });
        let (theirs, ours) = (IpAddr::from([203, 0, 113, 9]), IpAddr::from([203, 0, 113, 10]));
        for _ in 0..2 {
            limits.wrong_token(Some(theirs));
            assert_eq!(limits.shut_out(|| Some(theirs)), None);
        }
        limits.wrong_token(Some(theirs));
        let wait = limits.shut_out(|| Some(theirs)).unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(30), "{wait:?}");
        assert_eq!(limits.shut_out(|| Some(ours)), None);
    }

    #[test]
    fn an_address_is_the_peers_unless_a_trusted_proxy_says_otherwise() {
        let headers = HeaderMap::from_iter([(
            http::header::HeaderName::from_static(FORWARDED_FOR),
            HeaderValue::from_static("198.51.100.1, 203.0.113.9"),
        )]);
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(source(peer, &headers, false), peer);
        assert_eq!(source(peer, &headers, true), Some(IpAddr::from([203, 0, 113, 9])));
        assert_eq!(source(peer, &HeaderMap::new(), true), peer);
        let with_port = HeaderMap::from_iter([(
            http::header::HeaderName::from_static(FORWARDED_FOR),
            HeaderValue::from_static("203.0.113.9:4711"),
        )]);
        assert_eq!(source(peer, &with_port, true), Some(IpAddr::from([203, 0, 113, 9])));
        assert_eq!(source(Some(IpAddr::from([127, 0, 0, 1])), &headers, false), None);
        let network = |text: &str| source(Some(text.parse().unwrap()), &HeaderMap::new(), false);
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:127.0.0.1"), None);
    }
}
