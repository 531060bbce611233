//! Policies that are read again while others read them too.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::FutureExt;
use parking_lot::Mutex;
use rialto_engine::{Config, Engine, EngineDeps, PolicyLoader, Registry};
use rialto_model::{clock::SystemClock, store::Store};
use rialto_policy::{Policy, PolicySource};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    peer::{ScriptedDiscovery, ScriptedPeer},
};
use tokio::sync::oneshot;

fn engine(loader: PolicyLoader) -> Engine {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
    let (discovery, clock) = (Arc::new(ScriptedDiscovery::default()), Arc::new(SystemClock));
    let registry = Registry::new(store.clone(), discovery, clock.clone(), Config::default());
    Engine::new(EngineDeps {
        store,
        registry: Arc::new(registry),
        peer: ScriptedPeer::echo(),
        policy: Policy::starter().unwrap(),
        policy_loader: Some(loader),
        clock,
        config: Config::default(),
    })
}

#[tokio::test]
async fn what_was_read_earlier_never_takes_the_place_of_what_was_read_later() {
    let (let_go, held) = oneshot::channel::<()>();
    let (held, reads) = (Mutex::new(Some(held)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&reads);
    let engine = engine(Box::new(move || {
        let nth = count.fetch_add(1, Ordering::SeqCst);
        let held = held.lock().take();
        let text = format!(r#"@id("read-{nth}") permit (principal, action, resource);"#);
        async move {
            if let Some(held) = held {
                held.await.unwrap();
            }
            Ok(Policy::parse(&[PolicySource { name: "x.cedar".to_owned(), text, org: None }]))
        }
        .boxed()
    }));
    let reload = || {
        tokio::spawn({
            let engine = engine.clone();
            async move { engine.policies().reload().await.unwrap() }
        })
    };
    let first = reload();
    while reads.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let second = reload();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let_go.send(()).unwrap();
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(engine.policies().active().ids(), ["read-1"]);
}
