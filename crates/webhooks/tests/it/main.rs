//! Webhooks against a real receiver on a real socket.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be set up has failed its test")]

mod audit_feed;
mod failures;
mod fixture;
mod receiver;
mod webhooks;
