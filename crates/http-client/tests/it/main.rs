//! The outbound client against real sockets: small servers on port 0, nothing leaves the machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod http2;
mod outbound;
mod pool;
mod proxies;
mod rebinding;
mod redirects;
mod server;
mod tls;
