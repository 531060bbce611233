//! What the program does for the console: policies, cards, credentials, tokens, and what is to be deployed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rialto_a2a::credential::SecretResolver;
use rialto_api_types::policies::PolicyPlace;
use rialto_console::{
    Console, ConsoleDeps,
    host::{
        ChangedPolicy, ConsoleHost, PolicyHistoryEntry, PolicyHost, PolicyScope, SecretHost, SecretRow,
        WebhookHost,
    },
};
use rialto_edge::{
    public_url::PublicUrl,
    session::{BrowserSessions, CookieSealing},
};
use rialto_engine::{Engine, registry::Deployment};
use rialto_hooks::{
    cloud_event::CloudEvent,
    delivery::{Delivery, DeliveryOutcome},
};
use rialto_model::{
    agent::Agent,
    card::Card,
    clock::{Clock, SystemClock},
    credential::{self, Secret},
    failure::{Failure, Kind},
    ids::{OrgId, Scope, fresh},
    store::Sealed,
    webhook::Webhook,
};
use rialto_policy::{PolicySource, PolicyTemplate};
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
    secrets: SecretResolver,
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
        let none = || Failure::new(Kind::Conflict, "webhooks need a data folder; name one with --data");
        self.data.as_deref().ok_or_else(none)
    }

    /// The policies of a scope.
    fn policies_of(&self, scope: &PolicyScope) -> Book {
        self.policies.within(scope.clone())
    }
}

#[async_trait]
impl PolicyHost for Clerk {
    async fn policy_sources(&self) -> Result<Vec<PolicySource>, Failure> {
        let sources = self.policies.sources().await.map_err(SaveError::from).map_err(refused)?;
        sources.map_err(|error| Failure::new(Kind::Internal, error.to_string()))
    }

    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let saved = self.policies_of(scope).save(name, text, shelf.map(own), SystemClock.now()).await;
        saved.map(kept).map_err(refused)
    }

    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let added = self.policies_of(scope).add(template, name, shelf.map(own), SystemClock.now()).await;
        added.map(kept).map_err(refused)
    }

    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let gone = self.policies_of(scope).remove(name, shelf.map(own), SystemClock.now()).await;
        gone.map(kept).map_err(refused)
    }

    async fn policy_history(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyHistoryEntry>, Failure> {
        let versions = self.policies_of(scope).history(name, shelf.map(own)).await.map_err(refused)?;
        let version = |old: policies::Version| PolicyHistoryEntry {
            name: old.name,
            place: match old.shelf {
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
    ) -> Result<ChangedPolicy, Failure> {
        let restored =
            self.policies_of(scope).restore(name, version, shelf.map(own), SystemClock.now()).await;
        restored.map(kept).map_err(refused)
    }

    async fn remove_agent_policies(&self, agent: &Agent) -> Result<(), Failure> {
        self.policies.forget(agent, SystemClock.now()).await.map_err(refused)
    }

    async fn remove_org_policies(&self, org: &OrgId) -> Result<(), Failure> {
        self.policies.forget_org(org, SystemClock.now()).await.map(drop).map_err(refused)
    }
}

impl ConsoleHost for Clerk {
    fn read_card(&self, text: &str) -> Option<Card> {
        rialto_a2a_wire::card::decode(text).ok()
    }

    fn describe_credential(&self, agent: &Agent) -> Option<String> {
        Some(described(agent)).filter(|text| !text.is_empty())
    }

    fn describe_auth_scheme(&self, agent: &Agent) -> Option<String> {
        shown_as(agent)
    }

    fn new_token(&self) -> Result<String, Failure> {
        tokens::fresh_token().map_err(|_| Failure::new(Kind::Internal, "the system gives no random numbers"))
    }

    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure> {
        described::read(described, scope)
    }

    fn operator_name(&self) -> String {
        self.policies.scope().by.clone()
    }

    fn cli_command(&self) -> String {
        let usual = Environment::of_process().default_data_dir();
        match self.data.as_deref().filter(|data| *data != usual) {
            Some(data) => format!("rialto --data {}", quoted(&data.display().to_string())),
            None => "rialto".to_owned(),
        }
    }
}

#[async_trait]
impl WebhookHost for Clerk {
    fn create_webhook_key(&self, id: &str) -> Result<(credential::Source, String), Failure> {
        let kept = webhooks::make_key(self.folder()?, id);
        kept.map_err(|error| Failure::new(Kind::Internal, format!("the key could not be kept: {error}")))
    }

    fn remove_webhook_key(&self, id: &str) -> Result<(), Failure> {
        webhooks::forget_key(self.folder()?, id).map_err(|error| {
            Failure::new(Kind::Internal, format!("the key of {id} could not be removed: {error}"))
        })
    }

    async fn check_webhook_key(&self, variable: &str) -> Result<(), Failure> {
        let source = credential::Source::Env(variable.to_owned());
        let Ok(held) = (self.secrets)(&source).await else { return Ok(()) };
        let wrong = |error| Failure::new(Kind::Invalid, format!("{variable}: {error}"));
        rialto_hooks::signing_key::SigningKey::parse(held.expose().trim()).map(drop).map_err(wrong)
    }

    async fn send_test_event(&self, webhook: &Webhook) -> Result<(), Failure> {
        let now = SystemClock.now();
        let event = CloudEvent::test(format!("test-{}", fresh()), &self.source, now);
        let failed = |message: String| Err(Failure::new(Kind::PeerFailed, message));
        match self.delivery.deliver(webhook, &event, now).await {
            DeliveryOutcome::Accepted => Ok(()),
            DeliveryOutcome::Gone => failed("it answered 410 Gone: it wants no events any more".to_owned()),
            DeliveryOutcome::Failed { why, .. } => failed(format!("{} did not take it: {why}", webhook.id)),
        }
    }
}

#[async_trait]
impl SecretHost for Clerk {
    async fn list_secrets(&self) -> Result<Vec<SecretRow>, Failure> {
        let row = |sealed: Sealed| SecretRow { name: sealed.name, set_at: sealed.set_at, key: sealed.key };
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
    Console::new(ConsoleDeps {
        engine: program.engine.clone(),
        store: Arc::clone(&program.store),
        flows: program.flows.clone(),
        host: Clerk::of(program),
        site: PublicUrl::default(),
        needs_token: false,
        is_local: true,
        allow_private: true,
        allow_secrets: true,
        max_body_bytes: usize::MAX,
        streams: rialto_edge::stream_limits::StreamLimits::default(),
        stop: program.stop().clone(),
    })
}

/// What browsers are given in place of a token, sealed with keys of the store: every process of it knows them.
pub(crate) async fn sessions(engine: &Engine) -> Result<Arc<BrowserSessions>, Trouble> {
    let seed = async |name| engine.seeds().get(name).await.map_err(|failure| Trouble::other(failure.message));
    let digits: String = seed(SESSIONS).await?.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = Arc::new(Key::parse(&Secret::from(digits)).map_err(|error| Trouble::other(error.to_string()))?);
    let opener = Arc::clone(&key);
    let sealing = CookieSealing {
        seal: Box::new(move |text| {
            key.seal(SESSIONS, text, SystemClock.now()).ok().map(|sealed| sealed.text)
        }),
        open: Box::new(move |text| {
            let (name, key, set_at) = (SESSIONS.to_owned(), opener.id().to_owned(), SystemClock.now());
            opener.open(&Sealed { name, key, text: text.to_vec(), set_at }).ok()
        }),
    };
    let made = BrowserSessions::new(sealing, seed(FORMS).await?, Arc::new(SystemClock));
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
fn kept(kept: Kept) -> ChangedPolicy {
    ChangedPolicy {
        name: kept.name(),
        listed: kept.source_name(),
        org: kept.key.owner.clone(),
        location: kept.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn troubled(trouble: TroubleWithSecrets) -> Failure {
    let kind = match &trouble {
        TroubleWithSecrets::Missing(_) => Kind::NotFound,
        TroubleWithSecrets::Usage(_) => Kind::Invalid,
        TroubleWithSecrets::Key { .. } | TroubleWithSecrets::OtherKey(..) | TroubleWithSecrets::Broken(_) => {
            Kind::Conflict
        }
        TroubleWithSecrets::Store(_) => Kind::Internal,
    };
    Failure::new(kind, trouble.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: SaveError) -> Failure {
    let kind = match &error {
        SaveError::Invalid(_) | SaveError::Name(_) | SaveError::Both(_) | SaveError::Shared { .. } => {
            Kind::Invalid
        }
        SaveError::NotFound(_) | SaveError::NoVersion { .. } => Kind::NotFound,
        SaveError::NoFolder => Kind::Conflict,
        SaveError::Store(_) | SaveError::File { .. } => Kind::Internal,
    };
    Failure::new(kind, error.to_string())
}
