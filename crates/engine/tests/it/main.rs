//! The road of a call, with scripted peers and a real store in memory.

mod calls;
mod registry;
mod world;
