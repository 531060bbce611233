//! Runs workflows so that a crash costs nothing: what has happened is written down before anything follows from it.
//!
//! A run is a task, and each of its steps that calls somebody is another: an ordinary call, in the name of whoever began the run,
//! with everything that calls have. [`plan`] says what may happen next and knows neither clock nor store; [`board`] is how a run
//! stands; [`driver`] makes it go on; [`unit`] does the work of one step; [`Runner`] is how the engine sees all of it.

mod act;
mod answer;
mod board;
mod book;
mod config;
mod driver;
mod peer;
mod plan;
mod reading;
mod render;
mod schedules;
mod tell;
mod unit;

pub use self::{
    book::{Book, BookError, Given},
    config::Config,
    peer::{Ports, Runner},
};
