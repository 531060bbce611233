//! Store with webhooks, and dispatchers that deliver from it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt as _, future::ready};
use jiff::{SignedDuration, Timestamp};
use rialto_http_client::{self as client, HttpClient};
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
use rialto_webhooks::{
    Config,
    delivery::Delivery,
    dispatcher::{DispatcherDeps, WebhookDispatcher},
    signing_key::SigningKey,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Timeout of tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// System clock, shifted forward.
#[derive(Default)]
pub(crate) struct ShiftedClock(Mutex<SignedDuration>);

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ShiftedClock>,
    /// Timeout of a delivery.
    pub(crate) timeout: Duration,
}

/// Running dispatcher.
pub(crate) struct RunningDispatcher {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

// === impl ShiftedClock ===

impl ShiftedClock {
    pub(crate) fn set_forward(&self, span: SignedDuration) {
        *self.0.lock().unwrap() += span;
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + *self.0.lock().unwrap()
    }
}

// === impl Fixture ===

impl Fixture {
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

    /// Starts a dispatcher.
    pub(crate) fn start(&self) -> RunningDispatcher {
        let (stop, dispatcher) = (CancellationToken::new(), self.dispatcher());
        RunningDispatcher { task: tokio::spawn(dispatcher.run(stop.clone())), stop }
    }

    fn dispatcher(&self) -> WebhookDispatcher {
        let config = Config { retry_ms: 10, max_retry_ms: 50, ..Config::default() };
        let key = |secret: &SecretSource| {
            let is_known = *secret == SecretSource::Env("KEY".to_owned());
            let key = is_known.then(|| Secret::from(SigningKey::encode(&[7; 32])));
            ready(key.ok_or_else(|| "there is no such key".to_owned())).boxed()
        };
        let fetch = Arc::new(HttpClient::new(&client::Config::default()));
        WebhookDispatcher::new(DispatcherDeps {
            draining: Arc::default(),
            store: Arc::clone(&self.store),
            delivery: Delivery { fetch, secrets: Arc::new(key), timeout: self.timeout },
            clock: self.clock.clone(),
            config,
            source: "urn:rialto".to_owned(),
        })
    }

    /// Writes this number of records.
    pub(crate) async fn announce(&self, count: usize) {
        let event = announced(AuditPhase::PreVerb, "default", "task_1");
        self.record(vec![AuditEvent { emitted_at: self.clock.now(), ..event }; count]).await;
    }

    pub(crate) async fn record(&self, events: Vec<AuditEvent>) {
        self.store.audit(events).await.unwrap();
    }

    /// Waits until the state of a webhook matches.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&DeliveryState) -> bool) -> DeliveryState {
        let poll = async {
            loop {
                let hooks = self.store.webhooks().await.unwrap();
                let standing = hooks.into_iter().find(|hook| hook.id == id).unwrap().standing;
                if is_so(&standing) {
                    return standing;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(poll).await
    }
}

// === impl RunningDispatcher ===

impl RunningDispatcher {
    /// Stops the dispatcher and waits for it.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.task).await.unwrap();
    }

    /// Aborts the dispatcher, as the death of its process would.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// Waits with a timeout.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, what).await.unwrap()
}
