//! HTTP at the edge of the process: the server side of every inbound protocol, the one outbound client, and child processes.
//!
//! [`server`] holds what every inbound HTTP protocol shares: listener, TLS, authentication, sessions, tenant paths, limits and problem
//! responses. [`client`] is the only way out over HTTP: it checks every address before it connects and never waits without a deadline.
//! [`process`] starts child processes with as little of our environment as they need. [`secret_templates`] fills in the headers and
//! variables that clients and child processes are given.

pub mod client;
mod pem;
pub mod process;
pub mod secret_templates;
pub mod server;
mod yield_once;

pub use self::{
    client::{address, fetch, proxy},
    server::{
        admission, auth, body, event_stream, guardrail_header, host_check, in_process, listener, problem,
        public_url, rate_limits, request_counters, session, status, stream_limits, trace, worker_threads,
    },
};
