//! Agent selection as pure functions.
//!
//! Nothing here does I/O or keeps state. [`skill_index`] finds agents that match and says why, [`scoring`] scores them, [`breaker`] is the
//! circuit breaker of an agent, and [`text_index`] searches skills by their words. The same input gives the same result, so every decision
//! can be explained, tried out beforehand and simulated.

pub mod breaker;
mod media_types;
pub mod scoring;
pub mod skill_index;
pub mod text_index;
