//! A2A on the wire: 1.0, 0.3, 0.2 and 0.1, read and written without loss.
//!
//! Nobody else has all dialects, and every other codec drops members it does not know. This one reads any of the four
//! [`wire::Wire`] shapes into one set of types (A2A 1.0's), keeps payloads as raw JSON and unknown members in `extra`,
//! and writes them back in any shape. What a shape cannot say is dropped or bent as documented where it happens; nothing
//! else is.
//!
//! There is no I/O here, and no input makes it panic: every decoder is fuzzed.
//!
//! * a client: [`rpc::encode`], [`rest::encode`] or [`grpc::encode`] a [`request::Request`], then
//!   [`rpc::decode_response`], [`rest::decode_error`] or [`grpc::Status`], then [`answer`];
//! * a server: [`rpc::decode_request`], [`rest::decode_request`] or [`grpc::decode_request`], then
//!   [`rpc::encode_result`] or [`grpc::encode_answer`] with [`answer`];
//! * both: [`sse`] for streams, [`card`] for discovery, [`error`] for what goes wrong.

pub mod answer;
pub mod card;
mod codec;
pub mod delivery;
pub mod error;
pub mod garbled;
pub mod grpc;
mod members;
mod object;
pub mod request;
pub mod rest;
pub mod rpc;
pub mod sse;
pub mod task;
pub mod wire;

#[cfg(test)]
mod tests;
