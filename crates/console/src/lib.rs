//! The console: what a person can see and change here, as pages and as an API for programs.
//!
//! What can be administered is one set of operations ([`admin`]). Each asks for its own permission, so whoever calls it need not:
//! the API ([`api`], `/api/v1`) and the pages ([`pages`], `/factory`) only say how it is asked and shown. What lives in the program and
//! not in the engine (policy files, tokens' randomness, the reading of cards) comes in through one port ([`office`]).
//!
//! Everything that an agent says about itself is hostile: it passes through [`text`] before it is shown, and the templates escape it.

pub mod admin;
pub mod api;
mod assets;
mod changes;
mod chart;
mod console;
mod laid_out;
pub mod office;
mod operation;
mod pages;
mod schema_form;
mod text;

pub use console::{Console, Parts};
