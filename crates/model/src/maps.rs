//! Maps for what is looked up on the road of a call.
//!
//! Their keys are ids that we make, or names of agents and skills that are registered here: no caller can choose
//! many of them to make a map slow, and each map has a seed of its own. So they need not pay for a hash that withstands
//! anybody.

use std::collections::HashMap;

/// Hashes quickly, with a seed of its own.
pub type FastHash = foldhash::fast::RandomState;

/// A map whose keys are quickly hashed.
pub type FastMap<K, V> = HashMap<K, V, FastHash>;
