//! Durable execution of workflows: every event is stored before anything follows from it.
//!
//! A run is a task, and each step that makes a call is another: an ordinary call in the name of the run's caller. [`ready_nodes`]
//! decides which nodes may start and knows neither clock nor store; [`execution_state`] is the state of a run; [`driver`] advances
//! it; [`step_runner`] executes one step; [`WorkflowRunner`] is the backend that the engine uses.

mod answer;
mod config;
mod definition_parser;
mod definitions;
mod driver;
mod execution_state;
mod output;
mod ready_nodes;
mod run_events;
mod runner;
mod schedules;
mod step_action;
mod step_runner;

pub use self::{
    config::Config,
    definitions::{DefinitionError, NewDefinition, WorkflowDefinitions},
    runner::{RunnerDeps, WorkflowRunner},
};
