//! Orgs and projects that were created by name.

use async_trait::async_trait;
use rialto_model::{
    ids::Scope,
    store::{CreatedTenant, StoreError, TenantStore},
};

use super::{
    PostgresStore,
    column::{Cells, nanoseconds},
    connection::GenericClient,
    error::PostgresError,
    sql,
};

#[async_trait]
impl TenantStore for PostgresStore {
    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        Ok(all(&self.client().await?).await?)
    }

    async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError> {
        Ok(create(&self.client().await?, tenant).await?)
    }

    async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError> {
        Ok(remove(&self.client().await?, scope).await?)
    }
}

/// All of them, in their order.
pub(super) async fn all(client: &impl GenericClient) -> Result<Vec<CreatedTenant>, PostgresError> {
    let rows = sql::rows(client, "SELECT * FROM tenants ORDER BY org, project", &[]).await?;
    rows.iter().map(|row| tenant(Cells(row))).collect()
}

/// Adds one. Returns whether it is new.
pub(super) async fn create(
    client: &impl GenericClient,
    tenant: &CreatedTenant,
) -> Result<bool, PostgresError> {
    let insert = "
        INSERT INTO tenants (org, project, created_at, created_by) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING";
    let Scope { org, project } = &tenant.scope;
    let at = nanoseconds(tenant.created_at)?;
    let values: [sql::Value<'_>; 4] = [&org.as_str(), &project.as_str(), &at, &tenant.created_by];
    Ok(sql::execute(client, insert, &values).await? == 1)
}

/// Removes one. Returns whether it was there.
pub(super) async fn remove(client: &impl GenericClient, scope: &Scope) -> Result<bool, PostgresError> {
    let delete = "DELETE FROM tenants WHERE org = $1 AND project = $2";
    Ok(sql::execute(client, delete, &[&scope.org.as_str(), &scope.project.as_str()]).await? == 1)
}

fn tenant(row: Cells<'_>) -> Result<CreatedTenant, PostgresError> {
    Ok(CreatedTenant {
        scope: row.scope()?,
        created_at: row.at("created_at")?,
        created_by: row.text("created_by")?,
    })
}
