//! HAProxy in front of servers, with the configuration of `deploy/haproxy.cfg`.

use std::{net::TcpListener, process::Command, sync::Mutex};

use super::{http, process::ChildProcess, until};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/haproxy.cfg");

/// A proxy that runs until this is dropped.
pub(crate) struct Haproxy {
    pub(crate) url: String,
    _process: Mutex<ChildProcess>,
}

// === impl Haproxy ===

impl Haproxy {
    /// Starts it in front of the three servers at these addresses, which may be started later.
    pub(crate) fn in_front_of(addresses: &[String]) -> Self {
        let bind = free_address();
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", CONFIG]).env("RIALTO_BIND", &bind);
        for (number, address) in addresses.iter().enumerate() {
            command.env(format!("RIALTO_NODE_{}", number + 1), address);
        }
        let process = ChildProcess::start("haproxy", &mut command);
        Self { url: format!("http://{bind}"), _process: Mutex::new(process) }
    }

    /// Waits until it lets somebody through.
    pub(crate) fn wait(&self) {
        until("the proxy has servers", || {
            http::get(&format!("{}/readyz", self.url)).filter(|answer| answer.status == 200)
        });
    }
}

/// An address on loopback that nobody listens at.
pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
