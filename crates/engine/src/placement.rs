//! Placement: the node that runs a program when the configuration says which may, or that only one does at a time.
//!
//! A program is an MCP server over stdio, a function's command or a coding agent. Without a placement each node starts its own copy.

use rialto_model::{
    agent::Agent,
    backing::NodePlacement,
    failure::{Failure, FailureKind},
    ids::{ProcessId, Scope},
    node::NodeStatus,
};

use crate::engine::{Engine, store_failure};

/// Process that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramPlace {
    /// This process, by its number.
    Here(ProcessId),
    /// Another one.
    There(ProcessId),
}

/// Name of a program among the holders in the store.
fn program_key(scope: &Scope, url: &str) -> String {
    format!("{}/{}/{url}", scope.org, scope.project)
}

// === impl Engine ===

impl Engine {
    /// Process that runs a program. One that runs on a single node at a time gets a node if it has none that is at work.
    pub(crate) async fn place_program(
        &self,
        scope: &Scope,
        url: &str,
        placement: &NodePlacement,
    ) -> Result<ProgramPlace, Failure> {
        let (nodes, own) = (self.nodes().await?, self.runner());
        let mut candidates: Vec<&NodeStatus> =
            nodes.iter().filter(|status| status.is_alive && placement.allows(&status.node.name)).collect();
        // New programs are started on nodes that are not drained, and by whichever wants them.
        candidates
            .sort_by_key(|status| (status.drain.is_some(), status.node.runner != own, status.open_tasks));
        let runners: Vec<ProcessId> = candidates.iter().map(|status| status.node.runner).collect();
        let Some(first) = runners.first().copied() else {
            return Err(unplaced(url, placement, &nodes));
        };
        let holder = if placement.singleton {
            let store = &self.inner().store;
            store.hold_program(&program_key(scope, url), &runners).await.map_err(store_failure)?
        } else if runners.contains(&own) {
            own
        } else {
            first
        };
        Ok(if holder == own { ProgramPlace::Here(own) } else { ProgramPlace::There(holder) })
    }

    /// Rows whose programs must not run in this process: they are placed on other nodes, or another node holds them.
    pub async fn programs_elsewhere(&self) -> Result<Vec<std::sync::Arc<Agent>>, Failure> {
        let own = self.runner();
        let mut rows = self.registry().all();
        rows.retain(|row| row.backing.placement().is_some());
        if rows.is_empty() || own == ProcessId::NOBODY {
            return Ok(Vec::new());
        }
        let holders = self.inner().store.program_holders().await.map_err(store_failure)?;
        let name = self.node_name().unwrap_or_default();
        rows.retain(|row| {
            let Some(placement) = row.backing.placement() else { return false };
            let key = program_key(&row.scope, &row.url);
            let is_held_elsewhere =
                || holders.iter().any(|(program, runner)| *program == key && *runner != own);
            !placement.allows(name) || placement.singleton && is_held_elsewhere()
        });
        Ok(rows)
    }
}

/// No node that may run a program is at work.
fn unplaced(url: &str, placement: &NodePlacement, nodes: &[NodeStatus]) -> Failure {
    let state = |name: &String| {
        let known = nodes.iter().find(|status| status.node.name == *name);
        format!("{name} ({})", known.map_or("not there", |status| status.state().as_str()))
    };
    let message = if placement.nodes.is_empty() {
        format!(
            "{url} runs on one node at a time, and no server runs on this store; start one with `rialto serve`"
        )
    } else {
        let names: Vec<String> = placement.nodes.iter().map(state).collect();
        format!(
            "{url} runs on these nodes only: {}; start one of them, or change `nodes` in the configuration",
            names.join(", ")
        )
    };
    Failure::new(FailureKind::Conflict, message)
}

/// A far side's name for a task, with the process that knows it.
pub(crate) fn tag_handle(handle: &str, runner: ProcessId) -> String {
    format!("{handle}@{}", runner.get())
}

/// The name and the process; no process for a name from before the program was placed.
pub(crate) fn untag_handle(handle: &str) -> (&str, Option<ProcessId>) {
    let tagged = handle.rsplit_once('@').and_then(|(name, runner)| Some((name, runner.parse::<u64>().ok()?)));
    tagged.map_or((handle, None), |(name, runner)| (name, Some(ProcessId::from(runner))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_the_process_that_knows_it() {
        let runner = ProcessId::from(42);
        assert_eq!(untag_handle(&tag_handle("ask_1@x", runner)), ("ask_1@x", Some(runner)));
        assert_eq!(untag_handle("ask_1"), ("ask_1", None));
        assert_eq!(untag_handle("ask@desk"), ("ask@desk", None));
    }

    #[test]
    fn a_program_without_a_node_is_refused_with_the_nodes_that_could_run_it() {
        let placement = NodePlacement { nodes: vec!["a".to_owned(), "b".to_owned()], singleton: false };
        let refused = unplaced("mcp:files", &placement, &[]).message;
        assert_eq!(
            refused,
            "mcp:files runs on these nodes only: a (not there), b (not there); start one of them, or change `nodes` in the configuration"
        );
    }
}
