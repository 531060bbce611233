//! Tool service: operations of the MCP server, independent of the transport.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use rialto_engine::{CallRequest, DispatchRequest, Engine};
use rialto_model::{
    call::{CallTarget, Caller},
    failure::{Failure, FailureKind},
    json::Json,
    token_scopes::TokenScope,
};
use rmcp::ErrorData;
use serde_json::json;

use crate::{
    builtin_tools::{self, BuiltinTool, OfferedBuiltins},
    call_stream::{ResultStyle, ToolCallStream},
    catalog::{ToolCatalog, ToolCatalogs, ToolPage},
    client_profile::ClientProfile,
    config::{Config, ToolList},
    continuation_args,
    dispatch_tools::{self, AgentLoader, InvokeTarget},
    elicitation::{QuestionSet, StateSealer},
    errors, render,
    server::LoadAgents,
    sessions::AnswerWaits,
    tasks::PartialAnswers,
    tool,
    tool_lookup::{self, ToolLookup},
    tool_result::ToolResult,
    tool_search::{self, ToolSearch},
    workflow_tools,
};

/// Lists and calls tools.
pub(crate) struct ToolService {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    /// Maximum bytes of a result in a client's context; 0 is unlimited.
    pub(crate) inline: usize,
    load_agents: LoadAgents,
    catalogs: ToolCatalogs,
    finder: ToolLookup,
    searcher: ToolSearch,
    pub(crate) seals: StateSealer,
    pub(crate) in_part: PartialAnswers,
    pub(crate) answer_waits: AnswerWaits,
    /// Number of requests that the fast path has answered.
    pub(crate) fast_path_requests: AtomicU64,
}

/// Start of a tool call.
pub(crate) enum ToolCallStart {
    /// Finished already.
    Done(ToolResult),
    /// Running; follow the stream for updates.
    Underway(Box<ToolCallStream>),
    /// Needs answers from the person at the client first.
    Asked(Box<QuestionSet>),
}

// === impl ToolService ===

impl ToolService {
    pub(crate) fn new(engine: Engine, config: Config, load_agents: LoadAgents) -> Arc<Self> {
        let aliases = Arc::new(config.tool_aliases.clone());
        let (catalogs, finder) = (ToolCatalogs::new(Arc::clone(&aliases)), ToolLookup::new(aliases));
        let (seals, in_part, answer_waits) =
            (StateSealer::default(), PartialAnswers::default(), AnswerWaits::default());
        let searcher = ToolSearch::default();
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

    /// One page of tools.
    pub(crate) async fn list(
        &self,
        client: &ClientProfile,
        cursor: Option<&str>,
    ) -> Result<ToolPage, ErrorData> {
        may(client, TokenScope::Discover)?;
        self.engine.policies().sync().await.map_err(|failure| errors::error(&failure))?;
        let catalog = self.catalogs.of(&self.engine, &client.caller.scope, client.naming);
        if self.is_lazy(client, &catalog) {
            return Ok(catalog.only(tool_search::tools()));
        }
        let page = catalog.page(&self.engine, &client.caller, cursor, self.config.page_size.max(1));
        let listed = OfferedBuiltins {
            load_agent: self.load_agents.is_open_to(&self.engine, &client.caller),
            routing: self.config.routing_tools,
            workflows: self.config.flow_tools || catalog.has_workflows(),
        };
        page.map(|page| page.with_own(builtin_tools::listed(&self.config, listed))).ok_or_else(|| {
            let message = "this cursor is not one that tools/list gave; ask for the first page again";
            errors::error(&Failure::new(FailureKind::Invalid, message))
        })
    }

    /// True for a client that gets the three search tools in place of the list.
    fn is_lazy(&self, client: &ClientProfile, catalog: &ToolCatalog) -> bool {
        let many = self.config.search_above;
        match client.list {
            Some(list) => list == ToolList::Search,
            None => self.config.tools == ToolList::Search || (many > 0 && catalog.directory().len() > many),
        }
    }

    /// Resolves the tool of a call: unwraps `call_tool`, whose arguments name another tool.
    pub(crate) fn meant(&self, name: &str, args: Json) -> Result<(String, Json), ErrorData> {
        if name != tool_search::CALL {
            return Ok((name.to_owned(), args));
        }
        let wanted: tool_search::CallToolArgs =
            builtin_tools::read(&args).map_err(|failure| errors::error(&failure))?;
        if wanted.name == tool_search::CALL {
            let failure = Failure::new(FailureKind::Invalid, "call_tool calls other tools, not itself");
            return Err(errors::error(&failure));
        }
        Ok((wanted.name, wanted.arguments.unwrap_or_else(Json::empty_object)))
    }

    /// Starts a tool call.
    pub(crate) async fn call(
        &self,
        client: &ClientProfile,
        name: &str,
        args: Json,
    ) -> Result<ToolCallStart, ErrorData> {
        may(client, TokenScope::Call)?;
        if name == tool_search::CALL {
            let (name, args) = self.meant(name, args)?;
            return Box::pin(self.call(client, &name, args)).await;
        }
        let begun = match BuiltinTool::parse(name) {
            Some(own) => self.call_own(client, own, &args).await,
            None => self.call_skill(client, name, args).await?,
        };
        begun.or_else(|failure| errors::told(&failure, client.errors).map(ToolCallStart::Done))
    }

    /// Calls a skill. An unknown name is a protocol error, not a failed tool.
    async fn call_skill(
        &self,
        client: &ClientProfile,
        name: &str,
        args: Json,
    ) -> Result<Result<ToolCallStart, Failure>, ErrorData> {
        let synced = match self.engine.policies().sync().await {
            Ok(synced) => synced,
            Err(failure) => return Ok(Err(failure)),
        };
        let Some(target) = self.find(&client.caller, name) else {
            return Err(self.no_such_tool(client, name));
        };
        let (args, continued) = match continuation_args::split(&target, args) {
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
        let mut request = CallRequest::skill(client.caller.clone(), client.door, target, args);
        (request.task, request.context) = (continued.task, continued.context);
        request.synced = Some(synced);
        Ok(self.begin(client, request, ResultStyle::Skill).await)
    }

    /// Rejects the continuation of another agent's task.
    async fn is_of(&self, client: &ClientProfile, task: &str, target: &CallTarget) -> Result<(), Failure> {
        let worker = self.engine.tasks().target(&client.caller, task).await?.agent;
        if worker.id == target.agent.id {
            return Ok(());
        }
        let (worker, other) = (&worker.slug, &target.agent.slug);
        let message =
            format!("task {task} belongs to agent {worker}, not to {other}; call a skill of that one");
        Err(Failure::new(FailureKind::Invalid, message))
    }

    async fn call_own(
        &self,
        client: &ClientProfile,
        own: BuiltinTool,
        args: &Json,
    ) -> Result<ToolCallStart, Failure> {
        let engine = &self.engine;
        match own {
            BuiltinTool::LoadAgent => match &self.load_agents {
                LoadAgents::Session => {
                    builtin_tools::load_agent(engine, client, args).await.map(ToolCallStart::Done)
                }
                LoadAgents::Registered(registrar) => {
                    builtin_tools::register_agent(registrar, client, args).await.map(ToolCallStart::Done)
                }
                LoadAgents::Refused(reason) => Err(Failure::new(FailureKind::Denied, reason.clone())),
            },
            BuiltinTool::ListAgents => {
                builtin_tools::list_agents(engine, client, args).await.map(ToolCallStart::Done)
            }
            BuiltinTool::SendMessage => {
                let request = builtin_tools::message(engine, client, args).await?;
                self.begin(client, request, ResultStyle::Message).await
            }
            BuiltinTool::SearchTools => {
                engine.policies().sync().await?;
                let catalog = self.catalogs.of(engine, &client.caller.scope, client.naming);
                let found = Box::pin(self.searcher.search(engine, client, &catalog, args));
                found.await.map(ToolCallStart::Done)
            }
            BuiltinTool::DescribeTool => {
                engine.policies().sync().await?;
                let catalog = self.catalogs.of(engine, &client.caller.scope, client.naming);
                tool_search::describe(&catalog, |name| self.find(&client.caller, name), args)
                    .map(ToolCallStart::Done)
            }
            BuiltinTool::Dispatch => self.dispatch(client, dispatch_tools::dispatch(client, args)?).await,
            BuiltinTool::MeshResolve => {
                Box::pin(dispatch_tools::resolve(engine, client, args)).await.map(ToolCallStart::Done)
            }
            BuiltinTool::InvokeA2a => Box::pin(self.invoke(client, args)).await,
            BuiltinTool::OrchestrateWorkflow => {
                Box::pin(self.run(client, workflow_tools::ORCHESTRATE, args)).await
            }
            BuiltinTool::ExecuteDag => Box::pin(self.run(client, workflow_tools::EXECUTE, args)).await,
            BuiltinTool::GetTask => Box::pin(self.look_at(client, args)).await.map(ToolCallStart::Done),
            BuiltinTool::CancelTask => {
                builtin_tools::cancel_task(engine, client, args).await.map(ToolCallStart::Done)
            }
        }
    }

    /// Runs a workflow or pipeline.
    async fn run(&self, client: &ClientProfile, tool: &str, args: &Json) -> Result<ToolCallStart, Failure> {
        let request = workflow_tools::request(&self.engine, client, tool, args).await?;
        self.begin(client, request, ResultStyle::Skill).await
    }

    /// Dispatches work to the agent that routing selects.
    async fn dispatch(
        &self,
        client: &ClientProfile,
        wanted: DispatchRequest,
    ) -> Result<ToolCallStart, Failure> {
        let running = Box::pin(self.engine.dispatches().start(wanted)).await?;
        let call = ToolCallStream::new(
            self.engine.clone(),
            client,
            "the agent".to_owned(),
            running,
            ResultStyle::Invoked,
        );
        Ok(ToolCallStart::Underway(Box::new(call)))
    }

    async fn invoke(&self, client: &ClientProfile, args: &Json) -> Result<ToolCallStart, Failure> {
        let local = AgentLoader { load_agents: &self.load_agents, invoking: &self.config.invoking };
        match dispatch_tools::invoke(&self.engine, client, &local, args).await? {
            InvokeTarget::Message(request) => self.begin(client, *request, ResultStyle::Invoked).await,
            InvokeTarget::Work(wanted) => self.dispatch(client, *wanted).await,
            InvokeTarget::Refresh(id) => {
                let task = self.engine.tasks().get(&client.caller, &id).await?;
                let agent = builtin_tools::address(&self.engine, &task);
                Ok(ToolCallStart::Done(render::invoked(&task, &agent, None, client.reader())))
            }
        }
    }

    pub(crate) async fn begin(
        &self,
        client: &ClientProfile,
        request: CallRequest,
        manner: ResultStyle,
    ) -> Result<ToolCallStart, Failure> {
        let agent = request.target.agent.slug.clone();
        let mut request = CallRequest { trace: client.trace.clone(), ..request };
        let mut patience = None;
        if client.abilities.tasks && manner == ResultStyle::Skill {
            patience = Some(self.patience(&request.target));
            // The client does not wait for the result, so there is no timeout.
            request.timeout = Some(Duration::from_secs(self.engine.config().patience_secs));
        }
        let backing = request.target.agent.backing.clone();
        let is_promised =
            request.target.skill.as_ref().is_some_and(|skill| tool::promises(&request.target.agent, skill));
        let running = self.engine.calls().start(request).await?.into_handle()?;
        let call = ToolCallStream::new(self.engine.clone(), client, agent, running, manner);
        let call = call.with_backing(&backing);
        let call = if is_promised { call.with_promise() } else { call };
        Ok(ToolCallStart::Underway(Box::new(call.with_patience(patience))))
    }

    /// Time that a call may take before it becomes a task.
    pub(crate) fn patience(&self, target: &CallTarget) -> Duration {
        let is_long = target.skill.as_ref().is_some_and(|skill| skill.takes_long());
        if is_long { Duration::ZERO } else { Duration::from_millis(self.config.task_after_ms) }
    }

    /// Finds the skill with this tool name.
    pub(crate) fn find(&self, caller: &Caller, name: &str) -> Option<CallTarget> {
        self.finder.find(&self.engine, caller, name)
    }

    pub(crate) fn no_such_tool(&self, client: &ClientProfile, name: &str) -> ErrorData {
        let near = tool_lookup::near(&self.engine, &client.caller, name, &builtin_tools::NAMES);
        let hint = if near.is_empty() {
            "tools/list shows those there are".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        let failure = Failure::new(FailureKind::NotFound, format!("there is no tool \"{name}\"; {hint}"));
        errors::error(&failure.with_data(Json::encode(&json!({ "tool": name, "near": near }))))
    }
}

/// Requires a token scope of the client. Policies are evaluated later.
pub(crate) fn may(client: &ClientProfile, right: TokenScope) -> Result<(), ErrorData> {
    if client.caller.rights.have(right) { Ok(()) } else { Err(errors::error(&right.lacking())) }
}
