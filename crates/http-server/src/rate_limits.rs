//! Rate limits: requests by caller, and wrong tokens by address.
//!
//! Both are token buckets (GCRA), one number each; idle ones are removed on the way. A limit that is off costs nothing.
//!
//! An address with too many wrong tokens is blocked for a while, whatever token it sends then: otherwise a limit would only slow down a
//! guess. Loopback addresses are not counted, because requests through a local proxy come from any client; a trusted proxy names the
//! client's address.

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

/// Number of counted requests after which idle counters are removed.
const CLEANUP_INTERVAL_REQUESTS: u32 = 4_096;

/// Maximum number of blocked addresses.
const MAX_BLOCKED_ADDRESSES: usize = 10_000;

/// Header in which a proxy names its client; the last entry is the address that the proxy itself has seen.
const FORWARDED_FOR_HEADER: &str = "x-forwarded-for";

/// Rate limits. Zero is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Sustained requests of a caller per second.
    pub requests_per_second: u32,
    /// Burst of a caller's requests; at least the above.
    pub burst: u32,
    /// Wrong tokens of an address per minute.
    pub wrong_tokens_per_minute: u32,
}

/// Rate limiter with replaceable limits.
#[derive(Default)]
pub struct RateLimiter(ArcSwap<RateLimits>);

/// Counters of one configuration.
#[derive(Default)]
pub(crate) struct RateLimits {
    config: Config,
    requests: Option<KeyedCounter<u64>>,
    wrong_tokens: Option<KeyedCounter<IpAddr>>,
    hasher: RandomState,
    blocked: Arc<BlockedAddresses>,
}

struct KeyedCounter<K: std::hash::Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    clock: DefaultClock,
    since_cleanup: AtomicU32,
}

/// Blocked addresses, and until when.
#[derive(Default)]
struct BlockedAddresses {
    /// Number of entries, so that the map is not locked while it is empty.
    count: AtomicUsize,
    until: Mutex<HashMap<IpAddr, Instant>>,
}

// === impl RateLimiter ===

impl RateLimiter {
    /// Creates a limiter without counts.
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(RateLimits::new(config)))
    }

    /// Replaces the limits. Requests are counted anew; blocked addresses stay blocked.
    pub fn set_config(&self, config: Config) {
        let known = self.0.load();
        if known.config != config {
            let blocked = Arc::clone(&known.blocked);
            self.0.store(Arc::new(RateLimits { blocked, ..RateLimits::new(config) }));
        }
    }

    pub(crate) fn now(&self) -> arc_swap::Guard<Arc<RateLimits>> {
        self.0.load()
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limited").field("config", &self.0.load().config).finish_non_exhaustive()
    }
}

// === impl RateLimits ===

impl RateLimits {
    pub(crate) fn new(config: Config) -> Self {
        let rate = NonZeroU32::new(config.requests_per_second);
        let burst = NonZeroU32::new(config.burst.max(config.requests_per_second));
        let requests = rate.zip(burst).map(|(rate, burst)| Quota::per_second(rate).allow_burst(burst));
        let wrong_tokens = NonZeroU32::new(config.wrong_tokens_per_minute).map(Quota::per_minute);
        Self {
            config,
            requests: requests.map(KeyedCounter::new),
            wrong_tokens: wrong_tokens.map(KeyedCounter::new),
            ..Self::default()
        }
    }

    /// Counts a request of `caller`; if there were too many, returns how long to wait.
    pub(crate) fn count_request(&self, caller: &Caller) -> Result<(), Duration> {
        let Some(requests) = &self.requests else { return Ok(()) };
        requests.count(&self.hasher.hash_one((caller.scope.org.as_str(), caller.id.as_str())))
    }

    /// Counts a wrong token from an address.
    pub(crate) fn count_wrong_token(&self, from: Option<IpAddr>) {
        if let (Some(wrong_tokens), Some(from)) = (&self.wrong_tokens, from)
            && let Err(wait) = wrong_tokens.count(&from)
        {
            self.blocked.add(from, wait);
        }
    }

    /// True if wrong tokens are counted.
    pub(crate) const fn counts_tokens(&self) -> bool {
        self.wrong_tokens.is_some()
    }

    /// Time that an address is still blocked. `from` is called only if any address is.
    pub(crate) fn blocked_for(&self, from: impl FnOnce() -> Option<IpAddr>) -> Option<Duration> {
        if self.blocked.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.blocked.remaining(from()?)
    }
}

// === impl KeyedCounter ===

impl<K: std::hash::Hash + Eq + Clone> KeyedCounter<K> {
    fn new(quota: Quota) -> Self {
        Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            since_cleanup: AtomicU32::new(0),
        }
    }

    fn count(&self, key: &K) -> Result<(), Duration> {
        if self.since_cleanup.fetch_add(1, Ordering::Relaxed) % CLEANUP_INTERVAL_REQUESTS
            == CLEANUP_INTERVAL_REQUESTS - 1
        {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(key).map_err(|too_soon| too_soon.wait_time_from(self.clock.now()))
    }
}

// === impl BlockedAddresses ===

impl BlockedAddresses {
    fn add(&self, address: IpAddr, wait: Duration) {
        let now = Instant::now();
        let mut until = self.until.lock();
        until.retain(|_, end| *end > now);
        if until.len() < MAX_BLOCKED_ADDRESSES {
            until.insert(address, now + wait);
        }
        self.count.store(until.len(), Ordering::Relaxed);
    }

    fn remaining(&self, address: IpAddr) -> Option<Duration> {
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

/// Address that a request is counted under: the peer's, or the one that a trusted proxy names.
pub(crate) fn source_address(peer: Option<IpAddr>, headers: &HeaderMap, trust_proxy: bool) -> Option<IpAddr> {
    let forwarded = || {
        let values = headers.get_all(FORWARDED_FOR_HEADER).iter().next_back()?.to_str().ok()?;
        let last = values.rsplit(',').next()?.trim();
        // Some proxies add the port.
        last.parse::<IpAddr>().ok().or_else(|| Some(last.parse::<SocketAddr>().ok()?.ip()))
    };
    let address = if trust_proxy { forwarded().or(peer) } else { peer }?;
    counted_address(address)
}

/// Address that a client is counted under: none for loopback, and the /64 network for IPv6, because a client with one address there has all
/// of them.
pub(crate) fn counted_address(address: IpAddr) -> Option<IpAddr> {
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
    fn a_caller_reaches_its_limit_and_another_is_not_affected() {
        let limits = RateLimits::new(Config { requests_per_second: 1, burst: 3, ..Config::default() });
        let (ann, bob) = (Caller::user("ann"), Caller::user("bob"));
        let passed = (0..5).filter(|_| limits.count_request(&ann).is_ok()).count();
        assert_eq!(passed, 3);
        let wait = limits.count_request(&ann).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert!(limits.count_request(&bob).is_ok());
    }

    #[test]
    fn without_a_limit_no_request_is_counted() {
        let limits = RateLimits::new(Config::default());
        assert!(limits.requests.is_none() && !limits.counts_tokens());
        assert!((0..10_000).all(|_| limits.count_request(&Caller::user("ann")).is_ok()));
    }

    #[test]
    fn idle_callers_take_no_memory() {
        let limits = RateLimits::new(Config { requests_per_second: 1_000_000, ..Config::default() });
        for n in 0..3 * CLEANUP_INTERVAL_REQUESTS {
            limits.count_request(&Caller::user(n.to_string())).unwrap();
        }
        let kept = limits.requests.unwrap().limiter.len();
        assert!(kept <= CLEANUP_INTERVAL_REQUESTS as usize + 1, "{kept} are kept");
    }

    #[test]
    fn an_address_with_too_many_wrong_tokens_is_blocked_and_others_are_not() {
        let limits = RateLimits::new(Config { wrong_tokens_per_minute: 2, ..Config::default() });
        let (theirs, ours) = (IpAddr::from([203, 0, 113, 9]), IpAddr::from([203, 0, 113, 10]));
        for _ in 0..2 {
            limits.count_wrong_token(Some(theirs));
            assert_eq!(limits.blocked_for(|| Some(theirs)), None);
        }
        limits.count_wrong_token(Some(theirs));
        let wait = limits.blocked_for(|| Some(theirs)).unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(30), "{wait:?}");
        assert_eq!(limits.blocked_for(|| Some(ours)), None);
    }

    #[test]
    fn an_address_is_the_peers_unless_a_trusted_proxy_says_otherwise() {
        let headers = HeaderMap::from_iter([(
            http::header::HeaderName::from_static(FORWARDED_FOR_HEADER),
            HeaderValue::from_static("198.51.100.1, 203.0.113.9"),
        )]);
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(source_address(peer, &headers, false), peer);
        assert_eq!(source_address(peer, &headers, true), Some(IpAddr::from([203, 0, 113, 9])));
        assert_eq!(source_address(peer, &HeaderMap::new(), true), peer);
        let with_port = HeaderMap::from_iter([(
            http::header::HeaderName::from_static(FORWARDED_FOR_HEADER),
            HeaderValue::from_static("203.0.113.9:4711"),
        )]);
        assert_eq!(source_address(peer, &with_port, true), Some(IpAddr::from([203, 0, 113, 9])));
        assert_eq!(source_address(Some(IpAddr::from([127, 0, 0, 1])), &headers, false), None);
        let network = |text: &str| source_address(Some(text.parse().unwrap()), &HeaderMap::new(), false);
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:127.0.0.1"), None);
    }
}
