//! What was shown before, kept for the next call.
//!
//! The common case is one load of a pointer. Whoever finds nothing, or something old, makes it anew while the others
//! wait: a token is asked for once, however many calls need it.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use parking_lot::RwLock;
use rialto_model::{call::CallerId, credential::Source};
use tokio::{sync::Mutex, time::Instant};

use super::Shown;

/// How long a secret counts that somebody may replace meanwhile.
const A_WHILE: Duration = Duration::from_secs(5);

/// How long one that cannot change counts.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// So many callers' own are kept.
const MANY: usize = 10_000;

/// What one agent is shown.
#[derive(Default)]
pub(crate) struct Kept {
    /// For everybody.
    common: ArcSwapOption<Shown>,
    /// For callers that have their own.
    personal: RwLock<HashMap<CallerId, Arc<Shown>>>,
    making: Mutex<()>,
}

/// How long what was read from `source` counts.
pub(super) const fn span(source: &Source) -> Duration {
    match source {
        Source::Env(_) | Source::Held(_) => LONG,
        Source::File(_) | Source::Store(_) => A_WHILE,
    }
}

// === impl Kept ===

impl Kept {
    /// What is kept for `caller`, or for everybody; made by `make` when there is nothing good.
    pub(crate) async fn get<F>(
        &self,
        caller: Option<&CallerId>,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Shown>, String>
    where
        F: Future<Output = Result<Shown, String>>,
    {
        if let Some(shown) = self.find(caller) {
            return Ok(shown);
        }
        let _making = self.making.lock().await;
        if let Some(shown) = self.find(caller) {
            return Ok(shown);
        }
        let shown = Arc::new(make().await?);
        self.put(caller, &shown);
        Ok(shown)
    }

    /// Forgets `old`, unless it was replaced already.
    pub(crate) fn forget(&self, caller: Option<&CallerId>, old: &Arc<Shown>) {
        match caller {
            None => {
                let current = self.common.load();
                if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, old)) {
                    self.common.compare_and_swap(&*current, None);
                }
            }
            Some(caller) => {
                let mut personal = self.personal.write();
                if personal.get(caller).is_some_and(|current| Arc::ptr_eq(current, old)) {
                    personal.remove(caller);
                }
            }
        }
    }

    fn find(&self, caller: Option<&CallerId>) -> Option<Arc<Shown>> {
        let found = match caller {
            None => self.common.load_full(),
            Some(caller) => self.personal.read().get(caller).cloned(),
        };
        found.filter(|shown| Instant::now() < shown.until)
    }

    fn put(&self, caller: Option<&CallerId>, shown: &Arc<Shown>) {
        let Some(caller) = caller else { return self.common.store(Some(Arc::clone(shown))) };
        let mut personal = self.personal.write();
        if personal.len() >= MANY {
            let now = Instant::now();
            personal.retain(|_, shown| now < shown.until);
            if personal.len() >= MANY {
                personal.clear();
            }
        }
        personal.insert(caller.clone(), Arc::clone(shown));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rialto_model::credential::{Scheme, Secret};

    use super::*;

    fn shown(text: &str, span: Duration) -> Result<Shown, String> {
        Shown::new(&Scheme::Bearer, &Secret::from(text), Instant::now() + span)
    }

    #[tokio::test]
    async fn many_who_need_it_at_once_have_it_made_once() {
        let (kept, made) = (Kept::default(), AtomicUsize::new(0));
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            shown("a", LONG)
        };
        let got = futures::future::join_all((0..50).map(|_| kept.get(None, make))).await;
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_made_anew() {
        let kept = Kept::default();
        let first = kept.get(None, || async { shown("a", A_WHILE) }).await.unwrap();
        let again = kept.get(None, || async { shown("b", A_WHILE) }).await.unwrap();
        assert!(again.is_same(&first));
        tokio::time::advance(A_WHILE).await;
        assert!(!kept.get(None, || async { shown("b", A_WHILE) }).await.unwrap().is_same(&first));
    }

    #[tokio::test]
    async fn callers_do_not_get_what_is_kept_for_others() {
        let kept = Kept::default();
        let (ann, bob) = (CallerId::from("ann"), CallerId::from("bob"));
        let of_ann = kept.get(Some(&ann), || async { shown("a", LONG) }).await.unwrap();
        assert!(!kept.get(Some(&bob), || async { shown("b", LONG) }).await.unwrap().is_same(&of_ann));
        assert!(!kept.get(None, || async { shown("c", LONG) }).await.unwrap().is_same(&of_ann));
        kept.forget(Some(&ann), &of_ann);
        assert!(!kept.get(Some(&ann), || async { shown("d", LONG) }).await.unwrap().is_same(&of_ann));
    }

    #[tokio::test]
    async fn what_failed_is_not_kept() {
        let kept = Kept::default();
        assert!(kept.get(None, || async { Err("no".to_owned()) }).await.is_err());
        assert!(kept.get(None, || async { shown("a", LONG) }).await.is_ok());
    }
}
