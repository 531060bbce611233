//! Tests of the whole crate through its public face; what concerns one module alone is tested beside it.

mod any;
mod bent;
mod cards;
mod grpc;
mod held;
mod noise;
mod quirks;
mod roundtrip;
mod samples;
mod shapes;
