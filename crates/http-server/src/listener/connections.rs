//! Limits of open connections, in all and for one address.
//!
//! A connection uses a descriptor, and the store, policies and calls to agents need descriptors too. So the number of connections stays
//! below the limit of the process by a [reserve](max_connections_for), whatever is configured.
//!
//! Connections through a proxy have the proxy's address. So loopback addresses have no limit of their own unless one is configured, and no
//! address has one where a proxy is trusted.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;

use crate::rate_limits::counted_address;

/// Default maximum of connections from one address.
const MAX_PER_ADDRESS: usize = 1_000;

/// Descriptors reserved for everything but connections: a quarter of all, within these bounds.
const DESCRIPTOR_RESERVE: std::ops::RangeInclusive<usize> = 64..=4_096;

/// Maximum numbers of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// In all.
    pub max: usize,
    /// From one address (one network of 64 bits, for IPv6).
    pub per_address: PerAddress,
}

/// Limit of connections from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerAddress {
    /// Up to 1,000, loopback addresses excepted.
    Default,
    /// Not at all: they come from a proxy.
    Unlimited,
    /// Up to this number, loopback addresses included.
    Max(usize),
}

/// Connections that are open.
#[derive(Debug)]
pub struct Connections {
    limits: ConnectionLimits,
    open: AtomicUsize,
    refused: AtomicU64,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// Permit of an open connection, released when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connections: Arc<Connections>,
    address: Option<IpAddr>,
}

/// Raises the number of descriptors that this process may have open as far as the system allows, and returns it. None where there is no
/// limit that could be read.
pub fn raise_descriptor_limit() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::debug!("the limit of open files could not be raised: {error}");
            }
        }
        getrlimit(Resource::Nofile).current.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
    #[cfg(not(unix))]
    None
}

/// Number of connections that `descriptors` allow: the store and everything else that a server opens need some.
pub fn max_connections_for(descriptors: usize) -> usize {
    let reserve = (descriptors / 4).clamp(*DESCRIPTOR_RESERVE.start(), *DESCRIPTOR_RESERVE.end());
    descriptors.saturating_sub(reserve).max(descriptors / 4).max(1)
}

// === impl ConnectionLimits ===

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { max: 20_000, per_address: PerAddress::Default }
    }
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let (open, refused, by_address) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::default());
        Arc::new(Self { limits, open, refused, by_address })
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Number of connections that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Admits a connection, if the limits allow it.
    pub(super) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<ConnectionPermit> {
        let address = self.address_key(from);
        if self.open.fetch_add(1, Relaxed) >= self.limits.max || !self.count(address) {
            self.open.fetch_sub(1, Relaxed);
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Some(ConnectionPermit { connections: Arc::clone(self), address })
    }

    /// Address that a connection is counted under, if it is.
    fn address_key(&self, from: IpAddr) -> Option<IpAddr> {
        match self.limits.per_address {
            PerAddress::Default => counted_address(from),
            PerAddress::Unlimited => None,
            PerAddress::Max(_) => counted_address(from).or(Some(from.to_canonical())),
        }
    }

    fn count(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else { return true };
        let max = match self.limits.per_address {
            PerAddress::Max(max) => max,
            PerAddress::Default | PerAddress::Unlimited => MAX_PER_ADDRESS,
        };
        let mut by_address = self.by_address.lock();
        let count = by_address.entry(address).or_insert(0);
        let has_room = *count < max;
        if has_room {
            *count += 1;
        } else if *count == 0 {
            by_address.remove(&address);
        }
        has_room
    }
}

// === impl ConnectionPermit ===

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.open.fetch_sub(1, Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = self.connections.by_address.lock();
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 9));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 10));
    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn connections(max: usize, per_address: PerAddress) -> Arc<Connections> {
        Connections::new(ConnectionLimits { max, per_address })
    }

    #[test]
    fn no_more_are_open_than_may_be_and_one_that_ends_makes_room() {
        let table = connections(2, PerAddress::Default);
        let (first, _second) = (table.admit(LOCAL).unwrap(), table.admit(LOCAL).unwrap());
        assert!(table.admit(LOCAL).is_none());
        drop(first);
        assert!(table.admit(LOCAL).is_some());
        assert_eq!((table.open(), table.refused()), (1, 1));
    }

    #[test]
    fn an_address_has_its_share_and_takes_nothing_from_another() {
        let table = connections(100, PerAddress::Max(2));
        let own = [table.admit(ANN).unwrap(), table.admit(ANN).unwrap()];
        assert!(table.admit(ANN).is_none());
        assert!(table.admit(BOB).is_some());
        drop(own);
        assert!(table.admit(ANN).is_some());
        assert_eq!((table.open(), table.by_address.lock().len()), (0, 0));
    }

    #[test]
    fn by_default_a_proxy_at_this_machine_is_not_counted_as_one_client() {
        let table = connections(usize::MAX, PerAddress::Default);
        let opened = |from| (0..=MAX_PER_ADDRESS).filter_map(|_| table.admit(from)).collect::<Vec<_>>().len();
        assert_eq!((opened(LOCAL), opened(ANN)), (MAX_PER_ADDRESS + 1, MAX_PER_ADDRESS));
        let behind_proxy = connections(usize::MAX, PerAddress::Unlimited);
        assert!((0..=MAX_PER_ADDRESS).map(|_| behind_proxy.admit(ANN)).all(|permit| permit.is_some()));
        let explicit = connections(100, PerAddress::Max(1));
        let _one = explicit.admit(LOCAL).unwrap();
        assert!(explicit.admit(LOCAL).is_none());
    }

    #[test]
    fn descriptors_are_kept_for_the_store() {
        for (descriptors, connections) in [(1_024, 768), (256, 192), (100, 36), (8, 2), (1_000_000, 995_904)]
        {
            assert_eq!(max_connections_for(descriptors), connections, "{descriptors}");
        }
    }
}
