//! The definitions of a project: what there is, what may be run, and what is published of it.
//!
//! Reading a definition takes longer than starting a run, so each is read once per version.

use std::sync::Arc;

use parking_lot::Mutex;
use rialto_engine::Engine;
use rialto_model::{
    backing::{WorkflowSkill, WorkflowsBacking, skill},
    call::{CallTarget, Caller, CallerId},
    clock::Timestamp,
    failure::{Failure, FailureKind},
    flow::{Flow, FlowKind, FlowRun, FlowSchedule, FlowStatus},
    ids::{Scope, TaskId, TokenId},
    json::Json,
    maps::FastMap,
    store::{Store, StoreError},
};

use super::definition_parser;
use crate::definition::{self, Workflow, WorkflowTrigger};

/// Prefix of the skill that runs a draft.
pub(super) const DRAFT_PREFIX: &str = "draft:";

/// Maximum number of parsed versions in the cache.
const MAX_PARSED_VERSIONS: usize = 1_024;

/// The definitions.
pub struct WorkflowDefinitions {
    store: Arc<dyn Store>,
    in_force: Mutex<DefinitionCache>,
    read: Mutex<FastMap<(Scope, String, u64), Arc<Workflow>>>,
    /// Nesting depth of runs that are about to start.
    promised: Mutex<FastMap<TaskId, u32>>,
}

/// Active definitions, as of a generation of the store.
#[derive(Default)]
struct DefinitionCache {
    generation: u64,
    flows: FastMap<(Scope, String), Arc<Flow>>,
}

/// Definition to store.
#[derive(Clone, Debug)]
pub struct NewDefinition {
    /// Org and project.
    pub scope: Scope,
    /// Its text.
    pub text: String,
    /// Name if the text has none.
    pub name: String,
    /// Required notation, if any.
    pub kind: Option<FlowKind>,
    /// Caller that creates it.
    pub by: CallerId,
    /// Token of that caller.
    pub token: Option<TokenId>,
    /// Status that overrides the text's.
    pub status: Option<FlowStatus>,
    /// True if it is managed by the configuration.
    pub configured: bool,
}

/// Why a definition was not taken, or not found.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// Not a valid definition.
    #[error("{0}")]
    Invalid(String),
    /// There is none.
    #[error("there is no workflow or pipeline \"{0}\" here; `rialto workflow list` lists all")]
    NotFound(String),
    /// The configuration owns it.
    #[error("\"{0}\" comes from the configuration: change its file there")]
    Configured(String),
    /// The store did not do its part.
    #[error("the definition could not be written down or read")]
    Store(#[from] StoreError),
    /// The registry did not.
    #[error("the definition is saved, but could not be published: {0}")]
    Unpublished(String),
}

// === impl WorkflowDefinitions ===

impl WorkflowDefinitions {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, in_force: Mutex::default(), read: Mutex::default(), promised: Mutex::default() }
    }

    /// All definitions of a project.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Flow>, DefinitionError> {
        Ok(self.store.flows(Some(scope)).await?)
    }

    /// All definitions of all projects.
    pub async fn all(&self) -> Result<Vec<Flow>, DefinitionError> {
        Ok(self.store.flows(None).await?)
    }

    /// A definition, parsed.
    pub async fn show(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<(Arc<Flow>, Arc<Workflow>), DefinitionError> {
        let flow =
            self.find_active(scope, name).await?.ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?;
        let workflow = self.workflow(&flow).map_err(|failure| DefinitionError::Invalid(failure.message))?;
        Ok((flow, workflow))
    }

    /// Validates a definition without storing it.
    pub fn check(given: &NewDefinition) -> Result<(), DefinitionError> {
        definition_parser::parse_definition(&given.text, &given.name, given.kind).map(drop)
    }

    /// Stores a definition, replacing any with the same name. An identical one changes nothing.
    pub async fn add(&self, engine: &Engine, given: NewDefinition) -> Result<Flow, DefinitionError> {
        let workflow = definition_parser::parse_definition(&given.text, &given.name, given.kind)?;
        let known = self.find_active(&given.scope, &workflow.name).await?;
        if let Some(known) = known.as_ref().filter(|known| known.configured && !given.configured) {
            return Err(DefinitionError::Configured(known.name.clone()));
        }
        let now = engine.now();
        let flow = Flow {
            scope: given.scope,
            name: workflow.name.clone(),
            kind: kind_of(&workflow),
            status: given.status.unwrap_or_else(|| status_of(&workflow)),
            version: known.as_ref().map_or(0, |known| known.version),
            text: given.text,
            configured: given.configured,
            by: given.by,
            at: now,
            token: given.token,
        };
        if let Some(known) = known.filter(|known| has_same_content(known, &flow)) {
            return Ok(Flow::clone(&known));
        }
        self.store_definition(engine, flow, &workflow).await
    }

    /// Sets the status of a definition.
    pub async fn set_status(
        &self,
        engine: &Engine,
        scope: &Scope,
        name: &str,
        status: FlowStatus,
    ) -> Result<Flow, DefinitionError> {
        let (flow, workflow) = self.show(scope, name).await?;
        if flow.configured {
            return Err(DefinitionError::Configured(flow.name.clone()));
        }
        if flow.status == status {
            return Ok(Flow::clone(&flow));
        }
        self.store_definition(engine, Flow { status, at: engine.now(), ..Flow::clone(&flow) }, &workflow)
            .await
    }

    /// Removes a definition. Its runs continue.
    pub async fn remove(
        &self,
        engine: &Engine,
        scope: &Scope,
        name: &str,
        is_configured: bool,
    ) -> Result<(), DefinitionError> {
        let known =
            self.find_active(scope, name).await?.ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?;
        if known.configured && !is_configured {
            return Err(DefinitionError::Configured(known.name.clone()));
        }
        self.store.remove_flow(scope, name).await?;
        self.publish(engine, scope).await
    }

    /// Call target that runs a definition, or a draft.
    pub async fn resolve_target(
        &self,
        engine: &Engine,
        caller: &Caller,
        name: &str,
        is_draft: bool,
    ) -> Result<CallTarget, Failure> {
        engine.policies().sync().await?;
        let flow = self.find_active(&caller.scope, name).await.map_err(DefinitionError::from)?;
        let flow = flow.ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?;
        let agent =
            engine.registry().deployments().ensure_flows(&caller.scope).await.map_err(Failure::from)?;
        let id = if is_draft { [DRAFT_PREFIX, name].concat() } else { flow.kind.skill_id(name) };
        if let Some(known) = agent.card.skill(&id).cloned() {
            return Ok(CallTarget { agent, skill: Some(known) });
        }
        let workflow = self.workflow(&flow)?;
        let mut made = skill(&id, &workflow.name, &workflow.description);
        made.input_schema.clone_from(&workflow.input_schema);
        Ok(CallTarget { agent, skill: Some(Arc::new(made)) })
    }

    /// Call target for a nested run.
    pub(super) fn resolve_nested_target(
        &self,
        engine: &Engine,
        scope: &Scope,
        kind: FlowKind,
        name: &str,
    ) -> Result<CallTarget, Failure> {
        let agent = engine
            .registry()
            .deployments()
            .find_flows(scope)
            .ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?;
        let id = kind.skill_id(name);
        let known = agent.card.skill(&id).cloned();
        let skill = known.unwrap_or_else(|| Arc::new(skill(&id, name, "")));
        Ok(CallTarget { agent, skill: Some(skill) })
    }

    /// Sets the nesting depth of a run.
    pub(super) fn set_depth(&self, task: &TaskId, depth: u32) {
        self.promised.lock().insert(task.clone(), depth);
    }

    /// Nesting depth of a run.
    pub(super) fn depth(&self, task: &TaskId) -> u32 {
        self.promised.lock().remove(task).unwrap_or(0)
    }

    /// Active definition with this name.
    pub(super) async fn find_active(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<Arc<Flow>>, StoreError> {
        let generation = self.store.generation();
        let key = (scope.clone(), name.to_owned());
        {
            let mut known = self.in_force.lock();
            if known.generation != generation {
                *known = DefinitionCache { generation, flows: FastMap::default() };
            } else if let Some(flow) = known.flows.get(&key) {
                return Ok(Some(Arc::clone(flow)));
            }
        }
        let found = self.store.flow(scope, name, None).await?.map(Arc::new);
        let mut known = self.in_force.lock();
        let is_current = known.generation == generation && known.flows.len() < MAX_PARSED_VERSIONS;
        if let Some(flow) = found.as_ref().filter(|_| is_current) {
            known.flows.insert(key, Arc::clone(flow));
        }
        Ok(found)
    }

    /// One version of a definition, parsed.
    pub(super) async fn version(
        &self,
        scope: &Scope,
        name: &str,
        version: u64,
    ) -> Result<Arc<Workflow>, Failure> {
        let known = self.read.lock().get(&(scope.clone(), name.to_owned(), version)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let flow = self.store.flow(scope, name, Some(version)).await.map_err(DefinitionError::from)?;
        self.workflow(&flow.ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?)
    }

    /// Definition of a run, parsed from the text that it started with.
    pub async fn workflow_of_run(&self, run: &FlowRun) -> Result<Arc<Workflow>, Failure> {
        match (&run.definition, run.version) {
            (Some(text), _) => Ok(Arc::new(definition_parser::parse_definition(text, &run.name, None)?)),
            (None, Some(version)) => self.version(&run.scope, &run.name, version).await,
            (None, None) => Err(DefinitionError::NotFound(run.name.clone()).into()),
        }
    }

    /// A definition, read.
    pub fn workflow(&self, flow: &Flow) -> Result<Arc<Workflow>, Failure> {
        let key = (flow.scope.clone(), flow.name.clone(), flow.version);
        if let Some(known) = self.read.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let workflow =
            Arc::new(definition_parser::parse_definition(&flow.text, &flow.name, Some(flow.kind))?);
        let mut read = self.read.lock();
        if read.len() >= MAX_PARSED_VERSIONS {
            read.clear();
        }
        read.insert(key, Arc::clone(&workflow));
        Ok(workflow)
    }

    async fn store_definition(
        &self,
        engine: &Engine,
        flow: Flow,
        workflow: &Workflow,
    ) -> Result<Flow, DefinitionError> {
        let schedules = if flow.status == FlowStatus::Active {
            next_schedules(&flow, workflow, engine.now())
        } else {
            Vec::new()
        };
        let version = self.store.put_flow(&flow, flow.version, &schedules).await?;
        self.publish(engine, &flow.scope).await?;
        Ok(Flow { version, ..flow })
    }

    /// Updates the row of a project's workflows with the published skills.
    pub async fn publish(&self, engine: &Engine, scope: &Scope) -> Result<(), DefinitionError> {
        let flows = self.store.flows(Some(scope)).await?;
        let active = flows.iter().filter(|flow| flow.status == FlowStatus::Active);
        // A definition that cannot be parsed is not published; a call of it reports the problem.
        let read = active.filter_map(|flow| Some((flow, self.workflow(flow).ok()?)));
        let skills = read.filter(|(flow, workflow)| is_published(flow, workflow)).map(|(flow, workflow)| {
            WorkflowSkill {
                id: flow.kind.skill_id(&flow.name),
                name: flow.name.clone(),
                description: workflow.description.clone(),
                input_schema: workflow.input_schema.clone(),
            }
        });
        let unpublished = |error: &dyn std::fmt::Display| DefinitionError::Unpublished(error.to_string());
        let flows = WorkflowsBacking { skills: skills.collect() };
        engine.policies().sync().await.map_err(|failure| unpublished(&failure))?;
        engine
            .registry()
            .deployments()
            .publish_flows(scope, flows)
            .await
            .map_err(|error| unpublished(&error))?;
        Ok(())
    }
}

// === impl DefinitionError ===

impl From<DefinitionError> for Failure {
    fn from(error: DefinitionError) -> Self {
        let kind = match &error {
            DefinitionError::Invalid(_) => FailureKind::Invalid,
            DefinitionError::NotFound(_) => FailureKind::NotFound,
            DefinitionError::Configured(_) | DefinitionError::Store(StoreError::Conflict) => {
                FailureKind::Conflict
            }
            DefinitionError::Store(_) | DefinitionError::Unpublished(_) => FailureKind::Internal,
        };
        if let DefinitionError::Store(cause) = &error {
            tracing::error!("the store failed: {cause}");
        }
        Self::new(kind, error.to_string())
    }
}

/// Why a definition is not run, if it is not.
pub(super) fn refuse_inactive(flow: &Flow, is_draft: bool) -> Option<Failure> {
    let (kind, name) = (flow.kind.as_str(), &flow.name);
    let message = match flow.status {
        FlowStatus::Active => return None,
        FlowStatus::Draft if is_draft => return None,
        FlowStatus::Draft => format!(
            "{kind} {name} is a draft and runs only to be tried out: `rialto {kind} status {name} active` puts it into use"
        ),
        FlowStatus::Archived => format!(
            "{kind} {name} is archived and runs no more; `rialto {kind} status {name} active` puts it into use again"
        ),
    };
    Some(Failure::new(FailureKind::Conflict, message))
}

/// Next start times of a definition's cron triggers.
pub(super) fn next_schedules(flow: &Flow, workflow: &Workflow, now: Timestamp) -> Vec<FlowSchedule> {
    let crons = workflow.triggers.iter().filter_map(|trigger| match trigger {
        WorkflowTrigger::Cron { schedule, .. } => Some(schedule),
        WorkflowTrigger::Manual | WorkflowTrigger::Http { .. } | WorkflowTrigger::Skill => None,
    });
    let moments = (0..).zip(crons).filter_map(|(number, cron)| Some((number, cron.next_after(now)?)));
    moments
        .map(|(number, next_at)| FlowSchedule {
            scope: flow.scope.clone(),
            name: flow.name.clone(),
            number,
            next_at,
            task: TaskId::fresh(),
        })
        .collect()
}

/// The schedule of that number, and what its runs are given.
pub(super) fn cron_trigger(
    workflow: &Workflow,
    number: u32,
) -> Option<(&crate::schedule::CronSchedule, Option<&Json>)> {
    let crons = workflow.triggers.iter().filter_map(|trigger| match trigger {
        WorkflowTrigger::Cron { schedule, input } => Some((schedule, input.as_ref())),
        WorkflowTrigger::Manual | WorkflowTrigger::Http { .. } | WorkflowTrigger::Skill => None,
    });
    crons.into_iter().nth(usize::try_from(number).ok()?)
}

/// True for active pipelines, and for workflows with a skill trigger.
fn is_published(flow: &Flow, workflow: &Workflow) -> bool {
    flow.kind == FlowKind::Pipeline || workflow.triggers.contains(&WorkflowTrigger::Skill)
}

fn has_same_content(known: &Flow, given: &Flow) -> bool {
    (known.status, &known.text, known.configured) == (given.status, &given.text, given.configured)
}

const fn kind_of(workflow: &Workflow) -> FlowKind {
    match workflow.kind {
        definition::WorkflowKind::Workflow => FlowKind::Workflow,
        definition::WorkflowKind::Pipeline => FlowKind::Pipeline,
    }
}

const fn status_of(workflow: &Workflow) -> FlowStatus {
    match workflow.status {
        definition::WorkflowStatus::Draft => FlowStatus::Draft,
        definition::WorkflowStatus::Active => FlowStatus::Active,
        definition::WorkflowStatus::Archived => FlowStatus::Archived,
    }
}
