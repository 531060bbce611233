//! What the program does for the console: policies, cards, credentials, tokens, and what is to be deployed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rialto_a2a::credential::Resolver;
use rialto_api_types::policies::PolicyPlace;
use rialto_console::{
    Console, Parts,
    office::{KeptPolicy, Office, PolicyScope, PolicyVersion, SecretRow},
};
use rialto_edge::{
    session::{Sealing, Sessions},
    site::Site,
};
use rialto_engine::{Engine, registry::Deployment};
use rialto_hooks::{
    cloud::CloudEvent,
    delivery::{Delivery, Outcome},
};
use rialto_model::{
    agent::Agent,
    card::Card,
    clock::{Clock, SystemClock},
    credential::{self, Secret},
    failure::{Failure, FailureKind},
    ids::{OrgId, Scope, fresh},
    store::SealedSecret,
    webhook::Webhook,
};
use rialto_policy::{Source, Template};
use rialto_store::vault::Key;

use crate::{
    commands::{
        agents::{described, shown_as},
        tokens,
    },
    environment::Environment,
    output::Trouble,
    policies::{self, Book, Kept, SaveError},
    program::Program,
    tools::described,
    vault::{TroubleWithSecrets, Vault},
    webhooks,
};

/// The names of the keys that sessions of browsers are sealed with, and their forms.
const SESSIONS: &str = "console sessions";
const FORMS: &str = "console forms";

/// The program's own hands.
pub(crate) struct Clerk {
    policies: Book,
    vault: Vault,
    /// Reads what variables hold.
    secrets: Resolver,
    data: Option<PathBuf>,
    delivery: Delivery,
    /// This server as events name it.
    source: String,
}

// === impl Clerk ===

impl Clerk {
    pub(crate) fn of(program: &Program) -> Arc<Self> {
        Arc::new(Self {
            policies: program.policies.clone(),
            vault: program.vault.clone(),
            secrets: Arc::clone(&program.secrets),
            data: program.data.clone(),
            delivery: webhooks::delivery(program),
            source: webhooks::source(program).to_owned(),
        })
    }

    /// The folder that keys are kept in.
    fn folder(&self) -> Result<&Path, Failure> {
        let none =
            || Failure::new(FailureKind::Conflict, "webhooks need a data folder; name one with --data");
        self.data.as_deref().ok_or_else(none)
    }

    /// The policies of a scope.
    fn policies_of(&self, scope: &PolicyScope) -> Book {
        self.policies.within(scope.clone())
    }
}

#[async_trait]
impl Office for Clerk {
    async fn policies(&self) -> Result<Vec<Source>, Failure> {
        let sources = self.policies.sources().await.map_err(SaveError::from).map_err(refused)?;
        sources.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
    }

    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure> {
        let saved = self.policies_of(scope).save(name, text, shelf.map(own), SystemClock.now()).await;
        saved.map(kept).map_err(refused)
    }

    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &Template<'_>,
        name: Option<&str>,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure> {
        let added = self.policies_of(scope).add(template, name, shelf.map(own), SystemClock.now()).await;
        added.map(kept).map_err(refused)
    }

    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure> {
        let gone = self.policies_of(scope).remove(name, shelf.map(own), SystemClock.now()).await;
        gone.map(kept).map_err(refused)
    }

    async fn policy_history(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyVersion>, Failure> {
        let versions = self.policies_of(scope).history(name, shelf.map(own)).await.map_err(refused)?;
        let version = |old: policies::Version| PolicyVersion {
            name: old.name,
            shelf: match old.shelf {
                policies::Shelf::Files => PolicyPlace::Files,
                policies::Shelf::Store => PolicyPlace::Store,
            },
            version: old.version,
            at: old.at,
            by: old.by,
            text: old.text,
        };
        Ok(versions.into_iter().map(version).collect())
    }

    async fn restore_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        version: i64,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure> {
        let restored =
            self.policies_of(scope).restore(name, version, shelf.map(own), SystemClock.now()).await;
        restored.map(kept).map_err(refused)
    }

    async fn forget_policies(&self, agent: &Agent) -> Result<(), Failure> {
        self.policies.forget(agent, SystemClock.now()).await.map_err(refused)
    }

    async fn forget_org_policies(&self, org: &OrgId) -> Result<(), Failure> {
        self.policies.forget_org(org, SystemClock.now()).await.map(drop).map_err(refused)
    }

    fn read_card(&self, text: &str) -> Option<Card> {
        rialto_a2a_wire::card::decode(text).ok()
    }

    fn credential(&self, agent: &Agent) -> Option<String> {
        Some(described(agent)).filter(|text| !text.is_empty())
    }

    fn shown_as(&self, agent: &Agent) -> Option<String> {
        shown_as(agent)
    }

    fn fresh_token(&self) -> Result<String, Failure> {
        tokens::fresh_token()
            .map_err(|_| Failure::new(FailureKind::Internal, "the system gives no random numbers"))
    }

    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure> {
        described::read(described, scope)
    }

    fn operator(&self) -> String {
        self.policies.scope().by.clone()
    }

    fn command(&self) -> String {
        let usual = Environment::of_process().default_data_dir();
        match self.data.as_deref().filter(|data| *data != usual) {
            Some(data) => format!("rialto --data {}", quoted(&data.display().to_string())),
            None => "rialto".to_owned(),
        }
    }

    fn make_webhook_key(&self, id: &str) -> Result<(credential::SecretSource, String), Failure> {
        let kept = webhooks::make_key(self.folder()?, id);
        kept.map_err(|error| {
            Failure::new(FailureKind::Internal, format!("the key could not be kept: {error}"))
        })
    }

    fn forget_webhook_key(&self, id: &str) -> Result<(), Failure> {
        webhooks::forget_key(self.folder()?, id).map_err(|error| {
            Failure::new(FailureKind::Internal, format!("the key of {id} could not be removed: {error}"))
        })
    }

    async fn check_webhook_key(&self, variable: &str) -> Result<(), Failure> {
        let source = credential::SecretSource::Env(variable.to_owned());
        let Ok(held) = (self.secrets)(&source).await else { return Ok(()) };
        let wrong = |error| Failure::new(FailureKind::Invalid, format!("{variable}: {error}"));
        rialto_hooks::key::Key::parse(held.expose().trim()).map(drop).map_err(wrong)
    }

    async fn try_webhook(&self, webhook: &Webhook) -> Result<(), Failure> {
        let now = SystemClock.now();
        let event = CloudEvent::test(format!("test-{}", fresh()), &self.source, now);
        let failed = |message: String| Err(Failure::new(FailureKind::PeerFailed, message));
        match self.delivery.bring(webhook, &event, now).await {
            Outcome::Taken => Ok(()),
            Outcome::Unwanted => failed("it answered 410 Gone: it wants no events any more".to_owned()),
            Outcome::Failed { why, .. } => failed(format!("{} did not take it: {why}", webhook.id)),
        }
    }

    async fn secrets(&self) -> Result<Vec<SecretRow>, Failure> {
        let row =
            |sealed: SealedSecret| SecretRow { name: sealed.name, set_at: sealed.set_at, key: sealed.key };
        let sealed = self.vault.list().await.map_err(troubled)?;
        Ok(sealed.into_iter().map(row).collect())
    }

    async fn set_secret(&self, name: &str, secret: &Secret) -> Result<(), Failure> {
        self.vault.set(name, secret).await.map_err(troubled)
    }

    async fn remove_secret(&self, name: &str) -> Result<(), Failure> {
        self.vault.remove(name).await.map_err(troubled)
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:\\".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The console as whoever works at this machine uses it: no policy is asked, nothing of the machine is out of reach, and nobody
/// comes from outside.
pub(crate) fn console_at_machine(program: &Program) -> Console {
    Console::new(Parts {
        engine: program.engine.clone(),
        store: Arc::clone(&program.store),
        flows: program.flows.clone(),
        office: Clerk::of(program),
        site: Site::default(),
        needs_token: false,
        at_machine: true,
        allow_private: true,
        allow_secrets: true,
        max_body_bytes: usize::MAX,
        streams: rialto_edge::streams::StreamLimits::default(),
        stop: program.stop().clone(),
    })
}

/// What browsers are given in place of a token, sealed with keys of the store: every process of it knows them.
pub(crate) async fn sessions(engine: &Engine) -> Result<Arc<Sessions>, Trouble> {
    let seed = async |name| engine.seed(name).await.map_err(|failure| Trouble::other(failure.message));
    let digits: String = seed(SESSIONS).await?.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = Arc::new(Key::parse(&Secret::from(digits)).map_err(|error| Trouble::other(error.to_string()))?);
    let opener = Arc::clone(&key);
    let sealing = Sealing {
        seal: Box::new(move |text| {
            key.seal(SESSIONS, text, SystemClock.now()).ok().map(|sealed| sealed.text)
        }),
        open: Box::new(move |text| {
            let (name, key, set_at) = (SESSIONS.to_owned(), opener.id().to_owned(), SystemClock.now());
            opener.open(&SealedSecret { name, key, text: text.to_vec(), set_at }).ok()
        }),
    };
    let made = Sessions::new(sealing, seed(FORMS).await?, Arc::new(SystemClock));
    made.map(Arc::new).ok_or_else(|| Trouble::other("the key of the console's forms is no key".to_owned()))
}

/// The shelf as the policies here know it.
const fn own(shelf: PolicyPlace) -> policies::Shelf {
    match shelf {
        PolicyPlace::Files => policies::Shelf::Files,
        PolicyPlace::Store => policies::Shelf::Store,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map")]
fn kept(kept: Kept) -> KeptPolicy {
    KeptPolicy {
        name: kept.name(),
        listed: kept.source_name(),
        org: kept.key.owner.clone(),
        place: kept.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn troubled(trouble: TroubleWithSecrets) -> Failure {
    let kind = match &trouble {
        TroubleWithSecrets::Missing(_) => FailureKind::NotFound,
        TroubleWithSecrets::Usage(_) => FailureKind::Invalid,
        TroubleWithSecrets::Key { .. } | TroubleWithSecrets::OtherKey(..) | TroubleWithSecrets::Broken(_) => {
            FailureKind::Conflict
        }
        TroubleWithSecrets::Store(_) => FailureKind::Internal,
    };
    Failure::new(kind, trouble.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: SaveError) -> Failure {
    let kind = match &error {
        SaveError::Invalid(_) | SaveError::Name(_) | SaveError::Both(_) | SaveError::Shared { .. } => {
            FailureKind::Invalid
        }
        SaveError::NotFound(_) | SaveError::NoVersion { .. } => FailureKind::NotFound,
        SaveError::NoFolder => FailureKind::Conflict,
        SaveError::Store(_) | SaveError::File { .. } => FailureKind::Internal,
    };
    Failure::new(kind, error.to_string())
}
