//! Codec of each object on each wire: one file per object, decoder and encoder side by side.

pub(crate) mod artifact;
pub(crate) mod event;
pub(crate) mod message;
pub(crate) mod params;
pub(crate) mod part;
pub(crate) mod push;
pub(crate) mod send;
pub(crate) mod task;
