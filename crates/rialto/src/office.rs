//! What the program does for the console: policies, cards, credentials, tokens, and what is deployed.

use std::sync::Arc;

use async_trait::async_trait;
use rialto_console::office::{Office, PolicyVersion};
use rialto_edge::session::{Sealing, Sessions};
use rialto_engine::Engine;
use rialto_model::{
    agent::Agent,
    card::Card,
    clock::{Clock, SystemClock},
    credential::Secret,
    failure::{Failure, Kind},
    ids::Scope,
    json::Json,
    store::Sealed,
};
use rialto_policy::{Source, Template};
use rialto_store::vault::Key;

use crate::{
    commands::{agents::described, tokens},
    output::Trouble,
    policies::{Book, SaveError},
    program::Program,
    tools::shown,
};

/// The names of the keys that sessions of browsers are sealed with, and their forms.
const SESSIONS: &str = "console sessions";
const FORMS: &str = "console forms";

/// The program's own hands.
pub(crate) struct Clerk {
    policies: Book,
    engine: Engine,
}

// === impl Clerk ===

impl Clerk {
    pub(crate) fn of(program: &Program) -> Arc<Self> {
        Arc::new(Self { policies: program.policies.clone(), engine: program.engine.clone() })
    }
}

#[async_trait]
impl Office for Clerk {
    async fn policies(&self) -> Result<Vec<Source>, Failure> {
        let sources = self.policies.sources().await.map_err(SaveError::from).map_err(refused)?;
        sources.map_err(|error| Failure::new(Kind::Internal, error.to_string()))
    }

    async fn save_policy(&self, by: &str, name: &str, text: &str) -> Result<String, Failure> {
        let shelf = None;
        let kept = self.policies.changed_by(by).save(name, text, shelf, SystemClock.now()).await;
        kept.map(|kept| kept.source_name()).map_err(refused)
    }

    async fn add_policy(&self, by: &str, template: &Template<'_>) -> Result<String, Failure> {
        let kept = self.policies.changed_by(by).add(template, None, None, SystemClock.now()).await;
        kept.map(|kept| kept.source_name()).map_err(refused)
    }

    async fn remove_policy(&self, by: &str, name: &str) -> Result<(), Failure> {
        self.policies.changed_by(by).remove(name, None, SystemClock.now()).await.map(drop).map_err(refused)
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, Failure> {
        let versions = self.policies.history(name, None).await.map_err(refused)?;
        let version = |old: crate::policies::Version| PolicyVersion {
            version: old.version,
            at: old.at,
            by: old.by,
            text: old.text,
        };
        Ok(versions.into_iter().map(version).collect())
    }

    async fn forget_policies(&self, agent: &Agent) -> Result<(), Failure> {
        self.policies.forget(agent, SystemClock.now()).await.map_err(refused)
    }

    fn read_card(&self, text: &str) -> Option<Card> {
        rialto_a2a_wire::card::decode(text).ok()
    }

    fn credential(&self, agent: &Agent) -> Option<String> {
        Some(described(agent)).filter(|text| !text.is_empty())
    }

    fn fresh_token(&self) -> Result<String, Failure> {
        tokens::fresh_token().map_err(|_| Failure::new(Kind::Internal, "the system gives no random numbers"))
    }

    fn tools(&self, scope: &Scope) -> Json {
        Json::parse(shown::all(self.engine.registry(), scope)).unwrap_or_else(|_| Json::null())
    }
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
            opener.open(&Sealed { name, key, text: text.to_vec(), set_at }).ok()
        }),
    };
    let made = Sessions::new(sealing, seed(FORMS).await?, Arc::new(SystemClock));
    made.map(Arc::new).ok_or_else(|| Trouble::other("the key of the console's forms is no key".to_owned()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: SaveError) -> Failure {
    let kind = match &error {
        SaveError::Invalid(_) | SaveError::Name(_) => Kind::Invalid,
        SaveError::NotFound(_) | SaveError::NoVersion { .. } => Kind::NotFound,
        SaveError::NoFolder | SaveError::Both(_) | SaveError::Shared { .. } => Kind::Conflict,
        SaveError::Store(_) | SaveError::File { .. } => Kind::Internal,
    };
    Failure::new(kind, error.to_string())
}
