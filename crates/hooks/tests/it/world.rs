//! A store with webhooks in it, and couriers that deliver from it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt as _, future::ready};
use jiff::{SignedDuration, Timestamp};
use rialto_edge::client::{self, Client};
use rialto_hooks::{
    Config,
    courier::{Couriers, Parts},
    delivery::Delivery,
    key::Key,
};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase},
    clock::{Clock, SystemClock},
    credential::{Secret, SecretSource},
    ids::OrgId,
    store::Store,
    webhook::{DeliveryState, Webhook},
};
use rialto_store::SqliteStore;
use rialto_testkit::store_suite::{announced, parse_card};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// The machine's clock, set forward.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<SignedDuration>);

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<Ahead>,
    /// How long a receiver may take.
    pub(crate) timeout: Duration,
}

/// Couriers at work.
pub(crate) struct AtWork {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

// === impl Ahead ===

impl Ahead {
    pub(crate) fn set_forward(&self, span: SignedDuration) {
        *self.0.lock().unwrap() += span;
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + *self.0.lock().unwrap()
    }
}

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        Self::with(SqliteStore::in_memory(parse_card).unwrap())
    }

    pub(crate) fn with(store: SqliteStore) -> Self {
        Self { store: Arc::new(store), clock: Arc::default(), timeout: Duration::from_secs(10) }
    }

    /// Adds a webhook that wants everything of the default org.
    pub(crate) async fn hook(&self, id: &str, url: &str) -> Webhook {
        let webhook = Webhook {
            id: id.to_owned(),
            org: OrgId::from("default"),
            url: url.to_owned(),
            phases: AuditPhase::ALL.to_vec(),
            secret: SecretSource::Env("KEY".to_owned()),
            allow_private: true,
            created_at: self.clock.now(),
            standing: DeliveryState::default(),
        };
        self.store.put_webhook(&webhook).await.unwrap();
        webhook
    }

    /// Begins to deliver.
    pub(crate) fn deliver(&self) -> AtWork {
        let (stop, couriers) = (CancellationToken::new(), self.couriers());
        AtWork { task: tokio::spawn(couriers.run(stop.clone())), stop }
    }

    fn couriers(&self) -> Couriers {
        let config = Config { retry_ms: 10, max_retry_ms: 50, ..Config::default() };
        let key = |secret: &SecretSource| {
            let is_known = *secret == SecretSource::Env("KEY".to_owned());
            let key = is_known.then(|| Secret::from(Key::text(&[7; 32])));
            ready(key.ok_or_else(|| "there is no such key".to_owned())).boxed()
        };
        let fetch = Arc::new(Client::new(&client::Config::default()));
        Couriers::new(Parts {
            draining: Arc::default(),
            store: Arc::clone(&self.store),
            delivery: Delivery { fetch, secrets: Arc::new(key), timeout: self.timeout },
            clock: self.clock.clone(),
            config,
            source: "urn:rialto".to_owned(),
        })
    }

    /// Puts so many announcements on record, just now.
    pub(crate) async fn announce(&self, count: usize) {
        let event = announced(AuditPhase::PreVerb, "default", "task_1");
        self.record(vec![AuditEvent { emitted_at: self.clock.now(), ..event }; count]).await;
    }

    pub(crate) async fn record(&self, events: Vec<AuditEvent>) {
        self.store.audit(events).await.unwrap();
    }

    /// Waits until a webhook stands like this.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&DeliveryState) -> bool) -> DeliveryState {
        let look = async {
            loop {
                let hooks = self.store.webhooks().await.unwrap();
                let standing = hooks.into_iter().find(|hook| hook.id == id).unwrap().standing;
                if is_so(&standing) {
                    return standing;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(look).await
    }
}

// === impl AtWork ===

impl AtWork {
    /// Lets them finish.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.task).await.unwrap();
    }

    /// Ends them where they stand, as the death of their process would.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// Waits, but not for ever.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.unwrap()
}
