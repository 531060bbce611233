//! Guardrails on the road of a call: what a caller says is looked through before anything leaves, is written down or is shown to a
//! hook, and what comes back before it is written down or told.
//!
//! [`input`] looks at calls and at work that names nobody. [`peer`] stands in front of whoever executes calls, so that nothing comes
//! back past it, whoever asked; [`watch`] is what it does with the events. [`screen`] asks the guardrails, and the model servers
//! they name. What was found is told as one record of the audit trail ([`report`]), by kinds and never by its text.

mod artifact_buffer;
mod checker;
pub(crate) mod peer;
mod report;
mod request_filter;
mod response_filter;
mod text_fields;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use rialto_guard::{
    CompileError, Guards,
    classifier::{Answer, Classifier},
    setting::{Called, Guardrails, Placed, SettingError},
};
use rialto_model::{
    call::CallTarget,
    guardrail::GuardrailNotice,
    ids::{AgentId, TaskId},
    maps::FastMap,
    name,
};

pub(crate) use self::request_filter::as_cleared;
use crate::engine::Engine;

/// Asks a model server about a text.
pub type Asker = Arc<dyn Fn(&Classifier, &str) -> BoxFuture<'static, Result<Answer, String>> + Send + Sync>;

/// So many warnings wait for their calls to leave; one more forgets all.
const WAITING: usize = 4_096;

/// The guardrails in force, if there are any. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct ActiveGuardrails(Arc<ArcSwapOption<Guarding>>);

/// The guardrails of an installation, put into shape as they are needed.
pub struct Guarding {
    placed: Vec<Placed>,
    setting: Guardrails,
    asker: Asker,
    /// By which of them apply: there are few ways, and building one takes some milliseconds.
    compiled: Mutex<FastMap<Vec<usize>, Option<Arc<Guards>>>>,
    known: RwLock<GuardrailLookup>,
    /// What callers are to be warned of once their calls have left.
    warnings: Mutex<FastMap<TaskId, GuardrailNotice>>,
}

/// Which guardrails are on which skills, as the names were at a version of the registry.
#[derive(Default)]
struct GuardrailLookup {
    version: u64,
    by_agent: FastMap<AgentId, FastMap<Arc<str>, Option<Arc<Guards>>>>,
}

// === impl Post ===

impl ActiveGuardrails {
    /// The guardrails in force, if there are any.
    pub(crate) fn load(&self) -> Option<Arc<Guarding>> {
        // Most installations have none, and need not count who looks.
        if self.0.load().is_none() { None } else { self.0.load_full() }
    }
}

// === impl Guarding ===

impl Guarding {
    /// Guardrails as they are written; none when nothing is looked for. Each is put into shape, so what does not hold up is found here.
    pub fn new(setting: &Guardrails, asker: Asker) -> Result<Option<Self>, SettingError> {
        let placed = setting.placed();
        if placed.is_empty() {
            return Ok(None);
        }
        let mut compiled = FastMap::default();
        for (at, Placed { place, guardrail, .. }) in placed.iter().enumerate() {
            let guards = Guards::compile([guardrail]);
            let guards = guards.map_err(|source| SettingError { place: place.clone(), source })?;
            compiled.insert(vec![at], guards.map(Arc::new));
        }
        Ok(Some(Self {
            placed,
            setting: setting.clone(),
            asker,
            compiled: Mutex::new(compiled),
            known: RwLock::default(),
            warnings: Mutex::default(),
        }))
    }

    /// The same as they are written.
    pub const fn setting(&self) -> &Guardrails {
        &self.setting
    }

    /// The guardrails on whatever is called, if there are any.
    pub(crate) fn of(&self, version: u64, target: &CallTarget) -> Option<Arc<Guards>> {
        let skill = target.skill.as_ref().map_or("", |skill| skill.id.as_str());
        {
            let known = self.known.read();
            if known.version == version
                && let Some(guards) =
                    known.by_agent.get(&target.agent.id).and_then(|skills| skills.get(skill))
            {
                return guards.clone();
            }
        }
        let guards = self.find(target);
        let mut known = self.known.write();
        if known.version != version {
            *known = GuardrailLookup { version, by_agent: FastMap::default() };
        }
        known.by_agent.entry(target.agent.id.clone()).or_default().insert(skill.into(), guards.clone());
        guards
    }

    /// Where those stand that are on whatever is called so.
    pub fn places(&self, called: &Called<'_>) -> Vec<&str> {
        let applying = self.placed.iter().filter(|placed| placed.whose.is_for(called));
        applying.map(|placed| placed.place.as_str()).collect()
    }

    /// The guardrails on whatever is called so.
    pub fn guards(&self, called: &Called<'_>) -> Option<Arc<Guards>> {
        let applying = self.placed.iter().enumerate().filter(|(_, placed)| placed.whose.is_for(called));
        self.together(applying.map(|(at, _)| at).collect())
    }

    /// All guardrails there are.
    fn all(&self) -> Option<Arc<Guards>> {
        self.together((0..self.placed.len()).collect())
    }

    fn together(&self, applying: Vec<usize>) -> Option<Arc<Guards>> {
        self.compile(applying).unwrap_or_else(|error| {
            // Each of them holds up by itself, so all of them together do. If not, nothing goes on.
            tracing::error!("guardrails cannot be put together, so what they are on is blocked: {error}");
            Some(Arc::new(Guards::closed()))
        })
    }

    fn find(&self, target: &CallTarget) -> Option<Arc<Guards>> {
        let skill = target.verb();
        let canonical = match &target.skill {
            Some(skill) => name::canonical(&target.agent.slug, skill.id.as_str()),
            None => skill.clone(),
        };
        self.guards(&Called {
            org: target.agent.scope.org.as_str(),
            agent: &target.agent.slug,
            skill: &skill,
            canonical: &canonical,
        })
    }

    fn compile(&self, applying: Vec<usize>) -> Result<Option<Arc<Guards>>, CompileError> {
        if applying.is_empty() {
            return Ok(None);
        }
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(&applying) {
            return Ok(known.clone());
        }
        let guardrails =
            applying.iter().filter_map(|at| self.placed.get(*at)).map(|placed| &placed.guardrail);
        let guards = Guards::compile(guardrails)?.map(Arc::new);
        compiled.insert(applying, guards.clone());
        Ok(guards)
    }

    /// Remembers what the caller of a task is to be warned of.
    fn warn(&self, task: &TaskId, notice: GuardrailNotice) {
        let mut warnings = self.warnings.lock();
        if warnings.len() >= WAITING {
            // Calls that never left.
            warnings.clear();
        }
        warnings.insert(task.clone(), notice);
    }

    /// What the caller of a task is to be warned of.
    fn warning(&self, task: &TaskId) -> Option<GuardrailNotice> {
        let mut warnings = self.warnings.lock();
        if warnings.is_empty() { None } else { warnings.remove(task) }
    }
}

// === impl Engine ===

impl Engine {
    /// From now on these guardrails are in force. Calls under way keep those they began with.
    pub fn guard(&self, guarding: Option<Guarding>) {
        self.inner().guarding.0.store(guarding.map(Arc::new));
    }

    /// The guardrails in force, if there are any.
    pub fn guarding(&self) -> Option<Arc<Guarding>> {
        self.inner().guarding.load()
    }
}
