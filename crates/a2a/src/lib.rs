//! A2A client and server: agents found by their cards and called in their dialect, and every skill served to A2A clients.
//!
//! [`backend::A2aBackend`] is the backend that calls agents of any generation and converts their events to the model; [`discover::Discoverer`]
//! fetches cards. Both reach the network only through an injected [`rialto_http_client::fetch::Fetch`]. [`tool::SkillTool`] is one skill as a
//! library function.
//!
//! [`server::A2aServer`] is the server: everything that can be called here, as an A2A agent of every generation.

mod agent_link;
mod arguments;
pub mod backend;
mod client;
pub mod credential;
pub mod discover;
mod early_end;
mod endpoints;
mod error;
mod event_mapper;
mod exchange;
mod extended_card;
mod extension;
mod grpc;
pub mod instance;
mod retry;
mod retry_after;
pub mod server;
mod slots;
mod stream;
pub mod tool;
