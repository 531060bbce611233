//! The call pipeline of Rialto: registry, calls, tasks, approvals, dispatch and takeover.
//!
//! Every call takes one path, whichever server it came in by and whichever backend executes it: resolve, authorize, check
//! the arguments, store the task, execute, store each event, publish it. The engine knows no wire format and no
//! database; both are behind traits. Guardrails check requests and responses.
//!
//! [`Engine`] builds the services and hands them out; [`engine`] says which depends on which.

pub mod address;
mod admin_override;
mod admin_record;
pub mod announce_working;
pub mod approvals;
mod authorize;
mod breakers;
mod budget;
mod bus;
mod call_handle;
mod call_run;
mod call_runner;
mod call_service;
pub mod config;
mod conversation;
pub mod diff;
pub mod directory;
pub mod engine;
pub mod guardrails;
mod health;
mod held_writes;
mod hops;
mod instance;
mod journal;
mod lease_keeper;
pub mod limits;
mod message_dedup;
mod node;
pub mod peer;
pub mod peer_by_backing;
mod placed_peer;
mod placement;
mod policies;
mod process_lease;
mod push_configs;
mod recent_messages;
mod redact;
pub mod registry;
mod relayed_call;
mod request;
pub mod routing;
mod running_calls;
pub mod schema;
pub mod search;
mod seeds;
mod seen_messages;
mod session_relay;
mod storage_quota;
mod store_deadline;
mod store_failure;
mod takeover;
mod task_service;
mod task_start;
mod task_subscription;
mod token_validity;
mod usage_sharing;
pub mod visibility;

pub use admin_override::AdminOverride;
pub use admin_record::{AdminRecord, AuditRecorder};
pub use approvals::ApprovalService;
pub use breakers::BreakerStatus;
pub use bus::RecordingHook;
pub use call_handle::{CallHandle, CallUpdate};
pub use call_service::{CallService, CallStart};
pub use config::Config;
pub use conversation::ConversationMessage;
pub use engine::{Engine, EngineDeps, WeakEngine};
pub use guardrails::{GuardrailService, GuardrailSet};
pub use health::Prober;
pub use held_writes::HeldCounts;
pub use instance::Instance;
pub use message_dedup::{MessageDedup, hash_parts, message_hashes};
pub use node::{NodeIdentity, NodeService};
pub use placed_peer::{EngineLink, PlacedDiscovery, PlacedPeer};
pub use policies::{PolicyLoader, PolicyService, StoreSync};
pub use process_lease::ProcessLease;
pub use push_configs::PushConfigService;
pub use redact::{is_redacted, redact};
pub use registry::Registry;
pub use request::CallRequest;
pub use routing::{Assigned, DispatchRequest, DispatchService};
pub use running_calls::RunningCalls;
pub use seeds::SharedSeeds;
pub use session_relay::SessionRelay;
pub use store_deadline::StoreDeadline;
pub use takeover::TakeoverService;
pub use task_service::TaskService;
pub use task_subscription::TaskSubscription;
pub use token_validity::{TokenChecker, TokenValidity};
pub use usage_sharing::UsageSharing;
