//! Calls are passed on to nobody.

use async_trait::async_trait;

use super::Nowhere;
use crate::{
    ids::Runner,
    relay::{RelayProgress, RelayStore, RelayedCall},
    store::StoreError,
};

#[async_trait]
impl RelayStore for Nowhere {
    async fn hold_program(&self, _: &str, candidates: &[Runner]) -> Result<Runner, StoreError> {
        Ok(candidates.first().copied().unwrap_or(Runner::NOBODY))
    }

    async fn program_holders(&self) -> Result<Vec<(String, Runner)>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_relayed_call(&self, _: &RelayedCall) -> Result<(), StoreError> {
        Ok(())
    }

    async fn take_relayed_calls(&self, _: Runner) -> Result<Vec<RelayedCall>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_relayed_events(&self, _: &str, _: u64, _: &[String]) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn relay_progress(&self, _: &str, _: u64) -> Result<Option<RelayProgress>, StoreError> {
        Ok(None)
    }

    async fn remove_relayed_call(&self, _: &str) -> Result<Option<bool>, StoreError> {
        Ok(None)
    }
}
