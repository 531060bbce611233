//! Whether this server should be sent calls.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rialto_engine::Engine;
use rialto_model::{ids::AgentId, store::Store};

use crate::tools::FirstLists;

/// A store that takes longer to answer than this does not.
const PATIENCE: Duration = Duration::from_secs(2);

/// The address of the store is nothing for everybody, so the log and the doctor have the rest.
const STORE_IS_SILENT: &str = "the store does not answer: see that its disk has room, or that the database server that \
                               [store] url names runs; `rialto doctor` and the server's log say more";

/// Looks after what calls need.
#[derive(Clone)]
pub(crate) struct Readiness {
    engine: Engine,
    store: Arc<dyn Store>,
    draining: Arc<AtomicBool>,
    first_lists: FirstLists,
}

/// Something that keeps a server from being ready. Any client may read it, so beside names of configured MCP servers it holds no detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) check: &'static str,
    pub(crate) message: Cow<'static, str>,
}

// === impl Readiness ===

impl Readiness {
    /// `draining` becomes true when the server is told to stop.
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn Store>,
        draining: Arc<AtomicBool>,
        first_lists: FirstLists,
    ) -> Self {
        Self { engine, store, draining, first_lists }
    }

    /// What is lacking; nothing if all is well.
    pub(crate) async fn lacks(&self) -> Vec<Lack> {
        let mut lacks = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            let message = "this server is stopping; calls under way are brought to their end";
            lacks.push(Lack { check: "draining", message: message.into() });
        }
        if self.engine.nodes().is_draining() {
            let message = "this node is drained: requests are still served, and load balancers are to send new ones elsewhere; \
                           `rialto nodes drain NAME --undo` undoes it";
            lacks.push(Lack { check: "draining", message: message.into() });
        }
        // Any question will do; this one is answered from an index, and by no agent.
        let (nobody, ask) = (AgentId::from("readyz"), &self.store);
        let answered = tokio::time::timeout(PATIENCE, ask.probes(&nobody, 1)).await;
        if let Some(problem) = self.store.problem().await {
            lacks.push(Lack { check: "store", message: problem.message().into() });
        } else if !matches!(answered, Ok(Ok(_))) {
            lacks.push(Lack { check: "store", message: STORE_IS_SILENT.into() });
        }
        if !self.engine.policies().is_up_to_date() {
            let message = "the policies were changed and are not valid, the ones before are in force; \
                           `rialto policy check` says why";
            lacks.push(Lack { check: "policies", message: message.into() });
        }
        let servers = self.first_lists.waiting_for();
        if !servers.is_empty() {
            let message = format!("waiting for the first tool list of MCP servers: {}", servers.join(", "));
            lacks.push(Lack { check: "mcp-servers", message: message.into() });
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use rialto_store::SqliteStore;

    use super::*;
    use crate::{
        config::Config,
        environment::Environment,
        program::{Place, Program},
    };

    #[tokio::test]
    async fn a_server_whose_store_does_not_answer_or_that_is_stopping_is_not_ready() {
        let program =
            Program::open(Config::default(), Place::Memory, None, &Environment::default()).await.unwrap();
        let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
        let draining = Arc::<AtomicBool>::default();
        let readiness = Readiness::new(
            program.engine.clone(),
            store.clone(),
            Arc::clone(&draining),
            FirstLists::default(),
        );
        assert_eq!(readiness.lacks().await, []);
        store.close().await;
        draining.store(true, Ordering::Relaxed);
        let lacks: Vec<_> = readiness.lacks().await.iter().map(|lack| lack.check).collect();
        assert_eq!(lacks, ["draining", "store"]);
    }
}
