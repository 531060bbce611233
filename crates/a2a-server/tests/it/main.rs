//! The A2A server as its clients see it: raw requests into the router, in every dialect and binding.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

mod dialects;
mod extensions;
mod house;
mod pushes;
mod refusals;
mod repeats;
mod rules;
mod seed;
mod streams;
mod tasks;
