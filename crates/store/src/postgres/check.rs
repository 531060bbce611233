//! Check of what is stored in PostgreSQL: references, every row that can be read, and audit seals. Pages are the server's own business.

use rialto_model::store::{
    AgentStore, AuditStore, ChainVerification, PolicySourceStore, SecretStore, StoreError, TenantStore,
    TokenStore, WebhookStore,
};

use super::{PostgresStore, column::Cells, connection::GenericClient, error::PostgresError, sql};
use crate::check::CheckReport;

/// Rows that refer to nothing: the check, a statement that counts them, and what they are.
const ORPHANS: [(&str, &str, &str); 3] = [
    (
        "events",
        "SELECT count(*) AS found FROM task_events WHERE NOT EXISTS (SELECT FROM tasks WHERE tasks.id = task_events.task)",
        "batches of events belong to no task",
    ),
    (
        "pushes",
        "SELECT count(*) AS found FROM push_configs WHERE NOT EXISTS (SELECT FROM tasks WHERE tasks.id = push_configs.task)",
        "push notification configurations belong to no task",
    ),
    (
        "events",
        "SELECT count(*) AS found FROM tasks WHERE version <> coalesce(
             (SELECT sum(json_array_length(events::json)) FROM task_events WHERE task_events.task = tasks.id), 0)",
        "tasks have more or fewer events than they should",
    ),
];

// === impl PostgresStore ===

impl PostgresStore {
    /// Checks everything that is stored, and says on the way what it is at.
    pub async fn check(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        let client = self.client().await?;
        progress("references and rows");
        let tasks = sql::row(&client, "SELECT count(*) AS found FROM tasks", &[]).await?;
        report.tasks = Cells(&tasks).number("found").map_err(StoreError::from)?;
        for (check, count, what) in ORPHANS {
            // A row that is not JSON ends the statement with an error.
            match counted(&client, count).await {
                Ok(found) => report.add_orphans(check, found, what),
                Err(failure) => report.add(check, StoreError::from(failure)),
            }
        }
        drop(client);
        let tables = [
            ("agents", self.agents().await.map(drop)),
            ("tokens", self.tokens().await.map(drop)),
            ("secrets", self.secrets().await.map(drop)),
            ("policies", self.policies().await.map(drop)),
            ("webhooks", self.webhooks().await.map(drop)),
            ("tenants", self.tenants().await.map(drop)),
        ];
        for (check, outcome) in tables {
            if let Err(error) = outcome {
                report.add(check, error);
            }
        }
        progress("audit seals");
        match self.verify_audit().await? {
            ChainVerification::Sound { records, .. } => report.audit_records = records,
            ChainVerification::Broken { record, why } => {
                report.add("audit", format!("record {record} is not as it was written: {why}"));
            }
        }
        Ok(report)
    }
}

async fn counted(client: &impl GenericClient, count: &str) -> Result<u64, PostgresError> {
    Cells(&sql::row(client, count, &[]).await?).number("found")
}
