//! What the door does for a client, whatever carries the request.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use rialto_engine::{DispatchRequest, Engine, Request};
use rialto_model::{
    call::{Caller, Target},
    failure::{Failure, Kind},
    json::Json,
    rights::Right,
};
use rmcp::ErrorData;
use serde_json::json;

use crate::{
    answer::Answer,
    asking::{Inquiry, Seals},
    catalog::{Catalog, Catalogs, Page},
    client::Client,
    config::{Config, ToolList},
    continuing,
    door::LoadAgents,
    find::{self, Finder},
    flows,
    lazy::{self, Searcher},
    own::{self, Own, OwnListed},
    render,
    routing::{self, Invocation, Local},
    sessions::AnswerWaits,
    tasks::InPart,
    tool, trouble,
    underway::{Manner, Underway},
};

/// Lists tools and calls them.
pub(crate) struct Desk {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    /// How many bytes of a result are put into a context; 0 is all of them.
    pub(crate) inline: usize,
    load_agents: LoadAgents,
    catalogs: Catalogs,
    finder: Finder,
    searcher: Searcher,
    pub(crate) seals: Seals,
    pub(crate) in_part: InPart,
    pub(crate) answer_waits: AnswerWaits,
    /// Requests that the fast path has answered.
    pub(crate) fast_path_requests: AtomicU64,
}

/// How a call begins.
pub(crate) enum Begun {
    /// It is already over.
    Done(Answer),
    /// It runs, and there will be something to tell.
    Underway(Box<Underway>),
    /// The person at the client must be asked something first.
    Asked(Box<Inquiry>),
}

// === impl Desk ===

impl Desk {
    pub(crate) fn new(engine: Engine, config: Config, load_agents: LoadAgents) -> Arc<Self> {
        let aliases = Arc::new(config.tool_aliases.clone());
        let (catalogs, finder) = (Catalogs::new(Arc::clone(&aliases)), Finder::new(aliases));
        let (seals, in_part, answer_waits) = (Seals::default(), InPart::default(), AnswerWaits::default());
        let searcher = Searcher::default();
        let inline = config.inline_limit_kb.saturating_mul(1_024);
        Arc::new(Self {
            engine,
            config,
            inline,
            load_agents,
            catalogs,
            finder,
            searcher,
            seals,
            in_part,
            answer_waits,
            fast_path_requests: AtomicU64::new(0),
        })
    }

    /// A page of tools.
    pub(crate) async fn list(&self, client: &Client, cursor: Option<&str>) -> Result<Page, ErrorData> {
        may(client, Right::Discover)?;
        self.engine.sync().await.map_err(|failure| trouble::error(&failure))?;
        let catalog = self.catalogs.of(&self.engine, &client.caller.scope, client.naming);
        if self.is_lazy(client, &catalog) {
            return Ok(catalog.only(lazy::tools()));
        }
        let page = catalog.page(&self.engine, &client.caller, cursor, self.config.page_size.max(1));
        let listed = OwnListed {
            load_agent: self.load_agents.is_open_to(&self.engine, &client.caller),
            routing: self.config.routing_tools,
            workflows: self.config.flow_tools || catalog.has_workflows(),
        };
        page.map(|page| page.with_own(own::listed(&self.config, listed))).ok_or_else(|| {
            let message = "this cursor is not one that tools/list gave; ask for the first page again";
            trouble::error(&Failure::new(Kind::Invalid, message))
        })
    }

    /// Whether a client is shown three tools that find the others.
    fn is_lazy(&self, client: &Client, catalog: &Catalog) -> bool {
        let many = self.config.search_above;
        match client.list {
            Some(list) => list == ToolList::Search,
            None => self.config.tools == ToolList::Search || (many > 0 && catalog.directory().len() > many),
        }
    }

    /// The tool that is meant by a name and its arguments: `call_tool` is named in place of another one.
    pub(crate) fn meant(&self, name: &str, args: Json) -> Result<(String, Json), ErrorData> {
        if name != lazy::CALL {
            return Ok((name.to_owned(), args));
        }
        let wanted: lazy::Wanted = own::read(&args).map_err(|failure| trouble::error(&failure))?;
        if wanted.name == lazy::CALL {
            let failure = Failure::new(Kind::Invalid, "call_tool calls other tools, not itself");
            return Err(trouble::error(&failure));
        }
        Ok((wanted.name, wanted.arguments.unwrap_or_else(Json::empty_object)))
    }

    /// Begins to call a tool.
    pub(crate) async fn call(&self, client: &Client, name: &str, args: Json) -> Result<Begun, ErrorData> {
        may(client, Right::Call)?;
        if name == lazy::CALL {
            let (name, args) = self.meant(name, args)?;
            return Box::pin(self.call(client, &name, args)).await;
        }
        let begun = match Own::parse(name) {
            Some(own) => self.call_own(client, own, &args).await,
            None => self.call_skill(client, name, args).await?,
        };
        begun.or_else(|failure| trouble::told(&failure, client.errors).map(Begun::Done))
    }

    /// Calls a skill. A name that is nobody's is not a failure of a tool, so it is told as an error at once.
    async fn call_skill(
        &self,
        client: &Client,
        name: &str,
        args: Json,
    ) -> Result<Result<Begun, Failure>, ErrorData> {
        if let Err(failure) = self.engine.sync().await {
            return Ok(Err(failure));
        }
        let Some(target) = self.find(&client.caller, name) else {
            return Err(self.no_such_tool(client, name));
        };
        let (args, continued) = match continuing::split(&target, args) {
            Ok(split) => split,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(task) = &continued.task
            && let Err(failure) = Box::pin(self.is_of(client, task, &target)).await
        {
            return Ok(Err(failure));
        }
        let args =
            target.skill.as_ref().map_or_else(|| args.clone(), |skill| tool::arguments(skill, args.clone()));
        let mut request = Request::skill(client.caller.clone(), client.door, target, args);
        (request.task, request.context) = (continued.task, continued.context);
        Ok(self.begin(client, request, Manner::Skill).await)
    }

    /// Refuses to go on with another agent's task.
    async fn is_of(&self, client: &Client, task: &str, target: &Target) -> Result<(), Failure> {
        let worker = self.engine.worker(&client.caller, task).await?.agent;
        if worker.id == target.agent.id {
            return Ok(());
        }
        let (worker, other) = (&worker.slug, &target.agent.slug);
        let message =
            format!("task {task} belongs to agent {worker}, not to {other}; call a skill of that one");
        Err(Failure::new(Kind::Invalid, message))
    }

    async fn call_own(&self, client: &Client, own: Own, args: &Json) -> Result<Begun, Failure> {
        let engine = &self.engine;
        match own {
            Own::LoadAgent => match &self.load_agents {
                LoadAgents::Session => own::load_agent(engine, client, args).await.map(Begun::Done),
                LoadAgents::Registered(registrar) => {
                    own::register_agent(registrar, client, args).await.map(Begun::Done)
                }
                LoadAgents::Refused(reason) => Err(Failure::new(Kind::Denied, reason.clone())),
            },
            Own::ListAgents => own::list_agents(engine, client, args).await.map(Begun::Done),
            Own::SendMessage => {
                let request = own::message(engine, client, args).await?;
                self.begin(client, request, Manner::Message).await
            }
            Own::SearchTools => {
                engine.sync().await?;
                let catalog = self.catalogs.of(engine, &client.caller.scope, client.naming);
                let found = Box::pin(self.searcher.search(engine, client, &catalog, args));
                found.await.map(Begun::Done)
            }
            Own::DescribeTool => {
                engine.sync().await?;
                let catalog = self.catalogs.of(engine, &client.caller.scope, client.naming);
                lazy::describe(&catalog, |name| self.find(&client.caller, name), args).map(Begun::Done)
            }
            Own::Dispatch => self.dispatch(client, routing::dispatch(client, args)?).await,
            Own::MeshResolve => Box::pin(routing::resolve(engine, client, args)).await.map(Begun::Done),
            Own::InvokeA2a => Box::pin(self.invoke(client, args)).await,
            Own::OrchestrateWorkflow => Box::pin(self.run(client, flows::ORCHESTRATE, args)).await,
            Own::ExecuteDag => Box::pin(self.run(client, flows::EXECUTE, args)).await,
            Own::GetTask => Box::pin(self.look_at(client, args)).await.map(Begun::Done),
            Own::CancelTask => own::cancel_task(engine, client, args).await.map(Begun::Done),
        }
    }

    /// Runs work in many steps.
    async fn run(&self, client: &Client, tool: &str, args: &Json) -> Result<Begun, Failure> {
        let request = flows::request(&self.engine, client, tool, args).await?;
        self.begin(client, request, Manner::Skill).await
    }

    /// Has whoever does it best do some work.
    async fn dispatch(&self, client: &Client, wanted: DispatchRequest) -> Result<Begun, Failure> {
        let running = Box::pin(self.engine.dispatch(wanted)).await?;
        let call =
            Underway::new(self.engine.clone(), client, "the agent".to_owned(), running, Manner::Invoked);
        Ok(Begun::Underway(Box::new(call)))
    }

    async fn invoke(&self, client: &Client, args: &Json) -> Result<Begun, Failure> {
        let local = Local { load_agents: &self.load_agents, invoking: &self.config.invoking };
        match routing::invoke(&self.engine, client, &local, args).await? {
            Invocation::Message(request) => self.begin(client, *request, Manner::Invoked).await,
            Invocation::Work(wanted) => self.dispatch(client, *wanted).await,
            Invocation::Refresh(id) => {
                let task = self.engine.task(&client.caller, &id).await?;
                let agent = own::address(&self.engine, &task);
                Ok(Begun::Done(render::invoked(&task, &agent, None, client.reader())))
            }
        }
    }

    pub(crate) async fn begin(
        &self,
        client: &Client,
        request: Request,
        manner: Manner,
    ) -> Result<Begun, Failure> {
        let agent = request.target.agent.slug.clone();
        let mut request = Request { trace: client.trace.clone(), ..request };
        let mut patience = None;
        if client.abilities.tasks && manner == Manner::Skill {
            patience = Some(self.patience(&request.target));
            // Nobody waits for it, so there is no wall clock either.
            request.wall_clock = Some(Duration::from_secs(self.engine.config().patience_secs));
        }
        let backing = request.target.agent.backing.clone();
        let is_promised =
            request.target.skill.as_ref().is_some_and(|skill| tool::promises(&request.target.agent, skill));
        let running = self.engine.call(request).await?;
        let call = Underway::new(self.engine.clone(), client, agent, running, manner);
        let call = call.with_backing(&backing);
        let call = if is_promised { call.with_promise() } else { call };
        Ok(Begun::Underway(Box::new(call.with_patience(patience))))
    }

    /// How long a call is waited for before it becomes a task.
    pub(crate) fn patience(&self, target: &Target) -> Duration {
        let is_long = target.skill.as_ref().is_some_and(|skill| skill.takes_long());
        if is_long { Duration::ZERO } else { Duration::from_millis(self.config.task_after_ms) }
    }

    /// The skill that a caller means.
    pub(crate) fn find(&self, caller: &Caller, name: &str) -> Option<Target> {
        self.finder.find(&self.engine, caller, name)
    }

    pub(crate) fn no_such_tool(&self, client: &Client, name: &str) -> ErrorData {
        let near = find::near(&self.engine, &client.caller, name, &own::NAMES);
        let hint = if near.is_empty() {
            "tools/list shows those there are".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        let failure = Failure::new(Kind::NotFound, format!("there is no tool \"{name}\"; {hint}"));
        trouble::error(&failure.with_data(Json::of(&json!({ "tool": name, "near": near }))))
    }
}

/// Whether the client came in with that right. Policies come later.
pub(crate) fn may(client: &Client, right: Right) -> Result<(), ErrorData> {
    if client.caller.rights.have(right) { Ok(()) } else { Err(trouble::error(&right.lacking())) }
}
