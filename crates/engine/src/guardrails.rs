//! Guardrails in the call pipeline: requests are checked before anything leaves, is stored or is passed to a hook, and responses before
//! they are stored or published.
//!
//! [`request_filter`] checks calls and work that names no agent. [`peer`] is in front of all backends, so that no response bypasses it;
//! [`response_filter`] checks the events. [`checker`] runs the guardrails, and asks the model servers they name. Findings are one record of
//! the audit log ([`report`]), by kind and never by text.

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
use rialto_guardrails::{
    CompileError, GuardrailRuleset,
    classifier::{ClassifierOptions, ClassifyResponse},
    scoped_rules::{CalledSkill, Guardrails, ScopedGuardrail, ScopedRuleError},
};
use rialto_model::{
    call::CallTarget,
    guardrail::GuardrailNotice,
    ids::{AgentId, TaskId},
    maps::FastMap,
    name,
};

pub(crate) use self::request_filter::apply_redaction;
use crate::{journal::TaskJournal, policies::PolicyService, registry::Registry};

/// Asks a model server about a text.
pub type Asker = Arc<
    dyn Fn(&ClassifierOptions, &str) -> BoxFuture<'static, Result<ClassifyResponse, String>> + Send + Sync,
>;

/// Maximum number of warnings that wait for their calls to leave; one more removes all.
const MAX_PENDING_WARNINGS: usize = 4_096;

/// The active guardrails, if there are any. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct ActiveGuardrails(Arc<ArcSwapOption<GuardrailSet>>);

/// The active guardrails, and their checks of requests.
pub struct GuardrailService {
    active: ActiveGuardrails,
    registry: Arc<Registry>,
    policies: Arc<PolicyService>,
    journal: TaskJournal,
}

/// The guardrails of an installation, compiled when they are needed.
pub struct GuardrailSet {
    placed: Vec<ScopedGuardrail>,
    setting: Guardrails,
    asker: Asker,
    /// Compiled guardrails by the indexes of those that apply: there are few combinations, and compiling one takes some milliseconds.
    compiled: Mutex<FastMap<Vec<usize>, Option<Arc<GuardrailRuleset>>>>,
    known: RwLock<GuardrailLookup>,
    /// Warnings for callers whose calls have not left yet.
    warnings: Mutex<FastMap<TaskId, GuardrailNotice>>,
}

/// Cache of the guardrails of each skill, for one version of the registry.
#[derive(Default)]
struct GuardrailLookup {
    version: u64,
    by_agent: FastMap<AgentId, FastMap<Arc<str>, Option<Arc<GuardrailRuleset>>>>,
}

// === impl ActiveGuardrails ===

impl ActiveGuardrails {
    /// The active guardrails, if there are any.
    pub(crate) fn load(&self) -> Option<Arc<GuardrailSet>> {
        // Most installations have none, and need no reference count.
        if self.0.load().is_none() { None } else { self.0.load_full() }
    }
}

// === impl GuardrailSet ===

impl GuardrailSet {
    /// Compiles guardrails; none when nothing is checked. Each is compiled, so an invalid one fails here.
    pub fn new(setting: &Guardrails, asker: Asker) -> Result<Option<Self>, ScopedRuleError> {
        let placed = setting.enabled();
        if placed.is_empty() {
            return Ok(None);
        }
        let mut compiled = FastMap::default();
        for (at, ScopedGuardrail { place, guardrail, .. }) in placed.iter().enumerate() {
            let guards = GuardrailRuleset::compile([guardrail]);
            let guards = guards.map_err(|source| ScopedRuleError { place: place.clone(), source })?;
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

    /// The guardrails as they are configured.
    pub const fn setting(&self) -> &Guardrails {
        &self.setting
    }

    /// The guardrails of a target, if there are any.
    pub(crate) fn guards_of(&self, version: u64, target: &CallTarget) -> Option<Arc<GuardrailRuleset>> {
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

    /// Places in the configuration of the guardrails that apply to a name.
    pub fn places(&self, called: &CalledSkill<'_>) -> Vec<&str> {
        let applying = self.placed.iter().filter(|placed| placed.scope.applies_to(called));
        applying.map(|placed| placed.place.as_str()).collect()
    }

    /// The guardrails that apply to a name.
    pub fn guards(&self, called: &CalledSkill<'_>) -> Option<Arc<GuardrailRuleset>> {
        let applying = self.placed.iter().enumerate().filter(|(_, placed)| placed.scope.applies_to(called));
        self.compile_or_block(applying.map(|(at, _)| at).collect())
    }

    /// All guardrails.
    fn all(&self) -> Option<Arc<GuardrailRuleset>> {
        self.compile_or_block((0..self.placed.len()).collect())
    }

    fn compile_or_block(&self, applying: Vec<usize>) -> Option<Arc<GuardrailRuleset>> {
        self.compile(applying).unwrap_or_else(|error| {
            // Each of them compiles alone, so all of them do together. If not, everything is blocked.
            tracing::error!("guardrails cannot be put together, so what they are on is blocked: {error}");
            Some(Arc::new(GuardrailRuleset::blocking_all()))
        })
    }

    fn find(&self, target: &CallTarget) -> Option<Arc<GuardrailRuleset>> {
        let skill = target.verb();
        let canonical = match &target.skill {
            Some(skill) => name::canonical(&target.agent.slug, skill.id.as_str()),
            None => skill.clone(),
        };
        self.guards(&CalledSkill {
            org: target.agent.scope.org.as_str(),
            agent: &target.agent.slug,
            skill: &skill,
            canonical: &canonical,
        })
    }

    fn compile(&self, applying: Vec<usize>) -> Result<Option<Arc<GuardrailRuleset>>, CompileError> {
        if applying.is_empty() {
            return Ok(None);
        }
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(&applying) {
            return Ok(known.clone());
        }
        let guardrails =
            applying.iter().filter_map(|at| self.placed.get(*at)).map(|placed| &placed.guardrail);
        let guards = GuardrailRuleset::compile(guardrails)?.map(Arc::new);
        compiled.insert(applying, guards.clone());
        Ok(guards)
    }

    /// Stores a warning for the caller of a task.
    fn warn(&self, task: &TaskId, notice: GuardrailNotice) {
        let mut warnings = self.warnings.lock();
        if warnings.len() >= MAX_PENDING_WARNINGS {
            // Calls that never left.
            warnings.clear();
        }
        warnings.insert(task.clone(), notice);
    }

    /// Takes the warning for the caller of a task.
    fn warning(&self, task: &TaskId) -> Option<GuardrailNotice> {
        let mut warnings = self.warnings.lock();
        if warnings.is_empty() { None } else { warnings.remove(task) }
    }
}

// === impl GuardrailService ===

impl GuardrailService {
    pub(crate) const fn new(
        active: ActiveGuardrails,
        registry: Arc<Registry>,
        policies: Arc<PolicyService>,
        journal: TaskJournal,
    ) -> Self {
        Self { active, registry, policies, journal }
    }

    /// Replaces the active guardrails. Calls in progress keep those they started with.
    pub fn replace(&self, guardrails: Option<GuardrailSet>) {
        self.active.0.store(guardrails.map(Arc::new));
    }

    /// The active guardrails, if there are any.
    pub fn active(&self) -> Option<Arc<GuardrailSet>> {
        self.active.load()
    }
}
