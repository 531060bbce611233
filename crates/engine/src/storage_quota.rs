//! Storage quota of orgs: how many bytes of tasks and audit records each may keep.
//!
//! Nothing is summed up for a call. The store is asked once a minute, and only while a quota is configured; what is written meanwhile by this
//! process is added to that. So the number is an estimate that is at most a minute old where several processes share a store.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use rialto_model::{
    failure::{Failure, FailureKind},
    ids::OrgId,
    json::Json,
    store::{Store, StoreError},
};
use serde_json::json;
use tokio::time::Instant;

use crate::{engine::store_failure, limits};

/// The store is asked again after this.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);

/// Bytes that orgs keep, and how many they may.
#[derive(Default)]
pub(crate) struct StorageQuota {
    /// Whether any org has a quota: looked at for every call.
    is_on: AtomicBool,
    limits: RwLock<StorageLimits>,
    used: Mutex<BTreeMap<OrgId, u64>>,
    refreshed_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Default)]
struct StorageLimits {
    each: u64,
    orgs: BTreeMap<String, u64>,
}

// === impl StorageQuota ===

impl StorageQuota {
    pub(crate) fn new(config: &limits::Config) -> Self {
        let quota = Self::default();
        quota.change(config);
        quota
    }

    /// Allows something else from now on.
    pub(crate) fn change(&self, config: &limits::Config) {
        let own = config.orgs.iter().filter(|(_, quota)| quota.storage_bytes > 0);
        let orgs: BTreeMap<_, _> = own.map(|(org, quota)| (org.clone(), quota.storage_bytes)).collect();
        self.is_on.store(config.org_storage_bytes > 0 || !orgs.is_empty(), Ordering::Relaxed);
        *self.limits.write() = StorageLimits { each: config.org_storage_bytes, orgs };
    }

    /// Refuses a call of an org that keeps more than it may.
    pub(crate) async fn check(&self, store: &Arc<dyn Store>, org: &OrgId) -> Result<(), Failure> {
        if !self.is_on.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (max, key) = self.limits.read().max(org);
        if max == 0 {
            return Ok(());
        }
        self.refresh(store).await?;
        let used = self.used.lock().get(org).copied().unwrap_or(0);
        if used <= max { Ok(()) } else { Err(used_up(org, used, max, &key)) }
    }

    /// Counts what this process writes until the store is asked again.
    pub(crate) fn add(&self, org: &OrgId, bytes: usize) {
        if self.is_on.load(Ordering::Relaxed) {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            let mut used = self.used.lock();
            let count = used.entry(org.clone()).or_insert(0);
            *count = count.saturating_add(bytes);
        }
    }

    async fn refresh(&self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        // One asks, and only the first time do the others wait for it.
        let mut refreshed_at = match self.refreshed_at.try_lock() {
            Ok(refreshed_at) => refreshed_at,
            Err(_) if !self.used.lock().is_empty() => return Ok(()),
            Err(_) => self.refreshed_at.lock().await,
        };
        if refreshed_at.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL) {
            return Ok(());
        }
        let sums = match store.org_bytes().await {
            // What was known a minute ago is a better answer than none.
            Err(StoreError::Unavailable(error)) if !self.used.lock().is_empty() => {
                tracing::warn!("the storage of orgs could not be summed up, the sums before count: {error}");
                return Ok(());
            }
            sums => sums.map_err(store_failure)?,
        };
        *self.used.lock() = sums;
        *refreshed_at = Some(Instant::now());
        Ok(())
    }
}

// === impl StorageLimits ===

impl StorageLimits {
    /// The quota of an org, and the key that sets it.
    fn max(&self, org: &OrgId) -> (u64, String) {
        match self.orgs.get(org.as_str()) {
            Some(max) => (*max, format!("limits.orgs.{org}.max_storage_bytes")),
            None => (self.each, "limits.max_org_storage_bytes".to_owned()),
        }
    }
}

fn used_up(org: &OrgId, used: u64, max: u64, key: &str) -> Failure {
    let message = format!(
        "org {org} keeps {used} bytes of tasks and audit records, and may keep {max}; raise {key} in rialto.toml, or free space by \
         keeping less with keep_tasks_hours and keep_audit_days under [store]"
    );
    Failure::new(FailureKind::Busy, message)
        .with_data(Json::encode(&json!({ "limit": key, "max": max, "used": used })))
}
