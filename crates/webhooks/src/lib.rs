//! Delivery of audit events after the call: webhooks and live watchers.
//!
//! Nothing here runs in the call pipeline. Events are in the audit trail, in order and numbered; a receiver has a position in it and
//! continues from there in its own time. A slow receiver falls behind, a failing one is retried, and records that it can no longer receive
//! are counted.
//!
//! Each webhook gets events as CloudEvents ([`cloud_event`]), signed by Standard Webhooks ([`signing_key`]), one after the other
//! ([`delivery`]), from one process at a time ([`dispatcher`]). Watchers get records as they are written ([`audit_feed`]).

pub mod audit_feed;
pub mod cloud_event;
pub mod config;
pub mod delivery;
pub mod dispatcher;
pub mod signing_key;

pub use self::config::Config;
