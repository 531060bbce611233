//! How each object is spelt on each wire: one file per object, its reader and its writer side by side.

pub(crate) mod artifact;
pub(crate) mod event;
pub(crate) mod message;
pub(crate) mod params;
pub(crate) mod part;
pub(crate) mod push;
pub(crate) mod send;
pub(crate) mod task;
