//! Push notification configs of tasks. Only a task's caller sets them, and they end with its access token.

use std::sync::Arc;

use rialto_model::{
    call::Caller,
    failure::Failure,
    ids::{Scope, TaskId},
    push::PushSubscription,
    store::Store,
};

use crate::{store_failure::store_failure, task_service::TaskService, token_validity::TokenChecker};

/// Push notification configs of tasks.
pub struct PushConfigService {
    store: Arc<dyn Store>,
    tasks: Arc<TaskService>,
    tokens: Arc<TokenChecker>,
}

// === impl PushConfigService ===

impl PushConfigService {
    pub(crate) fn new(store: Arc<dyn Store>, tasks: Arc<TaskService>, tokens: Arc<TokenChecker>) -> Self {
        Self { store, tasks, tokens }
    }

    /// Adds or replaces a config.
    pub async fn put(&self, push: &PushSubscription) -> Result<(), Failure> {
        self.store.put_push(push).await.map_err(store_failure)
    }

    /// Lists the configs of a caller's task.
    pub async fn list(&self, caller: &Caller, task: &TaskId) -> Result<Vec<PushSubscription>, Failure> {
        self.tasks.read(caller, task.as_str()).await?;
        let mut pushes = self.store.pushes(task).await.map_err(store_failure)?;
        let tokens = pushes.iter().filter_map(|push| push.created_with.clone()).collect();
        let ended = self.tokens.find_ended(tokens).await?;
        pushes.retain(|push| push.created_with.as_ref().is_none_or(|token| !ended.contains(token)));
        Ok(pushes)
    }

    /// Removes a config. Returns false if there was none.
    pub async fn remove(&self, caller: &Caller, task: &TaskId, id: &str) -> Result<bool, Failure> {
        self.tasks.read(caller, task.as_str()).await?;
        self.store.remove_push(task, id).await.map_err(store_failure)
    }

    /// Removes the configs whose access tokens were revoked or have expired, in whichever process that happened.
    pub async fn remove_ended(&self) -> Result<(), Failure> {
        let store = &self.store;
        let tokens = store.push_tokens().await.map_err(store_failure)?;
        for token in self.tokens.find_ended(tokens).await? {
            let removed = store.remove_pushes_with_token(&token).await.map_err(store_failure)?;
            // Of several processes, the one that removed them says so.
            if removed > 0 {
                tracing::info!(
                    token.id = %token,
                    "{removed} push notification configs removed: token {token} was revoked or has expired"
                );
            }
        }
        Ok(())
    }

    /// Lists the configs of a scope whose delivery was stopped after too many failures, the newest first.
    pub async fn list_dead(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, Failure> {
        self.store.dead_pushes(scope, limit).await.map_err(store_failure)
    }
}
