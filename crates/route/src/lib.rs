//! Who should do some work: pure functions from what is known to a choice.
//!
//! Nothing here asks, waits or remembers. [`skills`] says who fits and why, [`choice`] weighs those who do, [`breaker`] says who
//! is left alone for a while, and [`text`] finds texts by their words. The same input gives the same answer, so every decision
//! can be explained, tried out beforehand and simulated.

pub mod breaker;
pub mod choice;
mod modes;
pub mod skills;
pub mod text;
