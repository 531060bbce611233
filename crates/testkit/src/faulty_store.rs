//! Store whose operations can be made to fail, to hang, or to fail after they were done.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use rialto_model::store::{Layered, Store, StoreError, StoreLayer};
use tokio::sync::watch;

/// Behaviour of the operations that are affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// They work.
    #[default]
    None,
    /// They are not done, and fail.
    Unavailable,
    /// They are done once the fault is over.
    Hangs,
    /// They are done, and fail.
    FailsAfterwards,
    /// They are done, and are not answered before the fault is over.
    HangsAfterwards,
}

/// Switch for the faults of a store.
#[derive(Clone)]
pub struct FaultSwitch(Arc<Shared>);

struct Shared {
    fault: watch::Sender<Fault>,
    /// Operations that are affected; none are all.
    only: Mutex<Vec<&'static str>>,
    faults: AtomicUsize,
}

/// A store with faults.
pub struct FaultyStore {
    store: Arc<dyn Store>,
    switch: FaultSwitch,
}

// === impl FaultyStore ===

impl FaultyStore {
    /// The same store, and the switch for its faults.
    pub fn wrap(store: Arc<dyn Store>) -> (Arc<dyn Store>, FaultSwitch) {
        let shared = Shared {
            fault: watch::Sender::new(Fault::None),
            only: Mutex::default(),
            faults: AtomicUsize::new(0),
        };
        let switch = FaultSwitch(Arc::new(shared));
        (Arc::new(Layered(Self { store, switch: switch.clone() })), switch)
    }
}

impl StoreLayer for FaultyStore {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    async fn wrap<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> Result<T, StoreError> {
        match self.switch.fault_of(operation) {
            Fault::None => work.await,
            Fault::Unavailable => Err(unavailable(operation)),
            Fault::Hangs => {
                self.switch.wait().await;
                work.await
            }
            Fault::FailsAfterwards => {
                work.await?;
                Err(unavailable(operation))
            }
            Fault::HangsAfterwards => {
                let done = work.await;
                self.switch.wait().await;
                done
            }
        }
    }
}

// === impl FaultSwitch ===

impl FaultSwitch {
    /// From now on all operations behave like this.
    pub fn set(&self, fault: Fault) {
        self.set_for(&[], fault);
    }

    /// From now on these operations behave like this, and the others work.
    pub fn set_for(&self, operations: &[&'static str], fault: Fault) {
        *self.0.only.lock() = operations.to_vec();
        self.0.fault.send_replace(fault);
    }

    /// How many operations have met a fault.
    pub fn faults(&self) -> usize {
        self.0.faults.load(Ordering::SeqCst)
    }

    fn fault_of(&self, operation: &str) -> Fault {
        let fault = *self.0.fault.borrow();
        let only = self.0.only.lock();
        if fault == Fault::None || !(only.is_empty() || only.contains(&operation)) {
            return Fault::None;
        }
        self.0.faults.fetch_add(1, Ordering::SeqCst);
        fault
    }

    async fn wait(&self) {
        let mut fault = self.0.fault.subscribe();
        // The sender lives in the switch itself.
        let _ = fault.wait_for(|fault| !matches!(fault, Fault::Hangs | Fault::HangsAfterwards)).await;
    }
}

fn unavailable(operation: &str) -> StoreError {
    StoreError::Unavailable(format!("{operation} fails because a test says so").into())
}
