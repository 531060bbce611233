//! One call of a tool, from first word to last, or to a question.
//!
//! Whoever stops listening calls it off: the server is told. A call that waits for an answer is kept until it comes.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::stream::{self, Stream};
use rialto_model::{
    call::{Call, HOPS_META},
    event::{Aside, Event, Remote},
    failure::{Failure, Kind},
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

use super::{
    connection::{Connection, Trouble},
    ears::{Asked, Heard},
    line::Line,
    question::{self, Answers, Question},
    rounds, told,
    tracked::{self, Look, Tracked},
    waiting::{Held, Onward, Waiting},
};

/// Our name for a call that waits begins with this.
const WAITS: &str = "call:";

/// What a server says that cannot go on before somebody has visited an address.
const VISIT_FIRST: i64 = -32042;

/// How long to wait before a server is asked again that only wants to be asked later.
const LATER: Duration = Duration::from_secs(1);

/// A call on its way.
pub(super) struct Work {
    line: Arc<Line>,
    waiting: Waiting,
    call: Permitted<Call>,
    stage: Stage,
    /// What is still to be told.
    told: VecDeque<Event>,
}

enum Stage {
    Begin,
    Listen(Box<Underway>),
    Track(Tracked),
    Over,
}

/// A request that the server has not answered yet.
pub(super) struct Underway {
    /// In use as long as this lives.
    _connection: Arc<Connection>,
    handle: RequestHandle<RoleClient>,
    heard: Heard,
    abandoned: Abandoned,
    arguments: JsonObject,
}

/// Tells the server that nobody waits any more, unless it has answered.
struct Abandoned(Option<(Peer<RoleClient>, RequestId)>);

// === impl Work ===

impl Work {
    pub(super) const fn new(line: Arc<Line>, waiting: Waiting, call: Permitted<Call>) -> Self {
        Self { line, waiting, call, stage: Stage::Begin, told: VecDeque::new() }
    }

    /// What happens, in order.
    pub(super) fn events(self) -> impl Stream<Item = Event> + Send {
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
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Over => return None,
                Stage::Begin => match self.begin().await {
                    Ok(stage) => self.stage = stage,
                    Err(failure) => return Some(Event::failed(failure)),
                },
                Stage::Listen(underway) => self.listen(underway).await,
                Stage::Track(tracked) => self.track(tracked).await,
            }
        }
    }

    async fn begin(&mut self) -> Result<Stage, Failure> {
        let call = self.call.get();
        if call.target.skill.is_none() {
            let message = format!("{} is an MCP server: name one of its tools", self.line.key.server.name);
            return Err(Failure::new(Kind::Invalid, message));
        }
        if let Some(handle) = call.continues.task_id.clone() {
            return self.go_on(&handle).await;
        }
        let Value::Object(arguments) = call.args().value() else {
            return Err(Failure::new(Kind::Invalid, "the arguments of a tool are a JSON object"));
        };
        self.start(arguments, None, Answers::new()).await
    }

    /// Calls the tool.
    async fn start(
        &self,
        arguments: JsonObject,
        state: Option<String>,
        answers: Answers,
    ) -> Result<Stage, Failure> {
        let (call, server) = (self.call.get(), &self.line.key.server.name);
        let unreachable = |why| Trouble::Unreachable(why).failure(server);
        let connection = self.line.connection().await.map_err(unreachable)?;
        let mut params =
            CallToolRequestParams::new(call.target.skill_id().to_owned()).with_arguments(arguments.clone());
        (params.request_state, params.input_responses) = (state, (!answers.is_empty()).then_some(answers));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = connection.ears.send(&connection.peer, request, options(call), &call.caller).await;
        let (handle, heard) = sent.map_err(|error| Connection::trouble(error).failure(server))?;
        let abandoned = Abandoned(Some((connection.peer.clone(), handle.id.clone())));
        let underway = Underway { _connection: connection, handle, heard, abandoned, arguments };
        Ok(Stage::Listen(Box::new(underway)))
    }

    /// Goes on with a call that waits, by what its caller says.
    async fn go_on(&mut self, handle: &str) -> Result<Stage, Failure> {
        if let Some(id) = handle.strip_prefix(tracked::PREFIX) {
            return self.go_on_tracked(Tracked::known(id.to_owned())).await;
        }
        let tool = self.call.get().target.skill_id();
        let Some(held) = self.waiting.take(handle) else {
            let message = format!(
                "{tool} no longer waits for this answer: the server was restarted, or it took too long; call it again"
            );
            return Err(Failure::new(Kind::PeerFailed, message));
        };
        let answers = match question::answers(&held.questions, &self.call.get().parts) {
            Ok(answers) => answers,
            Err(why) => {
                self.told.push_back(question::asked(&held.questions, Some(&why)));
                self.waiting.hold(handle, held);
                return Ok(Stage::Over);
            }
        };
        match held.onward {
            Onward::Same { underway, answer } => {
                // A server that does not wait for it any more has gone on in its own way.
                let _ = answer.send(answers.into_values().next().unwrap_or_default());
                Ok(Stage::Listen(underway))
            }
            Onward::Again { arguments, state, mut given, takes_answers } => {
                if takes_answers {
                    given.extend(answers);
                } else if let Some(refusal) = declined(&answers) {
                    self.told.push_back(refusal);
                    return Ok(Stage::Over);
                }
                self.start(arguments, state, given).await
            }
        }
    }

    async fn go_on_tracked(&mut self, mut tracked: Tracked) -> Result<Stage, Failure> {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        let look = tracked
            .look(&self.line, &self.call.get().caller, tool)
            .await
            .map_err(|trouble| trouble.failure(server))?;
        let Look::Asks(questions, mut given) = look else { return Ok(Stage::Track(tracked)) };
        match question::answers(&questions, &self.call.get().parts) {
            Ok(answers) => {
                given.extend(answers);
                let told = tracked.answer(&self.line, given).await;
                told.map_err(|trouble| trouble.failure(server))?;
                Ok(Stage::Track(tracked))
            }
            Err(why) => {
                self.told.push_back(question::asked(&questions, Some(&why)));
                Ok(Stage::Over)
            }
        }
    }

    async fn listen(&mut self, mut underway: Box<Underway>) {
        let answer = tokio::select! {
            biased;
            Some(progress) = underway.heard.progress.recv() => {
                self.told.push_back(told::progress(progress));
                self.stage = Stage::Listen(underway);
                return;
            }
            Some(Asked { question, answer }) = underway.heard.asked.recv() => {
                return self.wait(vec![question], Onward::Same { underway, answer });
            }
            answer = &mut underway.handle.rx => answer,
        };
        underway.abandoned.0 = None;
        let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
        match answer.map_err(Connection::trouble) {
            Ok(ServerResult::CreateTaskResult(made)) => {
                let tracked = Tracked::made(&made.task);
                self.told.push_back(tracked.accepted());
                self.stage = Stage::Track(tracked);
            }
            Ok(result) => {
                let result = serde_json::to_value(&result).unwrap_or_default();
                match result.get("resultType").and_then(Value::as_str) {
                    Some("input_required") => self.another_round(&result, underway.arguments).await,
                    _ => self.end(&result),
                }
            }
            Err(Trouble::Failed { code: VISIT_FIRST, data: Some(data), .. }) => {
                self.visit_first(&data, underway.arguments);
            }
            Err(trouble) => {
                self.told.push_back(Event::failed(trouble.failure(&self.line.key.server.name)));
            }
        }
    }

    fn end(&mut self, result: &Value) {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        self.told.extend(told::result(result, server, tool));
    }

    /// The server wants to be called again, with answers.
    async fn another_round(&mut self, result: &Value, arguments: JsonObject) {
        let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let requests = result.get("inputRequests").unwrap_or(&Value::Null);
        match rounds::read(requests, &self.line, &self.call.get().caller).await {
            Err(what) => self.told.push_back(rounds::refused(server, tool, &what)),
            Ok((questions, given)) if questions.is_empty() => {
                if given.is_empty() {
                    tokio::time::sleep(LATER).await;
                }
                match self.start(arguments, state, given).await {
                    Ok(stage) => self.stage = stage,
                    Err(failure) => self.told.push_back(Event::failed(failure)),
                }
            }
            Ok((questions, given)) => {
                self.wait(questions, Onward::Again { arguments, state, given, takes_answers: true });
            }
        }
    }

    /// The server wants somebody to go somewhere, and then to be called again.
    fn visit_first(&mut self, data: &Value, arguments: JsonObject) {
        let asked = data.get("elicitations").and_then(Value::as_array).into_iter().flatten();
        let questions: Vec<Question> = asked
            .enumerate()
            .filter_map(|(at, params)| {
                let id = params.get("elicitationId").and_then(Value::as_str).map(str::to_owned);
                Question::read(&id.unwrap_or_else(|| at.to_string()), params)
            })
            .collect();
        if questions.is_empty() {
            let what = "a visit to an address that it does not name";
            let (server, tool) = (&self.line.key.server.name, self.call.get().target.skill_id());
            self.told.push_back(rounds::refused(server, tool, what));
            return;
        }
        let given = Answers::new();
        self.wait(questions, Onward::Again { arguments, state: None, given, takes_answers: false });
    }

    /// Keeps the call until its questions are answered.
    fn wait(&mut self, questions: Vec<Question>, onward: Onward) {
        let handle = format!("{WAITS}{}", self.call.get().task);
        let asked = question::asked(&questions, None);
        if !self.waiting.hold(&handle, Held { questions, onward }) {
            let message = "too many calls wait for answers already; answer some of them first";
            self.told.push_back(Event::failed(Failure::new(Kind::PeerFailed, message)));
            return;
        }
        let remote = Remote { task_id: Some(handle), context_id: None };
        self.told.push_back(Event::Accepted { remote, aside: Aside::default() });
        self.told.push_back(asked);
    }

    async fn track(&mut self, mut tracked: Tracked) {
        let tool = self.call.get().target.skill_id();
        match tracked.next(&self.line, &self.call.get().caller, tool).await {
            Look::Same => self.stage = Stage::Track(tracked),
            Look::Goes(event) => {
                self.told.push_back(*event);
                self.stage = Stage::Track(tracked);
            }
            Look::Asks(questions, given) if questions.is_empty() => {
                match tracked.answer(&self.line, given).await {
                    Ok(()) => self.stage = Stage::Track(tracked),
                    Err(trouble) => {
                        self.told.push_back(Event::failed(trouble.failure(&self.line.key.server.name)));
                    }
                }
            }
            Look::Asks(questions, _) => self.told.push_back(question::asked(&questions, None)),
            Look::Over(events) => self.told.extend(events),
        }
    }
}

/// The end of a call whose caller does not want to go where it must first.
fn declined(answers: &Answers) -> Option<Event> {
    let is_declined = answers.values().any(|answer| answer.get("action").is_none_or(|said| said != "accept"));
    is_declined.then_some(Event::Canceled { message: None, aside: Aside::default() })
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

// === impl Abandoned ===

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some((peer, id)), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(async move {
            let params =
                CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}
