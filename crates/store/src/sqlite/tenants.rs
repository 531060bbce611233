//! Orgs and projects that were created by name.

use async_trait::async_trait;
use rialto_model::{
    ids::Scope,
    store::{CreatedTenant, StoreError, TenantStore},
};
use rusqlite::{Connection, Row, params};

use super::{
    SqliteStore,
    column::{At, scope},
};
use crate::error::SqliteError;

#[async_trait]
impl TenantStore for SqliteStore {
    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        self.read(all).await
    }

    async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.transact(move |transaction| create(transaction, &tenant)).await
    }

    async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError> {
        let scope = scope.clone();
        self.transact(move |transaction| remove(transaction, &scope)).await
    }
}

/// All of them, in their order.
pub(super) fn all(connection: &Connection) -> Result<Vec<CreatedTenant>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM tenants ORDER BY org, project")?;
    let tenants = select.query_map([], tenant)?.collect::<Result<_, _>>()?;
    Ok(tenants)
}

/// Adds one. Returns whether it is new.
pub(super) fn create(connection: &Connection, tenant: &CreatedTenant) -> Result<bool, SqliteError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO tenants (org, project, created_at, created_by) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    let Scope { org, project } = &tenant.scope;
    let values = params![org.as_str(), project.as_str(), At(tenant.created_at), tenant.created_by];
    Ok(insert.execute(values)? == 1)
}

/// Removes one. Returns whether it was there.
pub(super) fn remove(connection: &Connection, scope: &Scope) -> Result<bool, SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM tenants WHERE org = ?1 AND project = ?2")?;
    Ok(delete.execute(params![scope.org.as_str(), scope.project.as_str()])? == 1)
}

fn tenant(row: &Row<'_>) -> rusqlite::Result<CreatedTenant> {
    Ok(CreatedTenant {
        scope: scope(row)?,
        created_at: row.get::<_, At>("created_at")?.0,
        created_by: row.get("created_by")?,
    })
}
