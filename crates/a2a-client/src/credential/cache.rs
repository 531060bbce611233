//! Cache of resolved credentials per agent and caller.
//!
//! A cache hit is one atomic pointer load. On a miss or an expired entry one call resolves the credential and concurrent callers with
//! the same key wait for it (single-flight); a failure is shared in the same way.

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
    credential::{CallerProof, SecretSource},
};
use tokio::time::Instant;

use super::RequestAuth;

/// Lifetime of a credential that cannot change.
const FIXED_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of cached per-caller credentials.
const MAX_CALLER_ENTRIES: usize = 10_000;

/// Caller, and a hash of its token if that matters.
type CredentialKey = (CallerId, u64);

/// Caller that a credential is resolved for.
pub(crate) struct CredentialOwner {
    key: CredentialKey,
    pub(crate) proof: Option<CallerProof>,
}

/// Lock for single-flight resolution; holds the last error.
type SingleFlight = tokio::sync::Mutex<Option<String>>;

/// Credentials for one agent.
#[derive(Default)]
pub(crate) struct CredentialCache {
    /// Shared by all callers.
    common: ArcSwapOption<RequestAuth>,
    /// Credentials of single callers.
    personal: RwLock<HashMap<CredentialKey, Arc<RequestAuth>>>,
    /// Random hasher key of this process: entries are found by a token's hash without storing the token.
    hasher: RandomState,
    making: Mutex<HashMap<Option<CredentialKey>, Arc<SingleFlight>>>,
}

/// Lifetime of a credential from `source`.
pub(super) const fn span(source: &SecretSource) -> Duration {
    match source {
        SecretSource::Env(_) | SecretSource::Held(_) => FIXED_LIFETIME,
        // It may be replaced at any time, and the next call uses the new one.
        SecretSource::File(_) | SecretSource::Store(_) => Duration::ZERO,
    }
}

// === impl CredentialOwner ===

impl CredentialOwner {
    pub(crate) const fn id(&self) -> &CallerId {
        &self.key.0
    }
}

// === impl CredentialCache ===

impl CredentialCache {
    /// Cache key of the caller: includes its token only `with_proof`.
    pub(crate) fn who(&self, caller: &Caller, with_proof: bool) -> CredentialOwner {
        let proof = caller.proof.clone().filter(|_| with_proof);
        let hash = proof.as_ref().map_or(0, |proof| self.hasher.hash_one(proof.expose()));
        CredentialOwner { key: (caller.id.clone(), hash), proof }
    }

    /// Cached credential for `who`, or the shared one; resolved by `make` on a miss.
    pub(crate) async fn get<F>(
        &self,
        who: Option<&CredentialOwner>,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<RequestAuth>, String>
    where
        F: Future<Output = Result<RequestAuth, String>>,
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
            // Callers that wait already share the error; later ones try again.
            Err(why) => *refusal = Some(why.clone()),
        }
        self.making.lock().remove(&key);
        made
    }

    fn gate(&self, key: Option<CredentialKey>) -> Arc<SingleFlight> {
        let mut making = self.making.lock();
        if making.len() >= MAX_CALLER_ENTRIES {
            // Left behind by calls that were dropped.
            making.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        Arc::clone(making.entry(key).or_default())
    }

    /// Removes `old`, unless it was replaced already.
    pub(crate) fn forget(&self, who: Option<&CredentialOwner>, old: &Arc<RequestAuth>) {
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

    /// Credential that has not expired, or that was resolved while the caller waited.
    fn find(&self, who: Option<&CredentialOwner>, since: Instant) -> Option<Arc<RequestAuth>> {
        let found = match who {
            None => self.common.load_full(),
            Some(who) => self.personal.read().get(&who.key).cloned(),
        };
        found.filter(|shown| since < shown.until || since < shown.made)
    }

    fn put(&self, who: Option<&CredentialOwner>, shown: &Arc<RequestAuth>) {
        let Some(who) = who else { return self.common.store(Some(Arc::clone(shown))) };
        let mut personal = self.personal.write();
        if personal.len() >= MAX_CALLER_ENTRIES {
            let now = Instant::now();
            personal.retain(|_, shown| now < shown.until);
            if personal.len() >= MAX_CALLER_ENTRIES {
                personal.clear();
            }
        }
        personal.insert(who.key.clone(), Arc::clone(shown));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rialto_model::credential::{CredentialScheme, Secret};

    use super::*;

    fn shown(text: &str, span: Duration) -> Result<RequestAuth, String> {
        RequestAuth::new(&CredentialScheme::Bearer, &Secret::from(text), Instant::now() + span)
    }

    #[tokio::test]
    async fn many_who_need_it_at_once_have_it_made_once() {
        let (kept, made) = (CredentialCache::default(), AtomicUsize::new(0));
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            shown("a", FIXED_LIFETIME)
        };
        let got = futures::future::join_all((0..50).map(|_| kept.get(None, make))).await;
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_made_anew() {
        let (kept, span) = (CredentialCache::default(), Duration::from_secs(5));
        let first = kept.get(None, || async { shown("a", span) }).await.unwrap();
        let again = kept.get(None, || async { shown("b", span) }).await.unwrap();
        assert!(again.is_same(&first));
        tokio::time::advance(span).await;
        assert!(!kept.get(None, || async { shown("b", span) }).await.unwrap().is_same(&first));
    }

    #[tokio::test]
    async fn a_secret_that_may_be_replaced_is_read_for_every_call_and_once_for_concurrent_ones() {
        let (kept, made) = (CredentialCache::default(), AtomicUsize::new(0));
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            shown("a", span(&SecretSource::File("token".into())))
        };
        let got = futures::future::join_all((0..50).map(|_| kept.get(None, make))).await;
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        kept.get(None, make).await.unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn callers_do_not_get_what_is_kept_for_others() {
        let kept = CredentialCache::default();
        let [ann, bob] = ["ann", "bob"].map(|id| kept.who(&Caller::user(id), false));
        let of_ann = kept.get(Some(&ann), || async { shown("a", FIXED_LIFETIME) }).await.unwrap();
        assert!(
            !kept.get(Some(&bob), || async { shown("b", FIXED_LIFETIME) }).await.unwrap().is_same(&of_ann)
        );
        assert!(!kept.get(None, || async { shown("c", FIXED_LIFETIME) }).await.unwrap().is_same(&of_ann));
        kept.forget(Some(&ann), &of_ann);
        assert!(
            !kept.get(Some(&ann), || async { shown("d", FIXED_LIFETIME) }).await.unwrap().is_same(&of_ann)
        );
    }

    #[tokio::test]
    async fn what_was_got_for_one_token_is_not_shown_for_another_of_the_same_caller() {
        let kept = CredentialCache::default();
        let [weak, strong] = ["weak", "strong"].map(|token| {
            kept.who(&Caller { proof: Some(CallerProof::from(token)), ..Caller::user("ann") }, true)
        });
        let first = kept.get(Some(&strong), || async { shown("a", FIXED_LIFETIME) }).await.unwrap();
        assert!(
            !kept.get(Some(&weak), || async { shown("b", FIXED_LIFETIME) }).await.unwrap().is_same(&first)
        );
        assert!(
            kept.get(Some(&strong), || async { shown("c", FIXED_LIFETIME) }).await.unwrap().is_same(&first)
        );
    }

    #[tokio::test]
    async fn those_who_wait_share_a_refusal() {
        let (kept, made) = (CredentialCache::default(), AtomicUsize::new(0));
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
        let kept = CredentialCache::default();
        let [ann, bob] = ["ann", "bob"].map(|id| kept.who(&Caller::user(id), false));
        let of_ann = kept.get(Some(&ann), std::future::pending);
        let of_bob = kept.get(Some(&bob), || async { shown("b", FIXED_LIFETIME) });
        futures::pin_mut!(of_ann, of_bob);
        match futures::future::select(of_ann, of_bob).await {
            futures::future::Either::Right((made, _)) => assert!(made.is_ok()),
            futures::future::Either::Left(_) => panic!("ann's was never made"),
        }
    }

    #[tokio::test]
    async fn what_failed_is_not_kept() {
        let kept = CredentialCache::default();
        assert!(kept.get(None, || async { Err("no".to_owned()) }).await.is_err());
        assert!(kept.get(None, || async { shown("a", FIXED_LIFETIME) }).await.is_ok());
    }
}
