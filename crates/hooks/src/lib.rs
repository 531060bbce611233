//! Those who hear of calls after they happened: webhooks, and whoever watches.
//!
//! Nobody here stands on the road of a call. What happened is in the audit trail, in order and numbered; a listener is a
//! place in it and goes on from there in its own time. One that is slow is behind, one that fails is tried again, and
//! what it can never be told any more is counted.
//!
//! Webhooks get each event as a CloudEvent ([`cloud`]), signed like Standard Webhooks wants it ([`key`]), one after the
//! other ([`delivery`]), by one process at a time ([`courier`]). Whoever watches gets records as they come ([`live`]).

pub mod cloud;
pub mod config;
pub mod courier;
pub mod delivery;
pub mod key;
pub mod live;

pub use self::config::Config;
