//! Orgs and projects that were created by name.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{ids::Scope, store::StoreError};

/// An org or project that was created by name. Others exist as well: those of tokens, agents and policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTenant {
    /// The org and project.
    pub scope: Scope,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its creator.
    pub created_by: String,
}

store_trait! {
    /// Orgs and projects that were created by name. Part of every [`Store`](super::Store).
    pub trait TenantStore {
        /// Orgs and projects that were created by name, in their order.
        async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError>;

        /// Adds an org or project. Returns whether it is new.
        async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError>;

        /// Removes an org or project. Returns whether it was there.
        async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError>;
    }
}
