//! Marker that tells this installation's own cards from those of others.
//!
//! A server that is registered as an agent of itself would offer its own skills again, and those again with each probe. Its
//! address cannot tell: there are many for one server. So each card that is served carries the installation's id and project in
//! a header, and a card with our own is refused. All processes of one store are one installation.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::{
    credential::Secret,
    ids::Scope,
    store::{Store, StoreError},
};
use tokio::sync::OnceCell;

/// The header that carries the marker.
const INSTANCE: HeaderName = HeaderName::from_static("rialto-instance");

/// Name of the id in the store.
const SEED: &str = "instance";

/// An installation: all processes that share a store. Its id is read when it is first needed.
#[derive(Clone)]
pub struct Instance {
    store: Arc<dyn Store>,
    id: Arc<OnceCell<String>>,
}

// === impl Instance ===

impl Instance {
    /// The installation that keeps its data in `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, id: Arc::default() }
    }

    /// Marks a card of ours, made for a project.
    pub(crate) async fn mark(&self, scope: &Scope, headers: &mut HeaderMap) {
        if let Some(value) = self.marker(scope).await {
            headers.insert(INSTANCE, value);
        }
    }

    /// Whether an answer carries the marker of this installation and project.
    pub(crate) async fn is_own(&self, scope: &Scope, headers: &HeaderMap) -> bool {
        match headers.get(INSTANCE) {
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
        let kept = self.store.seed(SEED, &Secret::from(fresh)).await?;
        Ok(kept.expose().to_owned())
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("id", &self.id.get()).finish_non_exhaustive()
    }
}
