//! rmcp handler of the MCP server, for every protocol version and transport.

mod calls;
mod cancellation;

use std::sync::Arc;

use http::request::Parts;
use rialto_model::{
    call::{Caller, EntryProtocol, HOPS_META},
    failure::{Failure, FailureKind},
    json::{Json, MAX_DEPTH},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskMethod,
        CancelTaskParams, CancelledNotificationParam, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, ConstString, CustomRequest, CustomResult, DiscoverResult, ErrorCode, Extensions,
        GetTaskMethod, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
        InitializeResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SubscriptionFilter, UpdateTaskMethod, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::{calls::ToolCallOutcome, cancellation::CancelReasons};
use crate::{
    client_profile::{ClientProfile, DeclaredCapabilities, ProtocolFeatures},
    config::{SchemaStyle, ToolErrors, ToolList, ToolNames},
    depth_limit::TOO_DEEP,
    errors,
    list_changed::{ListChangedNotifier, ListedVisibility},
    resources,
    tool_result::{ResultMeta, SERVER_IDENTITY, ToolResult},
    tool_service::ToolService,
    trace,
};

/// Instructions for clients.
const INSTRUCTIONS: &str = "Rialto is a bridge to A2A agents. Each skill of each agent is a tool: \
    call it with its arguments and it answers with the agent's result. send_message talks to an \
    agent freely and answers its questions (pass task_id). A call that takes too long leaves a task id: get_task \
    fetches the result later, cancel_task calls it off. list_agents shows who is there. What is too large for a \
    result is linked there, and read in pieces: with resources/read, or with get_task and its part. A \
    result's _meta names its conversation and its task: pass them to the next call of a skill as the arguments \
    a2a_context_id (a new task in the same conversation) or a2a_task_id (an answer to a task that waits).";

/// Serves one connection, or one HTTP request.
#[derive(Clone)]
pub(crate) struct McpHandler {
    desk: Arc<ToolService>,
    listeners: Arc<ListChangedNotifier>,
    whose: CallerSource,
    /// Ends listeners when the connection closes.
    closing: CancellationToken,
    /// Reasons of cancelled requests.
    reasons: Arc<CancelReasons>,
    /// Tools visible to the client in its last list.
    listed: ListedVisibility,
    /// Cancelled when all tools that are listed from the start are loaded.
    complete: Option<CancellationToken>,
}

/// Source of the caller's identity.
#[derive(Clone)]
pub(crate) enum CallerSource {
    /// Fixed caller, on stdin and stdout.
    Known(Caller),
    /// Taken from each HTTP request.
    Asked,
}

// === impl Handler ===

impl McpHandler {
    pub(crate) fn new(
        desk: Arc<ToolService>,
        listeners: Arc<ListChangedNotifier>,
        whose: CallerSource,
        closing: CancellationToken,
    ) -> Self {
        Self {
            desk,
            listeners,
            whose,
            closing,
            reasons: Arc::default(),
            listed: Arc::default(),
            complete: None,
        }
    }

    /// Handler for another client's session.
    pub(crate) fn for_session(&self) -> Self {
        Self { listed: Arc::default(), reasons: Arc::default(), ..self.clone() }
    }

    /// Delays listing and calling until `complete` is cancelled.
    pub(crate) fn complete_after(mut self, complete: Option<CancellationToken>) -> Self {
        self.complete = complete;
        self
    }

    async fn completed(&self) {
        if let Some(complete) = &self.complete {
            complete.cancelled().await;
        }
    }

    /// Starts sending change notifications to the client, with the current tools as baseline.
    fn note_outlook(&self, caller: &Caller) {
        self.listed.lock().get_or_insert_with(|| self.desk.engine.visibility().compute(&caller.scope));
    }

    /// Authenticated caller of a request.
    fn caller<'a>(&'a self, extensions: &'a Extensions) -> Result<&'a Caller, ErrorData> {
        match &self.whose {
            CallerSource::Known(caller) => Ok(caller),
            CallerSource::Asked => {
                let parts = extensions.get::<Parts>();
                parts.and_then(|parts| parts.extensions.get()).ok_or_else(nobody)
            }
        }
    }

    /// Profile of the client that sent a request.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<ClientProfile, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let mut caller = self.caller(&context.extensions)?.clone();
        let hops = context.meta.get(HOPS_META).map_or(0, read_hops);
        caller.hops = caller.hops.max(hops);
        let door = match &self.whose {
            CallerSource::Known(_) => EntryProtocol::McpStdio,
            CallerSource::Asked => EntryProtocol::McpHttp,
        };
        let asked = parts.and_then(|parts| parts.extensions.get::<ToolNames>());
        let mode = asked.copied().unwrap_or(self.desk.config.tool_names);
        let version = context.protocol_version();
        let name = context.client_info().map(|client| client.name).unwrap_or_default();
        let mut client =
            ClientProfile::new(caller, door, version.as_ref().map(ProtocolVersion::as_str), &name, mode);
        let schemas = parts.and_then(|parts| parts.extensions.get::<SchemaStyle>().copied());
        client.naming = client.naming.with_schemas(schemas.unwrap_or(self.desk.config.schemas));
        let said = |name: &str| context.meta.get(name).and_then(Value::as_str);
        let headers = parts.map(|parts| &parts.headers);
        client.trace =
            trace::of(said(trace::TRACEPARENT), said(trace::TRACESTATE), said(trace::BAGGAGE), headers);
        client.list = parts.and_then(|parts| parts.extensions.get::<ToolList>().copied());
        let errors = parts.and_then(|parts| parts.extensions.get::<ToolErrors>().copied());
        client.errors = errors.unwrap_or(self.desk.config.tool_errors);
        client.inline = self.desk.inline;
        client.abilities = abilities(context, client.fluency);
        Ok(client)
    }

    /// Profile of a client that asks about a task. Only 2026-07-28 has tasks.
    fn client_with_tasks<M: ConstString>(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<ClientProfile, ErrorData> {
        let client = self.client(context)?;
        if client.fluency.modern { Ok(client) } else { Err(ErrorData::method_not_found::<M>()) }
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_tasks()
            .build();
        let server = Implementation::new(SERVER_IDENTITY.name, SERVER_IDENTITY.version)
            .with_title(SERVER_IDENTITY.title);
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    /// Handshake before 2026-07-28, without tasks.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut info = self.negotiate_initialize(&request)?;
        info.capabilities.extensions = None;
        context.peer.set_peer_info(request);
        Ok(info)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let mut result = DiscoverResult::from_server_info(versions, self.get_info());
        (result.ttl_ms, result.cache_scope) = (self.desk.config.list_ttl_ms, CacheScope::Private);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.completed().await;
        let client = self.client(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        // Taken before the list is made: a change in between is announced once more, never missed.
        let outlook = self.desk.engine.visibility().compute(&client.caller.scope);
        let page = self.desk.list(&client, cursor.as_deref()).await?;
        *self.listed.lock() = Some(outlook);
        let mut result = ListToolsResult::with_all_items(page.tools().into_iter().cloned().collect());
        result.next_cursor.clone_from(&page.next);
        if client.fluency.modern {
            result.meta = signature();
            result = result.with_ttl_ms(self.desk.config.list_ttl_ms).with_cache_scope(CacheScope::Private);
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.completed().await;
        let client = self.client(&context)?;
        self.note_outlook(&client.caller);
        let begun = match request.request_state.filter(|_| client.fluency.modern) {
            Some(state) => {
                let responses = request.input_responses.unwrap_or_default();
                let args = request.arguments.map_or_else(Json::empty_object, |args| Json::encode(&args));
                let (name, _) = self.desk.meant(&request.name, args)?;
                Box::pin(self.desk.go_on(&client, &name, &state, responses)).await?
            }
            None => {
                let args = request.arguments.map_or_else(Json::empty_object, |args| Json::encode(&args));
                self.desk.call(&client, &request.name, args).await?
            }
        };
        match self.see_through(&client, begun, &context).await? {
            ToolCallOutcome::Asked(inquiry) => {
                Box::pin(self.desk.ask(&inquiry)).await.map(CallToolResponse::InputRequired)
            }
            ToolCallOutcome::Task(task) => Ok(CallToolResponse::Task(task)),
            ToolCallOutcome::Done(answer) => {
                let marks =
                    ResultMeta { server: client.fluency.modern.then_some(&SERVER_IDENTITY), ..answer.marks };
                Ok(CallToolResult::from(ToolResult { marks, ..answer }).into())
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.client_with_tasks::<GetTaskMethod>(&context)?;
        let mut result = GetTaskResult::new(self.desk.get_task(&client, &request.task_id).await?);
        result.meta = signature();
        Ok(result)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client_with_tasks::<UpdateTaskMethod>(&context)?;
        Box::pin(self.desk.update_task(&client, &request.task_id, request.input_responses)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client_with_tasks::<CancelTaskMethod>(&context)?;
        self.desk.cancel_task(&client, &request.task_id).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.intersection(&SubscriptionFilter::builder().tools_list_changed().build()))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(&context.request_context().extensions)?;
        let mut lookout = self.desk.engine.visibility().watch(&caller.scope);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.closing.cancelled() => return Ok(()),
                is_change = lookout.next() => {
                    if !is_change || context.accepted().tools_list_changed != Some(true) {
                        context.cancelled().await;
                        return Ok(());
                    }
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_cancelled(
        &self,
        told: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        self.reasons.add(told);
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        match self.caller(&context.extensions) {
            Ok(caller) => {
                if self.complete.as_ref().is_none_or(CancellationToken::is_cancelled) {
                    self.note_outlook(caller);
                }
                self.listeners.add(context.peer, &caller.scope, Arc::clone(&self.listed));
            }
            Err(error) => {
                tracing::debug!("a client without a caller gets no change notifications: {}", error.message);
            }
        }
    }

    /// Requests that rmcp cannot parse: an unknown method or invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == TOO_DEEP {
            let message = format!("the message is nested deeper than {MAX_DEPTH} levels; send it flatter");
            return Err(ErrorData::invalid_request(message, None));
        }
        if matches!(request.method.as_str(), "tools/call" | "tools/list") {
            let message = format!(
                "the parameters of {} are not as they should be: `name` is a text, `arguments` an object, `cursor` a text",
                request.method
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        if request.method == "resources/read" {
            let message = "the parameters of resources/read are not as they should be: `uri` is a text";
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let shelf = self.desk.shelf(&client, cursor.as_deref()).await?;
        let mut result = ListResourcesResult::with_all_items(shelf.resources);
        result.next_cursor = shelf.next;
        if client.fluency.modern {
            result.meta = signature();
            // Every call adds resources.
            result = result.with_ttl_ms(0).with_cache_scope(CacheScope::Private);
        }
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let client = self.client(&context)?;
        let mut result = ListResourceTemplatesResult::with_all_items(resources::templates());
        if client.fluency.modern {
            result.meta = signature();
            result = result.with_ttl_ms(self.desk.config.list_ttl_ms).with_cache_scope(CacheScope::Private);
        }
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context)?;
        let (mut result, is_final) = Box::pin(self.desk.read(&client, &request.uri)).await?;
        if client.fluency.modern {
            let ours = signature().map(|meta| meta.0).unwrap_or_default();
            result.meta.get_or_insert_default().0.extend(ours);
            let ttl = if is_final { self.desk.config.list_ttl_ms } else { 0 };
            result = result.with_ttl_ms(ttl).with_cache_scope(CacheScope::Private);
        }
        Ok(result.into())
    }
}

/// Declared capabilities. Before 2026-07-28 they are in the handshake; a client without a session cannot be asked questions.
fn abilities(context: &RequestContext<RoleServer>, fluency: ProtocolFeatures) -> DeclaredCapabilities {
    if fluency.modern {
        return context
            .client_capabilities()
            .map(|declared| DeclaredCapabilities::of(&declared, fluency))
            .unwrap_or_default();
    }
    context
        .peer
        .peer_info()
        .map(|info| DeclaredCapabilities::of(&info.capabilities, fluency))
        .unwrap_or_default()
}

/// `_meta` of a list: identity of this server.
fn signature() -> Option<MetaObject> {
    let marks =
        serde_json::to_value(ResultMeta { server: Some(&SERVER_IDENTITY), ..ResultMeta::default() }).ok()?;
    marks.as_object().cloned().map(MetaObject)
}

fn nobody() -> ErrorData {
    errors::error(&Failure::new(FailureKind::Unauthenticated, "this request does not say who calls"))
}

/// Hop count in `_meta`. An invalid one counts as the maximum.
fn read_hops(count: &Value) -> u8 {
    count.as_u64().and_then(|count| u8::try_from(count).ok()).unwrap_or(u8::MAX)
}
