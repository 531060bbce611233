//! A2A agents as peers: found by their cards, called in the dialect they speak.
//!
//! [`peer::A2aPeer`] sends a call to an agent of any generation and tells what becomes of it in the model's words;
//! [`discover::Discoverer`] fetches cards. Both reach the network only through an injected
//! [`rialto_edge::fetch::Fetch`]. [`tool::SkillTool`] is one skill as a library function.
//!
//! [`door::Door`] is the other direction: everything that can be called here, as an A2A agent of every generation.

mod arguments;
pub mod credential;
pub mod discover;
pub mod door;
mod early_end;
mod exchange;
mod extended_card;
mod extension;
mod grpc;
pub mod instance;
mod line;
pub mod peer;
mod post;
mod retry;
mod retry_after;
mod route;
mod slots;
mod stream;
mod teller;
pub mod tool;
mod trouble;
