//! The verbs of Rialto: register an agent, make a call, look at a task, call it off.
//!
//! Every call takes one road, whatever door it came in by and whatever peer executes it: resolve, authorize, check
//! the arguments, write down, execute, write down each event, tell those who listen. The engine knows no wire and no
//! database; both are behind ports. Guardrails look through what is said on the way there and back.

pub mod address;
mod admin_record;
pub mod approving;
mod attendance;
mod breakers;
mod budget;
mod bus;
mod closing;
pub mod config;
mod conversation;
pub mod diff;
pub mod directory;
pub mod engine;
mod following;
pub mod guarding;
mod health;
mod heir;
mod held_writes;
mod hops;
mod journal;
mod lease_keeper;
pub mod limits;
mod message_dedup;
mod node;
pub mod outlook;
pub mod peer;
pub mod peers;
mod permitting;
mod policies;
mod pushing;
mod redact;
pub mod registry;
mod rejoin;
mod request;
pub mod routing;
mod run;
mod running;
pub mod schema;
pub mod search;
mod seen_messages;
mod session_relay;
mod stepping_in;
mod storage_quota;
mod store_deadline;
mod store_failure;
mod task_start;
mod tasks;
mod token_validity;
pub mod working;

pub use admin_record::AdminRecord;
pub use breakers::BreakerStatus;
pub use bus::{Bus, Overheard};
pub use config::Config;
pub use conversation::{Said, Talk};
pub use engine::{Engine, FaintEngine, Parts};
pub use following::Following;
pub use guarding::Guarding;
pub use health::Prober;
pub use held_writes::HeldCounts;
pub use message_dedup::{hash_parts, message_hashes};
pub use node::NodeIdentity;
pub use policies::PolicyLoader;
pub use redact::{is_redacted, redact};
pub use registry::Registry;
pub use request::Request;
pub use routing::{Assigned, DispatchRequest};
pub use running::{Running, Step};
pub use store_deadline::StoreDeadline;
pub use token_validity::TokenValidity;
