//! Marker of this installation, which distinguishes its cards from those of others.
//!
//! A server that is registered as an agent of itself would offer its own skills again, and those again with each probe. Its URL does not
//! identify it: one server has many. So each served card carries the installation's id and project, and a card with the own marker is
//! rejected. All processes of one store are one installation.

use std::{fmt, sync::Arc};

use rialto_model::{
    credential::Secret,
    ids::Scope,
    store::{Store, StoreError},
};
use tokio::sync::OnceCell;

/// Name of the id in the store.
const SEED_NAME: &str = "instance";

/// Installation: all processes that share a store. Its id is read on first use.
#[derive(Clone)]
pub struct Instance {
    store: Arc<dyn Store>,
    id: Arc<OnceCell<String>>,
}

// === impl Instance ===

impl Instance {
    /// Installation that uses `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, id: Arc::default() }
    }

    /// Marker of cards that this installation makes for a project. None while the store cannot be read.
    pub async fn marker(&self, scope: &Scope) -> Option<String> {
        let id = self.id.get_or_try_init(|| self.read_id()).await.ok()?;
        Some(format!("{id}/{}/{}", scope.org, scope.project))
    }

    async fn read_id(&self) -> Result<String, StoreError> {
        let fresh = format!("{:032x}", rand::random::<u128>());
        let kept = self.store.seed(SEED_NAME, &Secret::from(fresh)).await?;
        Ok(kept.expose().to_owned())
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("id", &self.id.get()).finish_non_exhaustive()
    }
}
