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

use super::reading;
use crate::definition::{self, Trigger, Workflow};

/// What a draft is called as, to be tried out.
pub(super) const DRAFT: &str = "draft:";

/// So many versions are kept read.
const KEPT: usize = 1_024;

/// The definitions.
pub struct Book {
    store: Arc<dyn Store>,
    in_force: Mutex<InForce>,
    read: Mutex<FastMap<(Scope, String, u64), Arc<Workflow>>>,
    /// How deep runs are inside each other that were promised and have not begun.
    promised: Mutex<FastMap<TaskId, u32>>,
}

/// What is in force, as it was when the store's changes counted so many.
#[derive(Default)]
struct InForce {
    generation: u64,
    flows: FastMap<(Scope, String), Arc<Flow>>,
}

/// A definition that somebody gives.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it shall belong.
    pub scope: Scope,
    /// Its text.
    pub text: String,
    /// What it is called if it does not say so itself.
    pub name: String,
    /// What it must be; nothing leaves it to the text.
    pub kind: Option<FlowKind>,
    /// Who gives it.
    pub by: CallerId,
    /// The token that one came with.
    pub token: Option<TokenId>,
    /// Whether it may be run, in place of what the text says.
    pub status: Option<FlowStatus>,
    /// Whether the configuration owns it.
    pub configured: bool,
}

/// Why a definition was not taken, or not found.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// It is not one.
    #[error("{0}")]
    Invalid(String),
    /// There is none.
    #[error("there is no workflow or pipeline \"{0}\" here; `rialto workflow list` shows those there are")]
    NotFound(String),
    /// The configuration owns it.
    #[error("\"{0}\" comes from the configuration: change its file there")]
    Configured(String),
    /// The store did not do its part.
    #[error("the definition could not be written down or read")]
    Store(#[from] StoreError),
    /// The registry did not.
    #[error("the definition is kept, but could not be published: {0}")]
    Unpublished(String),
}

// === impl Book ===

impl Book {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, in_force: Mutex::default(), read: Mutex::default(), promised: Mutex::default() }
    }

    /// All definitions of a project.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Flow>, BookError> {
        Ok(self.store.flows(Some(scope)).await?)
    }

    /// All definitions of all projects.
    pub async fn all(&self) -> Result<Vec<Flow>, BookError> {
        Ok(self.store.flows(None).await?)
    }

    /// One definition, read.
    pub async fn show(&self, scope: &Scope, name: &str) -> Result<(Arc<Flow>, Arc<Workflow>), BookError> {
        let flow = self.find(scope, name).await?.ok_or_else(|| BookError::NotFound(name.to_owned()))?;
        let workflow = self.workflow(&flow).map_err(|failure| BookError::Invalid(failure.message))?;
        Ok((flow, workflow))
    }

    /// Whether a definition would be taken.
    pub fn check(given: &Given) -> Result<(), BookError> {
        reading::workflow(&given.text, &given.name, given.kind).map(drop)
    }

    /// Takes a definition, in place of the one that has its name. The same again changes nothing.
    pub async fn add(&self, engine: &Engine, given: Given) -> Result<Flow, BookError> {
        let workflow = reading::workflow(&given.text, &given.name, given.kind)?;
        let known = self.find(&given.scope, &workflow.name).await?;
        if let Some(known) = known.as_ref().filter(|known| known.configured && !given.configured) {
            return Err(BookError::Configured(known.name.clone()));
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
        if let Some(known) = known.filter(|known| is_same(known, &flow)) {
            return Ok(Flow::clone(&known));
        }
        self.put(engine, flow, &workflow).await
    }

    /// Says whether a definition may be run.
    pub async fn set_status(
        &self,
        engine: &Engine,
        scope: &Scope,
        name: &str,
        status: FlowStatus,
    ) -> Result<Flow, BookError> {
        let (flow, workflow) = self.show(scope, name).await?;
        if flow.configured {
            return Err(BookError::Configured(flow.name.clone()));
        }
        if flow.status == status {
            return Ok(Flow::clone(&flow));
        }
        self.put(engine, Flow { status, at: engine.now(), ..Flow::clone(&flow) }, &workflow).await
    }

    /// Forgets a definition. Runs of it go on.
    pub async fn remove(
        &self,
        engine: &Engine,
        scope: &Scope,
        name: &str,
        is_configured: bool,
    ) -> Result<(), BookError> {
        let known = self.find(scope, name).await?.ok_or_else(|| BookError::NotFound(name.to_owned()))?;
        if known.configured && !is_configured {
            return Err(BookError::Configured(known.name.clone()));
        }
        self.store.remove_flow(scope, name).await?;
        self.publish(engine, scope).await
    }

    /// What is called to run a definition, and to try a draft out.
    pub async fn target_of(
        &self,
        engine: &Engine,
        caller: &Caller,
        name: &str,
        is_draft: bool,
    ) -> Result<CallTarget, Failure> {
        engine.sync().await?;
        let flow = self.find(&caller.scope, name).await.map_err(BookError::from)?;
        let flow = flow.ok_or_else(|| BookError::NotFound(name.to_owned()))?;
        let agent = engine.registry().flows(&caller.scope).await.map_err(Failure::from)?;
        let id = if is_draft { [DRAFT, name].concat() } else { flow.kind.skill_id(name) };
        if let Some(known) = agent.card.skill(&id).cloned() {
            return Ok(CallTarget { agent, skill: Some(known) });
        }
        let workflow = self.workflow(&flow)?;
        let mut made = skill(&id, &workflow.name, &workflow.description);
        made.input_schema.clone_from(&workflow.input_schema);
        Ok(CallTarget { agent, skill: Some(Arc::new(made)) })
    }

    /// The same from inside a run, where nobody waits.
    pub(super) fn target(
        &self,
        engine: &Engine,
        scope: &Scope,
        kind: FlowKind,
        name: &str,
    ) -> Result<CallTarget, Failure> {
        let agent =
            engine.registry().find_flows(scope).ok_or_else(|| BookError::NotFound(name.to_owned()))?;
        let id = kind.skill_id(name);
        let known = agent.card.skill(&id).cloned();
        let skill = known.unwrap_or_else(|| Arc::new(skill(&id, name, "")));
        Ok(CallTarget { agent, skill: Some(skill) })
    }

    /// Says how deep a run will be inside others.
    pub(super) fn promise(&self, task: &TaskId, depth: u32) {
        self.promised.lock().insert(task.clone(), depth);
    }

    /// How deep a run is inside others.
    pub(super) fn depth_of(&self, task: &TaskId) -> u32 {
        self.promised.lock().remove(task).unwrap_or(0)
    }

    /// The definition that is in force under a name.
    pub(super) async fn find(&self, scope: &Scope, name: &str) -> Result<Option<Arc<Flow>>, StoreError> {
        let generation = self.store.generation();
        let key = (scope.clone(), name.to_owned());
        {
            let mut known = self.in_force.lock();
            if known.generation != generation {
                *known = InForce { generation, flows: FastMap::default() };
            } else if let Some(flow) = known.flows.get(&key) {
                return Ok(Some(Arc::clone(flow)));
            }
        }
        let found = self.store.flow(scope, name, None).await?.map(Arc::new);
        let mut known = self.in_force.lock();
        let is_current = known.generation == generation && known.flows.len() < KEPT;
        if let Some(flow) = found.as_ref().filter(|_| is_current) {
            known.flows.insert(key, Arc::clone(flow));
        }
        Ok(found)
    }

    /// One version of a definition, read.
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
        let flow = self.store.flow(scope, name, Some(version)).await.map_err(BookError::from)?;
        self.workflow(&flow.ok_or_else(|| BookError::NotFound(name.to_owned()))?)
    }

    /// What a run runs, read: the text that it began with.
    pub async fn workflow_of(&self, run: &FlowRun) -> Result<Arc<Workflow>, Failure> {
        match (&run.definition, run.version) {
            (Some(text), _) => Ok(Arc::new(reading::workflow(text, &run.name, None)?)),
            (None, Some(version)) => self.version(&run.scope, &run.name, version).await,
            (None, None) => Err(BookError::NotFound(run.name.clone()).into()),
        }
    }

    /// A definition, read.
    pub fn workflow(&self, flow: &Flow) -> Result<Arc<Workflow>, Failure> {
        let key = (flow.scope.clone(), flow.name.clone(), flow.version);
        if let Some(known) = self.read.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let workflow = Arc::new(reading::workflow(&flow.text, &flow.name, Some(flow.kind))?);
        let mut read = self.read.lock();
        if read.len() >= KEPT {
            read.clear();
        }
        read.insert(key, Arc::clone(&workflow));
        Ok(workflow)
    }

    async fn put(&self, engine: &Engine, flow: Flow, workflow: &Workflow) -> Result<Flow, BookError> {
        let schedules = if flow.status == FlowStatus::Active {
            schedules_of(&flow, workflow, engine.now())
        } else {
            Vec::new()
        };
        let version = self.store.put_flow(&flow, flow.version, &schedules).await?;
        self.publish(engine, &flow.scope).await?;
        Ok(Flow { version, ..flow })
    }

    /// Makes the row of a project's workflows say what is published.
    pub async fn publish(&self, engine: &Engine, scope: &Scope) -> Result<(), BookError> {
        let flows = self.store.flows(Some(scope)).await?;
        let active = flows.iter().filter(|flow| flow.status == FlowStatus::Active);
        // One that cannot be read any more is not published; whoever runs it is told why.
        let read = active.filter_map(|flow| Some((flow, self.workflow(flow).ok()?)));
        let skills = read.filter(|(flow, workflow)| is_published(flow, workflow)).map(|(flow, workflow)| {
            WorkflowSkill {
                id: flow.kind.skill_id(&flow.name),
                name: flow.name.clone(),
                description: workflow.description.clone(),
                input_schema: workflow.input_schema.clone(),
            }
        });
        let unpublished = |error: &dyn std::fmt::Display| BookError::Unpublished(error.to_string());
        let flows = WorkflowsBacking { skills: skills.collect() };
        engine.sync().await.map_err(|failure| unpublished(&failure))?;
        engine.registry().publish_flows(scope, flows).await.map_err(|error| unpublished(&error))?;
        Ok(())
    }
}

// === impl BookError ===

impl From<BookError> for Failure {
    fn from(error: BookError) -> Self {
        let kind = match &error {
            BookError::Invalid(_) => FailureKind::Invalid,
            BookError::NotFound(_) => FailureKind::NotFound,
            BookError::Configured(_) | BookError::Store(StoreError::Conflict) => FailureKind::Conflict,
            BookError::Store(_) | BookError::Unpublished(_) => FailureKind::Internal,
        };
        if let BookError::Store(cause) = &error {
            tracing::error!("the store failed: {cause}");
        }
        Self::new(kind, error.to_string())
    }
}

/// Why a definition is not run, if it is not.
pub(super) fn refusal(flow: &Flow, is_draft: bool) -> Option<Failure> {
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

/// When a definition is next run by itself.
pub(super) fn schedules_of(flow: &Flow, workflow: &Workflow, now: Timestamp) -> Vec<FlowSchedule> {
    let crons = workflow.triggers.iter().filter_map(|trigger| match trigger {
        Trigger::Cron { schedule, .. } => Some(schedule),
        Trigger::Manual | Trigger::Http { .. } | Trigger::Skill => None,
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
pub(super) fn cron_of(
    workflow: &Workflow,
    number: u32,
) -> Option<(&crate::schedule::Schedule, Option<&Json>)> {
    let crons = workflow.triggers.iter().filter_map(|trigger| match trigger {
        Trigger::Cron { schedule, input } => Some((schedule, input.as_ref())),
        Trigger::Manual | Trigger::Http { .. } | Trigger::Skill => None,
    });
    crons.into_iter().nth(usize::try_from(number).ok()?)
}

/// Active pipelines are skills, and so are workflows that say so.
fn is_published(flow: &Flow, workflow: &Workflow) -> bool {
    flow.kind == FlowKind::Pipeline || workflow.triggers.contains(&Trigger::Skill)
}

fn is_same(known: &Flow, given: &Flow) -> bool {
    (known.status, &known.text, known.configured) == (given.status, &given.text, given.configured)
}

const fn kind_of(workflow: &Workflow) -> FlowKind {
    match workflow.kind {
        definition::Kind::Workflow => FlowKind::Workflow,
        definition::Kind::Pipeline => FlowKind::Pipeline,
    }
}

const fn status_of(workflow: &Workflow) -> FlowStatus {
    match workflow.status {
        definition::Status::Draft => FlowStatus::Draft,
        definition::Status::Active => FlowStatus::Active,
        definition::Status::Archived => FlowStatus::Archived,
    }
}
