//! Administration console: one set of operations, as pages for people and as an API for programs.
//!
//! Each operation ([`admin`]) checks its own permission; the API ([`api`], `/api/v1`) and the pages (`pages`, `/factory`) parse requests
//! and render results. What needs the program (policy files, new tokens, parsing of cards) comes in through one port ([`host`]).
//!
//! Text from agents is untrusted: it passes through `text` before it is shown, and the templates escape it.

pub mod admin;
pub mod api;
mod assets;
mod change_feed;
mod chart;
mod console;
pub mod host;
mod operation;
mod pages;
mod pretty_json;
mod schema_form;
mod text;

pub use console::{Console, ConsoleDeps};
