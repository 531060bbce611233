//! One tool call, from the request to its result or to a question.
//!
//! Dropping the stream cancels the call at the server. A call that waits for an answer is kept until the answer arrives.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::stream::{self, Stream};
use rialto_model::{
    call::{Call, HOPS_META},
    event::{Event, EventAside, RemoteIds},
    failure::{Failure, FailureKind},
};
use rialto_policy::Permitted;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientRequest, JsonObject, RequestId, RequestMetaObject, ServerResult,
    },
    service::{Peer, PeerRequestOptions, RequestHandle},
};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::{
    call_listeners::{CallMessages, PendingQuestion},
    connection::{McpConnection, UpstreamError},
    convert, input_required,
    pending_calls::{Continuation, PendingCall, PendingCalls},
    question::{self, ElicitationAnswers, ServerQuestion},
    remote_task::{self, RemoteTask, TaskPoll},
    server_link::ServerLink,
};

/// Prefix of the remote id of a pending call.
const PENDING_PREFIX: &str = "call:";

/// Error code of a server that requires a visit to a URL first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Delay before calling a server again that only asked for a later call.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Tool call in progress.
pub(crate) struct ToolCall {
    line: Arc<ServerLink>,
    waiting: PendingCalls,
    call: Permitted<Call>,
    stage: ToolCallStage,
    /// Events that are still to be returned.
    told: VecDeque<Event>,
}

enum ToolCallStage {
    Begin,
    Listen(Box<OpenRequest>),
    Track(RemoteTask),
    Over,
}

/// Request without a response so far.
pub(crate) struct OpenRequest {
    /// Keeps the connection in use.
    _connection: Arc<McpConnection>,
    handle: RequestHandle<RoleClient>,
    heard: CallMessages,
    abandoned: CancelOnDrop,
    arguments: JsonObject,
}

/// Cancels the request at the server when dropped before the response.
struct CancelOnDrop(Option<(Peer<RoleClient>, RequestId)>);

// === impl ToolCall ===

impl ToolCall {
    pub(crate) const fn new(line: Arc<ServerLink>, waiting: PendingCalls, call: Permitted<Call>) -> Self {
        Self { line, waiting, call, stage: ToolCallStage::Begin, told: VecDeque::new() }
    }

    /// Events of the call, in order.
    pub(crate) fn events(self) -> impl Stream<Item = Event> + Send {
        stream::unfold(Box::new(self), |mut work| async move {
            let event = work.next().await?;
            Some((event, work))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.told.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.stage, ToolCallStage::Over) {
                ToolCallStage::Over => return None,
                ToolCallStage::Begin => match self.begin().await {
                    Ok(stage) => self.stage = stage,
                    Err(failure) => return Some(Event::failed(failure)),
                },
                ToolCallStage::Listen(underway) => self.listen(underway).await,
                ToolCallStage::Track(tracked) => self.track(tracked).await,
            }
        }
    }

    async fn begin(&mut self) -> Result<ToolCallStage, Failure> {
        let call = self.call.get();
        if call.target.skill.is_none() {
            let message = format!("{} is an MCP server: name one of its tools", self.line.key.server.name);
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        if let Some(handle) = call.continues.task_id.clone() {
            return self.go_on(&handle).await;
        }
        let Value::Object(arguments) = call.args().value() else {
            return Err(Failure::new(FailureKind::Invalid, "the arguments of a tool are a JSON object"));
        };
        self.start(arguments, None, ElicitationAnswers::new()).await
    }

    /// Calls the tool.
    async fn start(
        &self,
        arguments: JsonObject,
        state: Option<String>,
        answers: ElicitationAnswers,
    ) -> Result<ToolCallStage, Failure> {
        let (call, server) = (self.call.get(), &self.line.key.server.name);
        let unreachable = |why| UpstreamError::Unreachable(why).failure(server);
        let connection = self.line.connection().await.map_err(unreachable)?;
        let mut params =
            CallToolRequestParams::new(call.target.skill_id().to_owned()).with_arguments(arguments.clone());
        (params.request_state, params.input_responses) = (state, (!answers.is_empty()).then_some(answers));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = connection.ears.send(&connection.peer, request, options(call), &call.caller).await;
        let (handle, heard) = sent.map_err(|error| McpConnection::trouble(error).failure(server))?;
        let abandoned = CancelOnDrop(Some((connection.peer.clone(), handle.id.clone())));
        let underway = OpenRequest { _connection: connection, handle, heard, abandoned, arguments };
        Ok(ToolCallStage::Listen(Box::new(underway)))
    }

    /// Resumes a pending call with the caller's answers.
    async fn go_on(&mut self, handle: &str) -> Result<ToolCallStage, Failure> {
        if let Some(id) = handle.strip_prefix(remote_task::PREFIX) {
            return self.go_on_tracked(RemoteTask::known(id.to_owned())).await;
        }
        let tool = self.call.get().target.skill_id();
        let Some(held) = self.waiting.take(handle) else {
            let message = format!(
                "{tool} no longer waits for this answer: the server was restarted, or it took too long; call it again"
            );
            return Err(Failure::new(FailureKind::PeerFailed, message));
        };
        let answers = match question::answers(&held.questions, &self.call.get().parts) {
            Ok(answers) => answers,
            Err(why) => {
                self.told.push_back(question::asked(&held.questions, Some(&why)));
                self.waiting.hold(handle, held);
                return Ok(ToolCallStage::Over);
            }
        };
        match held.onward {
            Continuation::Same { underway, answer } => {
                // A server that is not waiting any more has continued on its own.
                let _ = answer.send(answers.into_values().next().unwrap_or_default());
                Ok(ToolCallStage::Listen(underway))
            }
            Continuation::Again { arguments, state, mut given, takes_answers } => {
                if takes_answers {
                    given.extend(answers);
                } else if let Some(refusal) = declined(&answers) {
                    self.told.push_back(refusal);
                    return Ok(ToolCallStage::Over);
                }
                self.start(arguments, state, given).await
            }
        }
    }

    async fn go_on_tracked(&mut self, mut tracked: RemoteTask) -> Result<ToolCallStage, Failure> {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        let look = tracked
            .look(&self.line, &self.call.get().caller, tool)
            .await
            .map_err(|trouble| trouble.failure(server))?;
        let TaskPoll::Asks(questions, mut given) = look else { return Ok(ToolCallStage::Track(tracked)) };
        match question::answers(&questions, &self.call.get().parts) {
            Ok(answers) => {
                given.extend(answers);
                let told = tracked.answer(&self.line, given).await;
                told.map_err(|trouble| trouble.failure(server))?;
                Ok(ToolCallStage::Track(tracked))
            }
            Err(why) => {
                self.told.push_back(question::asked(&questions, Some(&why)));
                Ok(ToolCallStage::Over)
            }
        }
    }

    async fn listen(&mut self, mut underway: Box<OpenRequest>) {
        let answer = tokio::select! {
            biased;
            Some(progress) = underway.heard.progress.recv() => {
                self.told.push_back(convert::progress(progress));
                self.stage = ToolCallStage::Listen(underway);
                return;
            }
            Some(PendingQuestion { question, answer }) = underway.heard.asked.recv() => {
                return self.wait(vec![question], Continuation::Same { underway, answer });
            }
            answer = &mut underway.handle.rx => answer,
        };
        underway.abandoned.0 = None;
        let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
        match answer.map_err(McpConnection::trouble) {
            Ok(ServerResult::CreateTaskResult(made)) => {
                let tracked = RemoteTask::made(&made.task);
                self.told.push_back(tracked.accepted());
                self.stage = ToolCallStage::Track(tracked);
            }
            Ok(result) => {
                let result = serde_json::to_value(&result).unwrap_or_default();
                match result.get("resultType").and_then(Value::as_str) {
                    Some("input_required") => self.another_round(&result, underway.arguments).await,
                    _ => self.end(&result),
                }
            }
            Err(UpstreamError::Failed { code: URL_ELICITATION_REQUIRED, data: Some(data), .. }) => {
                self.visit_first(&data, underway.arguments);
            }
            Err(trouble) => {
                self.told.push_back(Event::failed(trouble.failure(&self.line.key.server.name)));
            }
        }
    }

    fn end(&mut self, result: &Value) {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        self.told.extend(convert::tool_result_events(result, server, tool));
    }

    /// Handles a server that requests another call with answers.
    async fn another_round(&mut self, result: &Value, arguments: JsonObject) {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let requests = result.get("inputRequests").unwrap_or(&Value::Null);
        match input_required::read(requests, &self.line, &self.call.get().caller).await {
            Err(what) => self.told.push_back(input_required::refused(server, tool, &what)),
            Ok((questions, given)) if questions.is_empty() => {
                if given.is_empty() {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                match self.start(arguments, state, given).await {
                    Ok(stage) => self.stage = stage,
                    Err(failure) => self.told.push_back(Event::failed(failure)),
                }
            }
            Ok((questions, given)) => {
                self.wait(questions, Continuation::Again { arguments, state, given, takes_answers: true });
            }
        }
    }

    /// Handles a server that requires a visit to a URL before another call.
    fn visit_first(&mut self, data: &Value, arguments: JsonObject) {
        let asked = data.get("elicitations").and_then(Value::as_array).into_iter().flatten();
        let questions: Vec<ServerQuestion> = asked
            .enumerate()
            .filter_map(|(at, params)| {
                let id = params.get("elicitationId").and_then(Value::as_str).map(str::to_owned);
                ServerQuestion::read(&id.unwrap_or_else(|| at.to_string()), params)
            })
            .collect();
        if questions.is_empty() {
            let what = "a visit to an address that it does not name";
            let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
            self.told.push_back(input_required::refused(server, tool, what));
            return;
        }
        let given = ElicitationAnswers::new();
        self.wait(questions, Continuation::Again { arguments, state: None, given, takes_answers: false });
    }

    /// Stores the call until its questions are answered.
    fn wait(&mut self, questions: Vec<ServerQuestion>, onward: Continuation) {
        let handle = format!("{PENDING_PREFIX}{}", self.call.get().task);
        let asked = question::asked(&questions, None);
        if !self.waiting.hold(&handle, PendingCall { questions, onward }) {
            let message = "too many calls wait for answers already; answer some of them first";
            self.told.push_back(Event::failed(Failure::new(FailureKind::PeerFailed, message)));
            return;
        }
        let remote = RemoteIds { task_id: Some(handle), context_id: None };
        self.told.push_back(Event::Accepted { remote, aside: EventAside::default() });
        self.told.push_back(asked);
    }

    async fn track(&mut self, mut tracked: RemoteTask) {
        let tool = self.call.get().target.skill_id();
        match tracked.next(&self.line, &self.call.get().caller, tool).await {
            TaskPoll::Same => self.stage = ToolCallStage::Track(tracked),
            TaskPoll::Goes(event) => {
                self.told.push_back(*event);
                self.stage = ToolCallStage::Track(tracked);
            }
            TaskPoll::Asks(questions, given) if questions.is_empty() => {
                match tracked.answer(&self.line, given).await {
                    Ok(()) => self.stage = ToolCallStage::Track(tracked),
                    Err(trouble) => {
                        self.told.push_back(Event::failed(trouble.failure(&self.line.key.server.name)));
                    }
                }
            }
            TaskPoll::Asks(questions, _) => self.told.push_back(question::asked(&questions, None)),
            TaskPoll::Over(events) => self.told.extend(events),
        }
    }
}

/// Failure of a call whose caller declines to visit the URL.
fn declined(answers: &ElicitationAnswers) -> Option<Event> {
    let is_declined = answers.values().any(|answer| answer.get("action").is_none_or(|said| said != "accept"));
    is_declined.then_some(Event::Canceled { message: None, aside: EventAside::default() })
}

fn options(call: &Call) -> PeerRequestOptions {
    let mut meta = JsonObject::new();
    meta.insert(HOPS_META.to_owned(), Value::from(u16::from(call.caller.hops) + 1));
    if let Some(trace) = &call.trace {
        meta.insert("traceparent".to_owned(), Value::String(trace.to_string()));
        for (name, said) in [("tracestate", trace.state()), ("baggage", trace.baggage())] {
            if let Some(said) = said {
                meta.insert(name.to_owned(), Value::String(said.to_owned()));
            }
        }
    }
    PeerRequestOptions::no_options().with_meta(RequestMetaObject::from(meta))
}

// === impl CancelOnDrop ===

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some((peer, id)), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(async move {
            let params =
                CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}
