//! Budget of one task: how many bytes and events its agent may send.
//!
//! A task is kept in memory while it runs and in the store afterwards, so what one agent may send into it is bounded. The counters are
//! two integers of the run; sizes are estimated ([`Event::size`]), never serialized.

use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    json::Json,
    task::Task,
};
use serde_json::json;

use crate::config::Config;

/// Bytes and events that one task has received, and how many it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBudget {
    bytes: u64,
    events: u64,
    max_bytes: u64,
    max_events: u64,
}

// === impl TaskBudget ===

impl TaskBudget {
    /// The budget of a task as it stands: what it has received before counts.
    pub(crate) fn new(config: &Config, task: &Task) -> Self {
        Self {
            bytes: count(task.agent_bytes()),
            events: task.head.version,
            max_bytes: config.max_task_bytes,
            max_events: config.max_task_events,
        }
    }

    /// The budget of a task whose agent is asked about it: it may report again what the task holds already.
    pub(crate) const fn fresh(config: &Config) -> Self {
        Self { bytes: 0, events: 0, max_bytes: config.max_task_bytes, max_events: config.max_task_events }
    }

    /// Counts an event; refuses the one that exceeds the budget.
    pub(crate) fn spend(&mut self, event: &Event) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(count(event.size()));
        self.events = self.events.saturating_add(1);
        if self.max_bytes > 0 && self.bytes > self.max_bytes {
            return Err(exceeded("bytes", "max_task_bytes", self.max_bytes));
        }
        if self.max_events > 0 && self.events > self.max_events {
            return Err(exceeded("events", "max_task_events", self.max_events));
        }
        Ok(())
    }
}

fn exceeded(unit: &str, key: &str, max: u64) -> Failure {
    let message = format!(
        "the task was cancelled, because its agent sent more than {max} {unit}, the limit for one task; raise {key} under [calls] in \
         rialto.toml to allow more"
    );
    let data = json!({ "limit": format!("calls.{key}"), "max": max });
    Failure::new(FailureKind::PeerGarbled, message).with_data(Json::encode(&data))
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
