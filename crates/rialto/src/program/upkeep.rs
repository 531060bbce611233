//! What a program does by itself while it runs: it looks for changes that others make, and forgets what is old.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rialto_engine::Engine;
use rialto_model::{
    clock::{Clock, SystemClock},
    store::{Store, SweepReport},
};
use rialto_policy::Source;
use tokio_util::sync::CancellationToken;

use crate::{
    looking::{Looks, Reason, ReloadSignal, lasts},
    policies::Policies,
};

/// Time from the start to the first sweep.
const FIRST_SWEEP: Duration = Duration::from_secs(20);

/// Time between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// After each batch the sweep pauses for this part of the time that the batch took, so that calls are not kept waiting.
const PAUSE_SHARE: u32 = 4;

/// Sees changes that come without a call: connected clients must hear of them too.
pub(super) async fn watch(
    engine: Engine,
    policies: Policies,
    mut known: Option<Vec<Source>>,
    (stop, signal): (CancellationToken, ReloadSignal),
) {
    let (mut looks, mut known_reads) = (Looks::until(stop, &signal), 0);
    // A file may change between the listing of the sources and the reload, and change back before the next listing: invalid policies are
    // read once more.
    let mut is_to_check = false;
    while let Some(reason) = looks.next().await {
        if let Err(failure) = engine.sync().await {
            tracing::error!("the registry could not be read: {failure}");
        }
        let (sources, reads) = (policies.sources().ok(), engine.policy_reads());
        let is_changed = sources != known;
        // Calls have them read too, and may have seen what stood in a file for a moment only.
        let is_check = std::mem::take(&mut is_to_check) && !engine.policies_are_sound();
        if !is_changed && reads == known_reads && !is_check && reason == Reason::Tick {
            continue;
        }
        if is_changed {
            if !lasts(&sources, || policies.sources().ok()).await {
                continue;
            }
            tracing::info!("the policies have changed");
        }
        match engine.reload_policy().await {
            Ok(()) => {
                (known, known_reads) = (sources, reads + 1);
                is_to_check = !is_check;
            }
            // They are tried again with the next look.
            Err(failure) => tracing::error!("the policies could not be read: {failure}"),
        }
    }
}

/// Forgets tasks and audit records that are older than the configuration wants to keep them.
pub(super) async fn keep_tidy(store: Arc<dyn Store>, config: rialto_store::Config, stop: CancellationToken) {
    let mut pause = FIRST_SWEEP;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = SWEEP_INTERVAL;
        let (mut tasks, mut audit) = (0, 0);
        let old = config.old(SystemClock.now());
        while !stop.is_cancelled() {
            let begun = Instant::now();
            match store.sweep(old).await {
                Ok(swept) if swept == SweepReport::default() => break,
                Ok(swept) => (tasks, audit) = (tasks + swept.tasks, audit + swept.audit),
                Err(error) => {
                    tracing::error!("old tasks and audit records could not be removed: {error}");
                    break;
                }
            }
            tokio::time::sleep(begun.elapsed() / PAUSE_SHARE).await;
        }
        if tasks + audit > 0 {
            tracing::info!("{tasks} tasks and {audit} audit records were old and are removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        config::Config,
        environment::Environment,
        looking::LOOK,
        program::{Place, Program},
    };

    async fn opened(home: &std::path::Path) -> Program {
        let place = Place::Folder(home.to_owned());
        Program::open(Config::default(), place, None, &Environment::default()).await.unwrap()
    }

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let noticed = async {
            while !is_so() {
                tokio::time::sleep(LOOK / 50).await;
            }
        };
        tokio::time::timeout(30 * LOOK, noticed).await.unwrap_or_else(|_| panic!("waited for this: {what}"));
    }

    #[tokio::test]
    async fn an_edit_between_the_load_and_the_first_look_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let program = opened(home.path()).await;
        let text = "@id(\"mine\") permit (principal, action, resource);";
        std::fs::write(home.path().join("policies/mine.cedar"), text).unwrap();
        program.start();
        until("it is in force", || program.engine.policy().ids().contains(&"mine".to_owned())).await;
        program.close().await;
    }

    #[tokio::test]
    async fn what_a_call_has_read_in_between_does_not_stay_in_force() {
        let home = tempfile::tempdir().unwrap();
        let program = opened(home.path()).await;
        let file = home.path().join("policies/mine.cedar");
        std::fs::write(&file, "permit (principal, action").unwrap();
        program.engine.reload_policy().await.unwrap();
        assert!(!program.engine.policies_are_sound());
        std::fs::remove_file(&file).unwrap();
        program.start();
        until("all is as it was", || program.engine.policies_are_sound()).await;
        program.close().await;
    }
}
