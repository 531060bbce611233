//! Connection to a running program, and its sessions.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_client_protocol::{
    Agent, Client, Error, Lines,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo, Responder,
        schema::{
            AgentCapabilities, CancelNotification, ClientCapabilities, ContentBlock, FileSystemCapabilities,
            Implementation, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
            ReadTextFileRequest, ReadTextFileResponse, RequestPermissionRequest, RequestPermissionResponse,
            SessionId, SessionNotification, SessionUpdate, StopReason, WriteTextFileRequest,
            WriteTextFileResponse,
        },
    },
};
use futures::{SinkExt, TryStreamExt};
use parking_lot::Mutex;
use rialto_model::{
    backing::{BackingTransport, CodingAgentBacking, FileAccess, ProcessCommand},
    failure::{Failure, FailureKind},
};
use rialto_process::{ChildProcess, Launcher};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::{
    codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError},
    sync::{CancellationToken, DropGuard},
};

use crate::files;

/// Start timeout; the first start may download the program.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout of a new session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that a program may take to end after its pipe has broken.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum bytes of a line that a program writes.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Maximum number of queued messages of a turn.
const MAX_QUEUED_MESSAGES: usize = 4_096;

/// Message of a turn.
pub(crate) enum TurnMessage {
    /// Update of the agent.
    Update(Box<SessionUpdate>),
    /// Request for permission to use a tool.
    Permission(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// End of the turn.
    Ended(Result<StopReason, Failure>),
}

/// Connection to a running program.
pub(crate) struct AgentConnection {
    connection: ConnectionTo<Agent>,
    pub(crate) capabilities: AgentCapabilities,
    listeners: Arc<SessionListeners>,
    folder: PathBuf,
    gone: CancellationToken,
    /// Stops the program when it is dropped.
    _stop: DropGuard,
}

/// Sessions, with the listeners of those that are claimed.
#[derive(Default)]
struct SessionListeners(Mutex<HashMap<SessionId, Option<SessionListener>>>);

struct SessionListener {
    messages: mpsc::Sender<TurnMessage>,
    /// True if messages were dropped because the queue was full.
    is_full: Arc<AtomicBool>,
}

/// Session claimed by a turn.
pub(crate) struct ClaimedSession {
    pub(crate) session: SessionId,
    pub(crate) messages: mpsc::Receiver<TurnMessage>,
    sender: mpsc::Sender<TurnMessage>,
    pub(crate) is_full: Arc<AtomicBool>,
}

// === impl AgentConnection ===

impl AgentConnection {
    /// Starts a program and initializes the connection.
    pub(crate) async fn start(launcher: &Launcher, local: &CodingAgentBacking) -> Result<Arc<Self>, String> {
        let BackingTransport::Command(command) = &local.via else {
            return Err("a coding agent is started by a command".to_owned());
        };
        let folder = folder(command)?;
        let mut child = launcher.start(command, &local.name).await?;
        let stderr = child.stderr_tail();
        let (Some(stdin), Some(stdout)) = (child.stdin(), child.stdout()) else {
            return Err("its pipes could not be had".to_owned());
        };
        let codec = || LinesCodec::new_with_max_length(MAX_LINE_BYTES);
        let lines = Lines::new(
            SinkExt::<String>::sink_map_err(FramedWrite::new(stdin, codec()), to_io_error),
            FramedRead::new(stdout, codec()).map_err(to_io_error),
        );
        let (listeners, gone) = (Arc::<SessionListeners>::default(), CancellationToken::new());
        let stop = CancellationToken::new();
        let (ready, initialized) = oneshot::channel();
        let connection_task = run_connection(
            lines,
            child,
            Arc::clone(&listeners),
            (folder.clone(), local.files),
            (ready, stop.clone()),
        );
        let ended = gone.clone();
        tokio::spawn(async move {
            if let Err(error) = connection_task.await {
                tracing::debug!("a connection to a coding agent broke: {error}");
            }
            ended.cancel();
        });
        let initialized = timeout(START_TIMEOUT, initialized).await;
        let last = |what: &str| match stderr.last(3) {
            words if words.is_empty() => what.to_owned(),
            words => format!("{what}; it said: {words}"),
        };
        match initialized {
            Ok(Ok((connection, capabilities))) => Ok(Arc::new(Self {
                connection,
                capabilities,
                listeners,
                folder,
                gone,
                _stop: stop.drop_guard(),
            })),
            Ok(Err(_)) => Err(last("it ended, or did not answer the greeting as the protocol says")),
            Err(_) => Err(last("it did not answer the greeting")),
        }
    }

    /// True if the program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Claims a session for a turn: the requested one if it is free, or a new one.
    pub(crate) async fn claim_session(&self, requested: Option<&str>) -> Result<ClaimedSession, String> {
        if let Some(id) = requested.map(|id| SessionId::from(id.to_owned())) {
            if let Some(claimed) = self.listeners.claim(&id) {
                return Ok(claimed);
            }
            if !self.listeners.contains(&id)
                && self.capabilities.load_session
                && self.load(&id).await.is_ok()
                && let Some(claimed) = self.listeners.claim(&id)
            {
                return Ok(claimed);
            }
        }
        let created = self.connection.send_request(NewSessionRequest::new(self.folder.clone())).block_task();
        let created =
            timeout(SESSION_TIMEOUT, created).await.map_err(|_| "it began no session in time".to_owned())?;
        let id = created.map_err(|error| format!("it began no session: {}", error.message))?.session_id;
        self.listeners.release(&id);
        self.listeners.claim(&id).ok_or_else(|| "it gave the same session twice".to_owned())
    }

    /// Loads a session of a process that has ended. Its earlier messages are sent again and dropped.
    async fn load(&self, id: &SessionId) -> Result<(), ()> {
        let request = LoadSessionRequest::new(id.clone(), self.folder.clone());
        let loaded = timeout(SESSION_TIMEOUT, self.connection.send_request(request).block_task()).await;
        loaded.map_err(drop)?.map_err(drop)?;
        self.listeners.release(id);
        Ok(())
    }

    /// Starts a turn. Its end is the last message.
    pub(crate) fn prompt(&self, claimed: &ClaimedSession, blocks: Vec<ContentBlock>) {
        let sent = self.connection.send_request(PromptRequest::new(claimed.session.clone(), blocks));
        let (sender, gone) = (claimed.sender.clone(), self.gone.clone());
        tokio::spawn(async move {
            let ended = tokio::select! {
                answer = sent.block_task() => answer.map(|answer| answer.stop_reason),
                () = gone.cancelled() => Err(Error::internal_error()),
            };
            let ended = match ended {
                Ok(reason) => Ok(reason),
                Err(error) => Err(turn_failure(&error, &gone).await),
            };
            let _ = sender.send(TurnMessage::Ended(ended)).await;
        });
    }

    /// Cancels a turn.
    pub(crate) fn cancel(&self, session: &SessionId) {
        if let Err(error) = self.connection.send_notification(CancelNotification::new(session.clone())) {
            tracing::debug!("a turn could not be cancelled: {error}");
        }
    }

    /// Releases a session for the next turn.
    pub(crate) fn release(&self, session: &SessionId) {
        self.listeners.release(session);
    }
}

// === impl SessionListeners ===

impl SessionListeners {
    fn release(&self, id: &SessionId) {
        self.0.lock().insert(id.clone(), None);
    }

    fn contains(&self, id: &SessionId) -> bool {
        self.0.lock().contains_key(id)
    }

    /// Claims a free session.
    fn claim(&self, id: &SessionId) -> Option<ClaimedSession> {
        let mut sessions = self.0.lock();
        let slot = sessions.get_mut(id).filter(|slot| slot.is_none())?;
        let (sender, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let is_full = Arc::new(AtomicBool::new(false));
        *slot = Some(SessionListener { messages: sender.clone(), is_full: Arc::clone(&is_full) });
        Some(ClaimedSession { session: id.clone(), messages, sender, is_full })
    }

    fn send(&self, id: &SessionId, heard: TurnMessage) {
        if let Some(Some(listener)) = self.0.lock().get(id)
            && listener.messages.try_send(heard).is_err()
        {
            listener.is_full.store(true, Ordering::Relaxed);
        }
    }
}

type Ready = oneshot::Sender<(ConnectionTo<Agent>, AgentCapabilities)>;

/// Runs the connection until the program ends.
async fn run_connection<O, I>(
    lines: Lines<O, I>,
    mut child: ChildProcess,
    listeners: Arc<SessionListeners>,
    (folder, access): (PathBuf, FileAccess),
    (ready, stop): (Ready, CancellationToken),
) -> Result<(), Error>
where
    O: futures::Sink<String, Error = io::Error> + Send + 'static,
    I: futures::Stream<Item = io::Result<String>> + Send + 'static,
{
    let (update_listeners, permission_listeners) = (Arc::clone(&listeners), listeners);
    let (read_in, write_in) = (folder.clone(), folder);
    Client
        .v1()
        .on_receive_notification(
            async move |said: SessionNotification, _| {
                update_listeners.send(&said.session_id, TurnMessage::Update(Box::new(said.update)));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                permission_listeners
                    .send(&request.session_id.clone(), TurnMessage::Permission(Box::new(request), responder));
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                let text = files::read(&read_in, access, &request.path, request.line, request.limit).await;
                match text {
                    Ok(text) => responder.respond(ReadTextFileResponse::new(text)),
                    Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
                }
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _| match files::write(
                &write_in,
                access,
                &request.path,
                &request.content,
            )
            .await
            {
                Ok(()) => responder.respond(WriteTextFileResponse::new()),
                Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(lines, async move |connection: ConnectionTo<Agent>| {
            let initialized = connection.send_request(initialize_request(access)).block_task().await?;
            let _ = ready.send((connection, initialized.agent_capabilities));
            tokio::select! {
                _ = child.wait() => {}
                () = stop.cancelled() => {}
            }
            Ok(())
        })
        .await
}

/// Initialize request: who we are, and which files we serve.
fn initialize_request(access: FileAccess) -> InitializeRequest {
    let files = FileSystemCapabilities::new()
        .read_text_file(access != FileAccess::None)
        .write_text_file(access == FileAccess::Write);
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files))
        .client_info(Implementation::new("rialto", env!("CARGO_PKG_VERSION")))
}

/// Absolute folder of a program, as sessions require it.
fn folder(command: &ProcessCommand) -> Result<PathBuf, String> {
    let requested = command.cwd.as_deref().unwrap_or(".");
    let folder = std::path::absolute(requested).and_then(|folder| folder.canonicalize());
    folder.map_err(|error| format!("the folder {requested}: {error}"))
}

/// Failure of a turn. A broken pipe is noticed before the end of its program.
async fn turn_failure(error: &Error, gone: &CancellationToken) -> Failure {
    if timeout(EXIT_TIMEOUT, gone.cancelled()).await.is_ok() {
        return Failure::new(
            FailureKind::PeerUnreachable,
            "the agent's program ended in the middle of its work",
        );
    }
    let message = format!("the agent failed: {}", error.message);
    Failure::new(FailureKind::PeerFailed, message)
}

fn to_io_error(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        LinesCodecError::MaxLineLengthExceeded => io::Error::other("a line was longer than 32 MiB"),
    }
}
