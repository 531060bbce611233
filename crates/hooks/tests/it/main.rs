//! Webhooks against a real receiver on a real socket.

#![expect(clippy::unwrap_used, reason = "what cannot be set up has failed its test")]

mod receiver;
mod troubles;
mod webhooks;
mod world;
