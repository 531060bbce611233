//! What every HTTP door and every outbound call share.
//!
//! Outbound there is one client ([`client::Client`]), and it is the only way out: it looks at every address a name
//! resolves to before it connects ([`address`]), goes through proxies ([`proxy`]), keeps connections warm, and never waits without a deadline. Whoever
//! needs it asks for an `Arc<dyn Fetch>` ([`fetch`]), so a test can answer in its place. Programs that do somebody's work are
//! started by one [`process::Launcher`], and get no more of our environment than they need; what they and addresses are
//! shown is put together in [`settings`].
//!
//! Inbound there are the checks that come before any protocol: whether the request was meant for us at all ([`guard`])
//! and who calls ([`auth`]), both made at one [`gate`], which counts what it sees ([`tally`])
//! and lets nobody have more than their share ([`limits`]); browsers, which come with a cookie ([`session`]); what strangers are
//! told about the way in ([`site`]); how trouble is numbered ([`status`]) and told ([`problem`]), and how an answer warns
//! ([`warning`]); how a stream of events is sent ([`event_stream`]); how a listener starts and stops, what connections it takes and how they are encrypted ([`serve`]), on which threads ([`lanes`]), and how a
//! door is asked without one ([`inside`]); how many streams a caller keeps open ([`streams`]).

pub mod address;
pub mod auth;
pub mod body;
pub mod client;
mod connect;
pub mod event_stream;
pub mod fetch;
pub mod gate;
pub mod guard;
mod guarded_body;
mod gunzip;
pub mod inside;
pub mod lanes;
pub mod limits;
mod local_fault;
mod place;
pub mod problem;
pub mod process;
pub mod proxy;
mod refusal;
mod revocable;
mod rules;
pub mod serve;
pub mod session;
pub mod settings;
pub mod site;
pub mod status;
pub mod streams;
pub mod tally;
mod tls;
pub mod trace;
pub mod warning;
