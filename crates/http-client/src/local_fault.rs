//! Faults of this process or machine that keep a connection from being opened.
//!
//! No file descriptors left, no memory, no DNS: these are no faults of the server that is called. They are reported as ours,
//! with what helps, and logged at most once a minute with the number of times they occurred.

use std::{io, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Shortest time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Texts of getaddrinfo for a name without an address (glibc, musl, macOS); everything else it says is about the resolver.
const UNKNOWN_NAME: [&str; 6] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "Name has no usable address",
    "nodename nor servname provided",
    "Non-recoverable failure in name resolution",
];

/// Log of local faults.
#[derive(Default)]
pub(crate) struct LocalFaultLog(Mutex<FaultCount>);

#[derive(Default)]
struct FaultCount {
    logged_at: Option<Instant>,
    /// Faults since the last log line.
    unlogged: u64,
}

// === impl LocalFaultLog ===

impl LocalFaultLog {
    /// Logs a fault, or counts it when one was logged a moment ago.
    pub(crate) fn add(&self, fault: &str) {
        if let Some(before) = self.count(Instant::now()) {
            tracing::error!(
                faults = before,
                "no connection can be opened, and that is not the other server's fault: {fault}"
            );
        }
    }

    /// Counts a fault. Returns the number of faults to log, if it is time for a log line.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut count = self.0.lock();
        count.unlogged += 1;
        if count.logged_at.is_some_and(|at| now.duration_since(at) < LOG_INTERVAL) {
            return None;
        }
        count.logged_at = Some(now);
        Some(std::mem::take(&mut count.unlogged))
    }
}

/// Describes an I/O error that is a fault of this process or machine; none for any other.
pub(crate) fn describe_io(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::OutOfMemory => {
            return Some("this server has no memory left; give it more, or lower its limits".to_owned());
        }
        io::ErrorKind::AddrNotAvailable => {
            return Some(
                "this machine has no local port left for another connection; have fewer connections open"
                    .to_owned(),
            );
        }
        _ => {}
    }
    describe_errno(error.raw_os_error()?).map(str::to_owned)
}

#[cfg(unix)]
fn describe_errno(number: i32) -> Option<&'static str> {
    use rustix::io::Errno;
    match Errno::from_raw_os_error(number) {
        Errno::MFILE => Some(
            "this server has no file descriptors left; raise its limit (ulimit -n, LimitNOFILE=), or lower [server] \
             max_connections",
        ),
        Errno::NFILE => Some("this machine has no file descriptors left; raise fs.file-max"),
        Errno::NOBUFS => Some("this machine has no memory left for sockets; have fewer connections open"),
        _ => None,
    }
}

#[cfg(not(unix))]
const fn describe_errno(_: i32) -> Option<&'static str> {
    None
}

/// Describes a failed lookup of a name that is a fault of this machine; none if the name has no address.
pub(crate) fn describe_lookup(name: &str, error: &io::Error) -> Option<String> {
    if let Some(fault) = describe_io(error) {
        return Some(fault);
    }
    let text = error.to_string();
    if error.kind() == io::ErrorKind::NotFound || UNKNOWN_NAME.iter().any(|unknown| text.contains(unknown)) {
        return None;
    }
    Some(format!("the DNS resolver of this machine could not look up {name}: {text}; see /etc/resolv.conf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_an_address_is_no_fault_of_ours_and_a_resolver_that_fails_is() {
        let lookup = |text: &str| {
            let error = io::Error::other(format!("failed to lookup address information: {text}"));
            describe_lookup("a.example", &error)
        };
        assert_eq!(lookup("Name or service not known"), None);
        assert_eq!(lookup("No address associated with hostname"), None);
        let fault = lookup("Temporary failure in name resolution").unwrap();
        assert!(fault.contains("a.example") && fault.contains("resolv.conf"), "{fault}");
    }

    #[cfg(unix)]
    #[test]
    fn descriptors_that_run_out_are_ours_and_a_refused_connection_is_not() {
        let describe = |errno: rustix::io::Errno| describe_io(&errno.into());
        assert!(describe(rustix::io::Errno::MFILE).unwrap().contains("ulimit -n"));
        assert!(describe(rustix::io::Errno::NFILE).unwrap().contains("fs.file-max"));
        assert!(describe(rustix::io::Errno::NOMEM).unwrap().contains("memory"));
        assert_eq!(describe(rustix::io::Errno::CONNREFUSED), None);
        assert_eq!(describe(rustix::io::Errno::CONNRESET), None);
    }

    #[test]
    fn repeated_faults_are_counted_and_logged_once_a_minute() {
        let (log, start) = (LocalFaultLog::default(), Instant::now());
        assert_eq!(log.count(start), Some(1));
        assert_eq!(log.count(start + Duration::from_secs(1)), None);
        assert_eq!(log.count(start + Duration::from_secs(2)), None);
        assert_eq!(log.count(start + Duration::from_secs(61)), Some(3));
    }
}
