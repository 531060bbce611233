//! Services of the program for the console: policies, cards, credentials, tokens and deployments.

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
    failure::{Failure, FailureKind},
    ids::{OrgId, Scope, fresh},
    store::SealedSecret,
    webhook::Webhook,
};
use rialto_policy::{PolicySource, PolicyTemplate};
use rialto_secrets::{SecretsError, Vault};
use rialto_store::vault::Key;

use crate::{
    app::App,
    commands::{
        agents::{describe_credential, describe_scheme},
        tokens,
    },
    deployed_backends::deployment_spec,
    environment::Environment,
    output::CommandError,
    policies::{self, PolicySaveError, PolicyStore, SavedPolicyText},
    webhooks,
};

/// The names of the keys that sessions of browsers are sealed with, and their forms.
const SESSIONS_KEY: &str = "console sessions";
const FORMS_KEY: &str = "console forms";

/// The program's own hands.
pub(crate) struct ProgramConsoleHost {
    policies: PolicyStore,
    vault: Vault,
    /// Reads what variables hold.
    secrets: SecretResolver,
    data: Option<PathBuf>,
    delivery: Delivery,
    /// This server as events name it.
    source: String,
}

// === impl ProgramConsoleHost ===

impl ProgramConsoleHost {
    pub(crate) fn new(program: &App) -> Arc<Self> {
        Arc::new(Self {
            policies: program.policies.clone(),
            vault: program.vault.clone(),
            secrets: Arc::clone(&program.secrets),
            data: program.data.clone(),
            delivery: webhooks::delivery(program),
            source: webhooks::event_source(program).to_owned(),
        })
    }

    /// Folder for keys.
    fn folder(&self) -> Result<&Path, Failure> {
        let none =
            || Failure::new(FailureKind::Conflict, "webhooks need a data folder; name one with --data");
        self.data.as_deref().ok_or_else(none)
    }

    /// The policies of a scope.
    fn policies_of(&self, scope: &PolicyScope) -> PolicyStore {
        self.policies.with_scope(scope.clone())
    }
}

#[async_trait]
impl PolicyHost for ProgramConsoleHost {
    async fn policy_sources(&self) -> Result<Vec<PolicySource>, Failure> {
        let sources =
            self.policies.sources().await.map_err(PolicySaveError::from).map_err(policy_save_failure)?;
        sources.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
    }

    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let saved =
            self.policies_of(scope).save(name, text, shelf.map(policy_location), SystemClock.now()).await;
        saved.map(saved_policy).map_err(policy_save_failure)
    }

    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let added =
            self.policies_of(scope).add(template, name, shelf.map(policy_location), SystemClock.now()).await;
        added.map(saved_policy).map_err(policy_save_failure)
    }

    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let gone = self.policies_of(scope).remove(name, shelf.map(policy_location), SystemClock.now()).await;
        gone.map(saved_policy).map_err(policy_save_failure)
    }

    async fn policy_history(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyHistoryEntry>, Failure> {
        let versions = self
            .policies_of(scope)
            .history(name, shelf.map(policy_location))
            .await
            .map_err(policy_save_failure)?;
        let version = |old: policies::PolicyFileVersion| PolicyHistoryEntry {
            name: old.name,
            place: match old.shelf {
                policies::PolicyLocation::Files => PolicyPlace::Files,
                policies::PolicyLocation::Store => PolicyPlace::Store,
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
        let restored = self
            .policies_of(scope)
            .restore(name, version, shelf.map(policy_location), SystemClock.now())
            .await;
        restored.map(saved_policy).map_err(policy_save_failure)
    }

    async fn remove_agent_policies(&self, agent: &Agent) -> Result<(), Failure> {
        self.policies.remove_for_agent(agent, SystemClock.now()).await.map_err(policy_save_failure)
    }

    async fn remove_org_policies(&self, org: &OrgId) -> Result<(), Failure> {
        self.policies.remove_for_org(org, SystemClock.now()).await.map(drop).map_err(policy_save_failure)
    }
}

impl ConsoleHost for ProgramConsoleHost {
    fn read_card(&self, text: &str) -> Option<Card> {
        rialto_a2a_wire::card::decode(text).ok()
    }

    fn describe_credential(&self, agent: &Agent) -> Option<String> {
        Some(describe_credential(agent)).filter(|text| !text.is_empty())
    }

    fn describe_auth_scheme(&self, agent: &Agent) -> Option<String> {
        describe_scheme(agent)
    }

    fn new_token(&self) -> Result<String, Failure> {
        tokens::fresh_token()
            .map_err(|_| Failure::new(FailureKind::Internal, "the system gives no random numbers"))
    }

    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure> {
        deployment_spec::parse_deployment(described, scope)
    }

    fn operator_name(&self) -> String {
        self.policies.scope().by.clone()
    }

    fn cli_command(&self) -> String {
        let usual = Environment::from_process().default_data_dir();
        match self.data.as_deref().filter(|data| *data != usual) {
            Some(data) => format!("rialto --data {}", shell_quote(&data.display().to_string())),
            None => "rialto".to_owned(),
        }
    }
}

#[async_trait]
impl WebhookHost for ProgramConsoleHost {
    fn create_webhook_key(&self, id: &str) -> Result<(credential::SecretSource, String), Failure> {
        let kept = webhooks::make_key(self.folder()?, id);
        kept.map_err(|error| {
            Failure::new(FailureKind::Internal, format!("the key could not be stored: {error}"))
        })
    }

    fn remove_webhook_key(&self, id: &str) -> Result<(), Failure> {
        webhooks::forget_key(self.folder()?, id).map_err(|error| {
            Failure::new(FailureKind::Internal, format!("the key of {id} could not be removed: {error}"))
        })
    }

    async fn check_webhook_key(&self, variable: &str) -> Result<(), Failure> {
        let source = credential::SecretSource::Env(variable.to_owned());
        let Ok(held) = (self.secrets)(&source).await else { return Ok(()) };
        let wrong = |error| Failure::new(FailureKind::Invalid, format!("{variable}: {error}"));
        rialto_hooks::signing_key::SigningKey::parse(held.expose().trim()).map(drop).map_err(wrong)
    }

    async fn send_test_event(&self, webhook: &Webhook) -> Result<(), Failure> {
        let now = SystemClock.now();
        let event = CloudEvent::test(format!("test-{}", fresh()), &self.source, now);
        let failed = |message: String| Err(Failure::new(FailureKind::PeerFailed, message));
        match self.delivery.deliver(webhook, &event, now).await {
            DeliveryOutcome::Accepted => Ok(()),
            DeliveryOutcome::Gone => failed("it answered 410 Gone: it wants no events any more".to_owned()),
            DeliveryOutcome::Failed { why, .. } => {
                failed(format!("{} did not accept the event: {why}", webhook.id))
            }
        }
    }
}

#[async_trait]
impl SecretHost for ProgramConsoleHost {
    async fn list_secrets(&self) -> Result<Vec<SecretRow>, Failure> {
        let row =
            |sealed: SealedSecret| SecretRow { name: sealed.name, set_at: sealed.set_at, key: sealed.key };
        let sealed = self.vault.list().await.map_err(secrets_failure)?;
        Ok(sealed.into_iter().map(row).collect())
    }

    async fn set_secret(&self, name: &str, secret: &Secret) -> Result<(), Failure> {
        self.vault.set(name, secret).await.map_err(secrets_failure)
    }

    async fn remove_secret(&self, name: &str) -> Result<(), Failure> {
        self.vault.remove(name).await.map_err(secrets_failure)
    }
}

/// A word as a shell takes it.
fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:\\".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Console for a local user: no policy is asked, all operations are available, and requests do not come from the network.
pub(crate) fn console_at_machine(program: &App) -> Console {
    Console::new(ConsoleDeps {
        engine: program.engine.clone(),
        store: Arc::clone(&program.store),
        flows: program.flows.clone(),
        host: ProgramConsoleHost::new(program),
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

/// Sessions of browsers, sealed with keys of the store, so that all processes accept them.
pub(crate) async fn open_sessions(engine: &Engine) -> Result<Arc<BrowserSessions>, CommandError> {
    let seed =
        async |name| engine.seeds().get(name).await.map_err(|failure| CommandError::failed(failure.message));
    let digits: String = seed(SESSIONS_KEY).await?.iter().map(|byte| format!("{byte:02x}")).collect();
    let key =
        Arc::new(Key::parse(&Secret::from(digits)).map_err(|error| CommandError::failed(error.to_string()))?);
    let opener = Arc::clone(&key);
    let sealing = CookieSealing {
        seal: Box::new(move |text| {
            key.seal(SESSIONS_KEY, text, SystemClock.now()).ok().map(|sealed| sealed.text)
        }),
        open: Box::new(move |text| {
            let (name, key, set_at) = (SESSIONS_KEY.to_owned(), opener.id().to_owned(), SystemClock.now());
            opener.open(&SealedSecret { name, key, text: text.to_vec(), set_at }).ok()
        }),
    };
    let made = BrowserSessions::new(sealing, seed(FORMS_KEY).await?, Arc::new(SystemClock));
    made.map(Arc::new)
        .ok_or_else(|| CommandError::failed("the key of the console's forms is no key".to_owned()))
}

/// Location of a policy.
const fn policy_location(shelf: PolicyPlace) -> policies::PolicyLocation {
    match shelf {
        PolicyPlace::Files => policies::PolicyLocation::Files,
        PolicyPlace::Store => policies::PolicyLocation::Store,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map")]
fn saved_policy(kept: SavedPolicyText) -> ChangedPolicy {
    ChangedPolicy {
        name: kept.name(),
        listed: kept.source_name(),
        org: kept.key.owner.clone(),
        location: kept.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn secrets_failure(trouble: SecretsError) -> Failure {
    let kind = match &trouble {
        SecretsError::Missing(_) => FailureKind::NotFound,
        SecretsError::Usage(_) => FailureKind::Invalid,
        SecretsError::Key { .. } | SecretsError::OtherKey(..) | SecretsError::Broken(_) => {
            FailureKind::Conflict
        }
        SecretsError::Store(_) => FailureKind::Internal,
    };
    Failure::new(kind, trouble.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn policy_save_failure(error: PolicySaveError) -> Failure {
    let kind = match &error {
        PolicySaveError::Invalid(_)
        | PolicySaveError::Name(_)
        | PolicySaveError::Both(_)
        | PolicySaveError::Shared { .. } => FailureKind::Invalid,
        PolicySaveError::NotFound(_) | PolicySaveError::NoVersion { .. } => FailureKind::NotFound,
        PolicySaveError::NoFolder => FailureKind::Conflict,
        PolicySaveError::Store(_) | PolicySaveError::File { .. } => FailureKind::Internal,
    };
    Failure::new(kind, error.to_string())
}
