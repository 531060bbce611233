//! Who is told of a task at an address of theirs. Only the task's caller says so, and its access token ends it.

use rialto_model::{
    call::Caller,
    failure::Failure,
    ids::{Scope, TaskId},
    push::PushSubscription,
};

use crate::engine::{Engine, store_failure};

// === impl Engine ===

impl Engine {
    /// Has somebody told of a task.
    pub async fn put_push(&self, push: &PushSubscription) -> Result<(), Failure> {
        self.inner().store.put_push(push).await.map_err(store_failure)
    }

    /// Who is told of a caller's task.
    pub async fn pushes(&self, caller: &Caller, task: &TaskId) -> Result<Vec<PushSubscription>, Failure> {
        self.own_task(caller, task.as_str()).await?;
        let mut pushes = self.inner().store.pushes(task).await.map_err(store_failure)?;
        let tokens = pushes.iter().filter_map(|push| push.created_with.clone()).collect();
        let ended = self.ended_tokens(tokens).await?;
        pushes.retain(|push| push.created_with.as_ref().is_none_or(|token| !ended.contains(token)));
        Ok(pushes)
    }

    /// Tells somebody no more. Answers whether it was told before.
    pub async fn remove_push(&self, caller: &Caller, task: &TaskId, id: &str) -> Result<bool, Failure> {
        self.own_task(caller, task.as_str()).await?;
        self.inner().store.remove_push(task, id).await.map_err(store_failure)
    }

    /// Removes the push notification configs whose access tokens were revoked or have expired, in whichever process that happened.
    pub async fn remove_ended_pushes(&self) -> Result<(), Failure> {
        let store = &self.inner().store;
        let tokens = store.push_tokens().await.map_err(store_failure)?;
        for token in self.ended_tokens(tokens).await? {
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

    /// Those in a scope that were given up, the newest first.
    pub async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, Failure> {
        self.inner().store.dead_pushes(scope, limit).await.map_err(store_failure)
    }
}
