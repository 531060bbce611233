//! One call of a tool, from first word to last.
//!
//! Whoever stops listening calls it off: the server is told.

use std::{collections::VecDeque, sync::Arc};

use futures::stream::{self, Stream};
use rialto_model::{
    call::Call,
    event::Event,
    failure::{Failure, Kind},
};
use rialto_policy::Permitted;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientRequest, JsonObject, ProgressNotificationParam, RequestId, RequestMetaObject,
    },
    service::{Peer, PeerRequestOptions, RequestHandle},
};
use serde_json::Value;
use tokio::{runtime::Handle, sync::mpsc};

use super::{connection::Connection, line::Line, told};

/// A call on its way.
pub(super) struct Work {
    line: Arc<Line>,
    call: Permitted<Call>,
    stage: Stage,
    /// What is still to be told.
    told: VecDeque<Event>,
}

enum Stage {
    Begin,
    Listen(Box<Underway>),
    Over,
}

struct Underway {
    /// In use as long as this lives.
    _connection: Arc<Connection>,
    handle: RequestHandle<RoleClient>,
    progress: mpsc::Receiver<ProgressNotificationParam>,
    abandoned: Abandoned,
}

/// Tells the server that nobody waits any more, unless it has answered.
struct Abandoned(Option<(Peer<RoleClient>, RequestId)>);

// === impl Work ===

impl Work {
    pub(super) const fn new(line: Arc<Line>, call: Permitted<Call>) -> Self {
        Self { line, call, stage: Stage::Begin, told: VecDeque::new() }
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
                    Ok(underway) => self.stage = Stage::Listen(Box::new(underway)),
                    Err(failure) => return Some(Event::failed(failure)),
                },
                Stage::Listen(underway) => self.listen(underway).await,
            }
        }
    }

    async fn begin(&self) -> Result<Underway, Failure> {
        let (call, server) = (self.call.get(), &self.line.key.server.name);
        let Some(skill) = &call.target.skill else {
            let message = format!("{server} is an MCP server: name one of its tools");
            return Err(Failure::new(Kind::Invalid, message));
        };
        let Value::Object(arguments) = call.args().value() else {
            return Err(Failure::new(Kind::Invalid, "the arguments of a tool are a JSON object"));
        };
        let connection = self.line.connection().await.map_err(|why| {
            Failure::new(Kind::PeerUnreachable, format!("MCP server {server} could not be reached: {why}"))
        })?;
        let params = CallToolRequestParams::new(skill.id.as_str().to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = connection.progress.send(&connection.peer, request, options(call)).await;
        let (handle, progress) = sent.map_err(|error| Connection::trouble(error).failure(server))?;
        let abandoned = Abandoned(Some((connection.peer.clone(), handle.id.clone())));
        Ok(Underway { _connection: connection, handle, progress, abandoned })
    }

    async fn listen(&mut self, mut underway: Box<Underway>) {
        let server = &self.line.key.server.name;
        let answer = tokio::select! {
            biased;
            Some(progress) = underway.progress.recv() => {
                self.told.push_back(told::progress(progress));
                self.stage = Stage::Listen(underway);
                return;
            }
            answer = &mut underway.handle.rx => answer,
        };
        underway.abandoned.0 = None;
        let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
        match answer {
            Ok(result) => self.told.extend(told::result(&result, server, self.call.get().target.skill_id())),
            Err(error) => {
                self.told.push_back(Event::failed(Connection::trouble(error).failure(server)));
            }
        }
    }
}

fn options(call: &Call) -> PeerRequestOptions {
    let Some(trace) = &call.trace else { return PeerRequestOptions::no_options() };
    let mut meta = JsonObject::new();
    meta.insert("traceparent".to_owned(), Value::String(trace.to_string()));
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
