//! What a program does by itself while it runs: it looks for changes that others make, and forgets what is old.

use std::{sync::Arc, time::Duration};

use rialto_engine::Engine;
use rialto_model::{
    clock::{Clock, SystemClock},
    store::{Store, Swept},
};
use rialto_policy::Source;
use tokio_util::sync::CancellationToken;

use crate::{
    looking::{Looks, lasts},
    policies::Policies,
};

/// How often what is old is swept away.
const SWEEP: Duration = Duration::from_secs(600);

/// Sees changes that come without a call: connected clients must hear of them too.
pub(super) async fn watch(
    engine: Engine,
    policies: Policies,
    mut known: Option<Vec<Source>>,
    stop: CancellationToken,
) {
    let mut looks = Looks::until(stop);
    while looks.next().await {
        if let Err(failure) = engine.sync().await {
            tracing::error!("the registry could not be read: {failure}");
        }
        let sources = policies.sources().ok();
        if sources != known {
            if !lasts(&sources, || policies.sources().ok()).await {
                continue;
            }
            tracing::info!("the policies have changed");
            match engine.reload_policy().await {
                Ok(()) => known = sources,
                // They are tried again with the next look.
                Err(failure) => tracing::error!("the policies could not be read: {failure}"),
            }
        }
    }
}

/// Forgets tasks and audit records that are older than the configuration wants to keep them.
pub(super) async fn keep_tidy(store: Arc<dyn Store>, config: rialto_store::Config, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        let old = config.old(SystemClock.now());
        loop {
            match store.sweep(old).await {
                Ok(swept) if swept == Swept::default() => break,
                Ok(swept) => {
                    tracing::info!("{} tasks and {} audit records were old", swept.tasks, swept.audit);
                }
                Err(error) => {
                    tracing::error!("what is old could not be swept away: {error}");
                    break;
                }
            }
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

    #[tokio::test]
    async fn an_edit_between_the_load_and_the_first_look_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::Folder(home.path().to_owned());
        let environment = Environment::default();
        let program = Program::open(Config::default(), place, None, &environment).await.unwrap();
        std::fs::write(
            home.path().join("policies/mine.cedar"),
            "@id(\"mine\") permit (principal, action, resource);",
        )
        .unwrap();
        program.start();
        let is_in_force = || program.engine.policy().ids().contains(&"mine".to_owned());
        let noticed = async {
            while !is_in_force() {
                tokio::time::sleep(LOOK / 50).await;
            }
        };
        tokio::time::timeout(30 * LOOK, noticed).await.unwrap();
        program.close().await;
    }
}
