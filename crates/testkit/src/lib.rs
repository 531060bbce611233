//! What the tests of several crates share. Nothing here is part of the product.

pub mod agents;
pub mod faulty_store;
pub mod null_store;
pub mod peer;
#[cfg(unix)]
pub mod pgbouncer;
#[cfg(unix)]
pub mod postgres;
pub mod store_suite;
