//! The edge against real sockets: small servers on port 0, nothing leaves the machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod callers;
mod connections;
mod fixture;
mod http2;
mod idp;
mod issuers;
mod listener;
mod outbound;
mod pool;
mod proxies;
mod rebinding;
mod redirects;
mod resource;
mod revocation;
mod server;
mod server_tls;
mod tenant_paths;
mod tls;
mod unread;
