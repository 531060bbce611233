//! The HTTP server against real sockets: small servers on port 0, nothing leaves the machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod callers;
mod connections;
mod fixture;
mod idp;
mod issuers;
mod listener;
mod resource;
mod revocation;
#[expect(dead_code, reason = "the tests of the client use more of it")]
#[path = "../../../http-client/tests/it/server.rs"]
mod server;
mod server_tls;
mod tenant_paths;
mod unread;
