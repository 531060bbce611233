//! Server side that every inbound HTTP protocol shares.
//!
//! A connection is accepted by the [`listener`], served on one of the [`worker_threads`], and each of its requests passes [`admission`]:
//! Host and Origin ([`host_check`]), authentication ([`auth`]) by token or by the cookie of a browser ([`session`]), org and project out of
//! the path, rate limits ([`rate_limits`]), counters ([`request_counters`]). Protocol servers behind it read the body ([`body`]), render
//! failures ([`status`], [`problem`]), send event streams ([`event_stream`]) within a maximum for each caller ([`stream_limits`]), and
//! report guardrail warnings ([`guardrail_header`]). [`public_url`] says how clients reach this server; [`in_process`] calls a router
//! without a connection.

pub mod admission;
pub mod auth;
pub mod body;
pub mod event_stream;
mod guarded_body;
pub mod guardrail_header;
pub mod host_check;
pub mod in_process;
pub mod listener;
pub mod problem;
pub mod public_url;
pub mod rate_limits;
mod rejection;
pub mod request_counters;
pub mod session;
pub mod status;
pub mod stream_limits;
mod tenant_path;
mod token_binding;
pub mod trace;
pub mod worker_threads;
