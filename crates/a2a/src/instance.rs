//! Marker in the cards of this installation, which distinguishes them from those of others.
//!
//! A server that is registered as an agent of itself would offer its own skills again, and those again with each probe. Its URL does not
//! identify it: one server has many. So each served card carries the installation's id and project in a header, and a card with the own
//! marker is rejected. All processes of one store are one installation.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::{
    credential::Secret,
    ids::Scope,
    store::{Store, StoreError},
};
use tokio::sync::OnceCell;

/// Header with the marker.
const INSTANCE_HEADER: HeaderName = HeaderName::from_static("rialto-instance");

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

    /// Marks a card of this installation, made for a project.
    pub(crate) async fn mark(&self, scope: &Scope, headers: &mut HeaderMap) {
        if let Some(value) = self.marker(scope).await {
            headers.insert(INSTANCE_HEADER, value);
        }
    }

    /// True when a response has the marker of this installation and project.
    pub(crate) async fn is_own(&self, scope: &Scope, headers: &HeaderMap) -> bool {
        match headers.get(INSTANCE_HEADER) {
            Some(found) => self.marker(scope).await.is_some_and(|own| own == found),
            None => false,
        }
    }

    /// None while the store cannot be read.
    async fn marker(&self, scope: &Scope) -> Option<HeaderValue> {
        let id = self.id.get_or_try_init(|| self.read_id()).await.ok()?;
        HeaderValue::try_from(format!("{id}/{}/{}", scope.org, scope.project)).ok()
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
