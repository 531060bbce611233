//! Who is told of a task at an address of theirs. Only the task's caller says so.

use rialto_model::{
    call::Caller,
    failure::Failure,
    ids::{Scope, TaskId},
    push::Push,
};

use crate::engine::{Engine, store_failure};

// === impl Engine ===

impl Engine {
    /// Has somebody told of a task.
    pub async fn put_push(&self, push: &Push) -> Result<(), Failure> {
        self.inner().store.put_push(push).await.map_err(store_failure)
    }

    /// Who is told of a caller's task.
    pub async fn pushes(&self, caller: &Caller, task: &TaskId) -> Result<Vec<Push>, Failure> {
        self.own_task(caller, task.as_str()).await?;
        self.inner().store.pushes(task).await.map_err(store_failure)
    }

    /// Tells somebody no more. Answers whether it was told before.
    pub async fn remove_push(&self, caller: &Caller, task: &TaskId, id: &str) -> Result<bool, Failure> {
        self.own_task(caller, task.as_str()).await?;
        self.inner().store.remove_push(task, id).await.map_err(store_failure)
    }

    /// Those in a scope that were given up, the newest first.
    pub async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<Push>, Failure> {
        self.inner().store.dead_pushes(scope, limit).await.map_err(store_failure)
    }
}
