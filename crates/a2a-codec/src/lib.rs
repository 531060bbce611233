//! A2A on the wire: 1.0, 0.3, 0.2 and 0.1, read and written without loss.
//!
//! No other codec has all dialects, and every other one drops unknown members. This one decodes any of the four [`wire::Wire`] formats
//! into one set of types (A2A 1.0's), keeps payloads as raw JSON and unknown members in `extra`, and encodes them in any format. Members
//! that a format cannot express are dropped or changed as documented in each codec; nothing else is.
//!
//! There is no I/O here, and no input makes it panic: every decoder is fuzzed.
//!
//! * a client: [`rpc::encode`], [`rest::encode`] or [`grpc::encode`] a [`request::A2aRequest`], then
//!   [`rpc::decode_response`], [`rest::decode_error`] or [`grpc::GrpcStatus`], then [`answer`];
//! * a server: [`rpc::decode_request`], [`rest::decode_request`] or [`grpc::decode_request`], then
//!   [`rpc::encode_result`] or [`grpc::encode_answer`] with [`answer`];
//! * both: [`sse`] for streams, [`card`] for discovery, [`error`] for errors.

pub mod answer;
pub mod card;
mod codec;
pub mod delivery;
pub mod error;
pub mod grpc;
pub mod invalid;
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
