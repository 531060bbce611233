//! What the tests of several crates share. Nothing here is part of the product.

pub mod agents;
pub mod peer;
pub mod store_suite;
