//! What was shown before, kept for the next call.
//!
//! The common case is one load of a pointer. Whoever finds nothing, or something old, makes it anew while the others who
//! want the same wait: a token is asked for once, however many calls need it, and so is one that is refused.

use std::{
    collections::HashMap,
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, RwLock};
use rialto_model::{
    call::{Caller, CallerId},
    credential::{Proof, Source},
};
use tokio::time::Instant;

use super::Shown;

/// How long one that cannot change counts.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// So many callers' own are kept.
const MANY: usize = 10_000;

/// A caller, and a hash of the token it came with, if that matters.
type Key = (CallerId, u64);

/// Whom something is shown for.
pub(crate) struct Who {
    key: Key,
    pub(crate) proof: Option<Proof>,
}

/// Where those wait who want the same; it holds why it could not be made, once that is known.
type Gate = tokio::sync::Mutex<Option<String>>;

/// What one agent is shown.
#[derive(Default)]
pub(crate) struct Kept {
    /// For everybody.
    common: ArcSwapOption<Shown>,
    /// For callers that have their own.
    personal: RwLock<HashMap<Key, Arc<Shown>>>,
    /// Keyed anew in each process: what is kept for a token is found by it, and the token need not be.
    hasher: RandomState,
    making: Mutex<HashMap<Option<Key>, Arc<Gate>>>,
}

/// How long what was read from `source` counts.
pub(super) const fn span(source: &Source) -> Duration {
    match source {
        Source::Env(_) | Source::Held(_) => LONG,
        // It may be replaced at any time, and the next call goes out with the new one.
        Source::File(_) | Source::Store(_) => Duration::ZERO,
    }
}

// === impl Who ===

impl Who {
    pub(crate) const fn id(&self) -> &CallerId {
        &self.key.0
    }
}

// === impl Kept ===

impl Kept {
    /// The caller as far as it matters to what an agent is shown: the token it came with only `with_proof`.
    pub(crate) fn who(&self, caller: &Caller, with_proof: bool) -> Who {
        let proof = caller.proof.clone().filter(|_| with_proof);
        let hash = proof.as_ref().map_or(0, |proof| self.hasher.hash_one(proof.expose()));
        Who { key: (caller.id.clone(), hash), proof }
    }

    /// What is kept for `who`, or for everybody; made by `make` when there is nothing good.
    pub(crate) async fn get<F>(
        &self,
        who: Option<&Who>,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Shown>, String>
    where
        F: Future<Output = Result<Shown, String>>,
    {
        let since = Instant::now();
        if let Some(shown) = self.find(who, since) {
            return Ok(shown);
        }
        let key = who.map(|who| who.key.clone());
        let gate = self.gate(key.clone());
        let mut refusal = gate.lock().await;
        if let Some(shown) = self.find(who, since) {
            return Ok(shown);
        }
        if let Some(why) = &*refusal {
            return Err(why.clone());
        }
        let made = make().await.map(Arc::new);
        match &made {
            Ok(shown) => self.put(who, shown),
            // Those who wait already need not ask again; whoever comes later may.
            Err(why) => *refusal = Some(why.clone()),
        }
        self.making.lock().remove(&key);
        made
    }

    fn gate(&self, key: Option<Key>) -> Arc<Gate> {
        let mut making = self.making.lock();
        if making.len() >= MANY {
            // Left behind by calls that were given up.
            making.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        Arc::clone(making.entry(key).or_default())
    }

    /// Forgets `old`, unless it was replaced already.
    pub(crate) fn forget(&self, who: Option<&Who>, old: &Arc<Shown>) {
        match who {
            None => {
                let current = self.common.load();
                if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, old)) {
                    self.common.compare_and_swap(&*current, None);
                }
            }
            Some(who) => {
                let mut personal = self.personal.write();
                if personal.get(&who.key).is_some_and(|current| Arc::ptr_eq(current, old)) {
                    personal.remove(&who.key);
                }
            }
        }
    }

    /// A login that has not expired, or that was made while the caller waited for it.
    fn find(&self, who: Option<&Who>, since: Instant) -> Option<Arc<Shown>> {
        let found = match who {
            None => self.common.load_full(),
            Some(who) => self.personal.read().get(&who.key).cloned(),
        };
        found.filter(|shown| since < shown.until || since < shown.made)
    }

    fn put(&self, who: Option<&Who>, shown: &Arc<Shown>) {
        let Some(who) = who else { return self.common.store(Some(Arc::clone(shown))) };
        let mut personal = self.personal.write();
        if personal.len() >= MANY {
            let now = Instant::now();
            personal.retain(|_, shown| now < shown.until);
            if personal.len() >= MANY {
                personal.clear();
            }
        }
        personal.insert(who.key.clone(), Arc::clone(shown));
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
        let (kept, span) = (Kept::default(), Duration::from_secs(5));
        let first = kept.get(None, || async { shown("a", span) }).await.unwrap();
        let again = kept.get(None, || async { shown("b", span) }).await.unwrap();
        assert!(again.is_same(&first));
        tokio::time::advance(span).await;
        assert!(!kept.get(None, || async { shown("b", span) }).await.unwrap().is_same(&first));
    }

    #[tokio::test]
    async fn a_secret_that_may_be_replaced_is_read_for_every_call_and_once_for_concurrent_ones() {
        let (kept, made) = (Kept::default(), AtomicUsize::new(0));
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            shown("a", span(&Source::File("token".into())))
        };
        let got = futures::future::join_all((0..50).map(|_| kept.get(None, make))).await;
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        kept.get(None, make).await.unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn callers_do_not_get_what_is_kept_for_others() {
        let kept = Kept::default();
        let [ann, bob] = ["ann", "bob"].map(|id| kept.who(&Caller::user(id), false));
        let of_ann = kept.get(Some(&ann), || async { shown("a", LONG) }).await.unwrap();
        assert!(!kept.get(Some(&bob), || async { shown("b", LONG) }).await.unwrap().is_same(&of_ann));
        assert!(!kept.get(None, || async { shown("c", LONG) }).await.unwrap().is_same(&of_ann));
        kept.forget(Some(&ann), &of_ann);
        assert!(!kept.get(Some(&ann), || async { shown("d", LONG) }).await.unwrap().is_same(&of_ann));
    }

    #[tokio::test]
    async fn what_was_got_for_one_token_is_not_shown_for_another_of_the_same_caller() {
        let kept = Kept::default();
        let [weak, strong] = ["weak", "strong"]
            .map(|token| kept.who(&Caller { proof: Some(Proof::from(token)), ..Caller::user("ann") }, true));
        let first = kept.get(Some(&strong), || async { shown("a", LONG) }).await.unwrap();
        assert!(!kept.get(Some(&weak), || async { shown("b", LONG) }).await.unwrap().is_same(&first));
        assert!(kept.get(Some(&strong), || async { shown("c", LONG) }).await.unwrap().is_same(&first));
    }

    #[tokio::test]
    async fn those_who_wait_share_a_refusal() {
        let (kept, made) = (Kept::default(), AtomicUsize::new(0));
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err("no".to_owned())
        };
        let got = futures::future::join_all((0..50).map(|_| kept.get(None, make))).await;
        assert!(got.iter().all(Result::is_err));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn one_caller_does_not_wait_for_what_is_made_for_another() {
        let kept = Kept::default();
        let [ann, bob] = ["ann", "bob"].map(|id| kept.who(&Caller::user(id), false));
        let of_ann = kept.get(Some(&ann), std::future::pending);
        let of_bob = kept.get(Some(&bob), || async { shown("b", LONG) });
        futures::pin_mut!(of_ann, of_bob);
        match futures::future::select(of_ann, of_bob).await {
            futures::future::Either::Right((made, _)) => assert!(made.is_ok()),
            futures::future::Either::Left(_) => panic!("ann's was never made"),
        }
    }

    #[tokio::test]
    async fn what_failed_is_not_kept() {
        let kept = Kept::default();
        assert!(kept.get(None, || async { Err("no".to_owned()) }).await.is_err());
        assert!(kept.get(None, || async { shown("a", LONG) }).await.is_ok());
    }
}
