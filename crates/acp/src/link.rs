//! A program that runs, and the sessions in it.

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
use rialto_edge::process::{Child, Launcher};
use rialto_model::{
    backing::{BackingTransport, CodingAgentBacking, FileAccess, ProcessCommand},
    failure::{Failure, FailureKind},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::{
    codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError},
    sync::{CancellationToken, DropGuard},
};

use crate::files;

/// A program that is started for the first time may have to be downloaded.
const START: Duration = Duration::from_secs(120);

/// How long a session may take to begin.
const SESSION: Duration = Duration::from_secs(60);

/// How long a program may take to end after its pipe has broken.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// The longest line that a program may write.
const LONGEST_LINE: usize = 32 * 1024 * 1024;

/// So much may be said while nobody listens.
const UNHEARD: usize = 4_096;

/// What is heard in a turn.
pub(crate) enum Heard {
    /// The agent says something.
    Update(Box<SessionUpdate>),
    /// It wants to use a tool.
    Permission(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// The turn is over.
    Ended(Result<StopReason, Failure>),
}

/// A program that runs.
pub(crate) struct Link {
    connection: ConnectionTo<Agent>,
    pub(crate) capabilities: AgentCapabilities,
    ears: Arc<Ears>,
    folder: PathBuf,
    gone: CancellationToken,
    /// The program ends with this.
    _stop: DropGuard,
}

/// Who listens to which session.
#[derive(Default)]
struct Ears(Mutex<HashMap<SessionId, Option<Ear>>>);

struct Ear {
    heard: mpsc::Sender<Heard>,
    /// Whether more was said than could be kept.
    is_full: Arc<AtomicBool>,
}

/// A session that a turn has to itself.
pub(crate) struct Taken {
    pub(crate) session: SessionId,
    pub(crate) heard: mpsc::Receiver<Heard>,
    tell: mpsc::Sender<Heard>,
    pub(crate) is_full: Arc<AtomicBool>,
}

// === impl Link ===

impl Link {
    /// Starts a program and greets it.
    pub(crate) async fn start(launcher: &Launcher, local: &CodingAgentBacking) -> Result<Arc<Self>, String> {
        let BackingTransport::Command(command) = &local.via else {
            return Err("a coding agent is started by a command".to_owned());
        };
        let folder = folder(command)?;
        let mut child = launcher.start(command, &local.name).await?;
        let said = child.said();
        let (Some(stdin), Some(stdout)) = (child.stdin(), child.stdout()) else {
            return Err("its pipes could not be had".to_owned());
        };
        let codec = || LinesCodec::new_with_max_length(LONGEST_LINE);
        let lines = Lines::new(
            SinkExt::<String>::sink_map_err(FramedWrite::new(stdin, codec()), broken),
            FramedRead::new(stdout, codec()).map_err(broken),
        );
        let (ears, gone) = (Arc::<Ears>::default(), CancellationToken::new());
        let stop = CancellationToken::new();
        let (ready, greeted) = oneshot::channel();
        let driven =
            drive(lines, child, Arc::clone(&ears), (folder.clone(), local.files), (ready, stop.clone()));
        let ended = gone.clone();
        tokio::spawn(async move {
            if let Err(error) = driven.await {
                tracing::debug!("a connection to a coding agent broke: {error}");
            }
            ended.cancel();
        });
        let greeted = timeout(START, greeted).await;
        let last = |what: &str| match said.last(3) {
            words if words.is_empty() => what.to_owned(),
            words => format!("{what}; it said: {words}"),
        };
        match greeted {
            Ok(Ok((connection, capabilities))) => {
                Ok(Arc::new(Self { connection, capabilities, ears, folder, gone, _stop: stop.drop_guard() }))
            }
            Ok(Err(_)) => Err(last("it ended, or did not answer the greeting as the protocol says")),
            Err(_) => Err(last("it did not answer the greeting")),
        }
    }

    /// Whether the program has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// A session for a turn: the one that is named, if nobody is at work in it, or a new one.
    pub(crate) async fn session(&self, named: Option<&str>) -> Result<Taken, String> {
        if let Some(id) = named.map(|id| SessionId::from(id.to_owned())) {
            if let Some(taken) = self.ears.take(&id) {
                return Ok(taken);
            }
            if !self.ears.knows(&id)
                && self.capabilities.load_session
                && self.load(&id).await.is_ok()
                && let Some(taken) = self.ears.take(&id)
            {
                return Ok(taken);
            }
        }
        let begun = self.connection.send_request(NewSessionRequest::new(self.folder.clone())).block_task();
        let begun = timeout(SESSION, begun).await.map_err(|_| "it began no session in time".to_owned())?;
        let id = begun.map_err(|error| format!("it began no session: {}", error.message))?.session_id;
        self.ears.know(&id);
        self.ears.take(&id).ok_or_else(|| "it gave the same session twice".to_owned())
    }

    /// Brings back a session of a process that has ended. What was said in it before is said again, to nobody.
    async fn load(&self, id: &SessionId) -> Result<(), ()> {
        let request = LoadSessionRequest::new(id.clone(), self.folder.clone());
        let loaded = timeout(SESSION, self.connection.send_request(request).block_task()).await;
        loaded.map_err(drop)?.map_err(drop)?;
        self.ears.know(id);
        Ok(())
    }

    /// Begins a turn. How it ends is heard behind everything else.
    pub(crate) fn prompt(&self, taken: &Taken, blocks: Vec<ContentBlock>) {
        let sent = self.connection.send_request(PromptRequest::new(taken.session.clone(), blocks));
        let (tell, gone) = (taken.tell.clone(), self.gone.clone());
        tokio::spawn(async move {
            let ended = tokio::select! {
                answer = sent.block_task() => answer.map(|answer| answer.stop_reason),
                () = gone.cancelled() => Err(Error::internal_error()),
            };
            let ended = match ended {
                Ok(reason) => Ok(reason),
                Err(error) => Err(failure(&error, &gone).await),
            };
            let _ = tell.send(Heard::Ended(ended)).await;
        });
    }

    /// Calls a turn off.
    pub(crate) fn cancel(&self, session: &SessionId) {
        if let Err(error) = self.connection.send_notification(CancelNotification::new(session.clone())) {
            tracing::debug!("a turn could not be called off: {error}");
        }
    }

    /// Lets go of a session: the next turn may have it.
    pub(crate) fn free(&self, session: &SessionId) {
        self.ears.know(session);
    }
}

// === impl Ears ===

impl Ears {
    fn know(&self, id: &SessionId) {
        self.0.lock().insert(id.clone(), None);
    }

    fn knows(&self, id: &SessionId) -> bool {
        self.0.lock().contains_key(id)
    }

    /// Takes a session that nobody is at work in.
    fn take(&self, id: &SessionId) -> Option<Taken> {
        let mut sessions = self.0.lock();
        let slot = sessions.get_mut(id).filter(|slot| slot.is_none())?;
        let (tell, heard) = mpsc::channel(UNHEARD);
        let is_full = Arc::new(AtomicBool::new(false));
        *slot = Some(Ear { heard: tell.clone(), is_full: Arc::clone(&is_full) });
        Some(Taken { session: id.clone(), heard, tell, is_full })
    }

    fn tell(&self, id: &SessionId, heard: Heard) {
        if let Some(Some(ear)) = self.0.lock().get(id)
            && ear.heard.try_send(heard).is_err()
        {
            ear.is_full.store(true, Ordering::Relaxed);
        }
    }
}

type Ready = oneshot::Sender<(ConnectionTo<Agent>, AgentCapabilities)>;

/// Speaks with a program until it ends.
async fn drive<O, I>(
    lines: Lines<O, I>,
    mut child: Child,
    ears: Arc<Ears>,
    (folder, may): (PathBuf, FileAccess),
    (ready, stop): (Ready, CancellationToken),
) -> Result<(), Error>
where
    O: futures::Sink<String, Error = io::Error> + Send + 'static,
    I: futures::Stream<Item = io::Result<String>> + Send + 'static,
{
    let (told, asked) = (Arc::clone(&ears), ears);
    let (read_in, write_in) = (folder.clone(), folder);
    Client
        .v1()
        .on_receive_notification(
            async move |said: SessionNotification, _| {
                told.tell(&said.session_id, Heard::Update(Box::new(said.update)));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |wish: RequestPermissionRequest, responder, _| {
                asked.tell(&wish.session_id.clone(), Heard::Permission(Box::new(wish), responder));
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |wish: ReadTextFileRequest, responder, _| {
                let text = files::read(&read_in, may, &wish.path, wish.line, wish.limit).await;
                match text {
                    Ok(text) => responder.respond(ReadTextFileResponse::new(text)),
                    Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
                }
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |wish: WriteTextFileRequest, responder, _| match files::write(
                &write_in,
                may,
                &wish.path,
                &wish.content,
            )
            .await
            {
                Ok(()) => responder.respond(WriteTextFileResponse::new()),
                Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(lines, async move |connection: ConnectionTo<Agent>| {
            let hello = connection.send_request(greeting(may)).block_task().await?;
            let _ = ready.send((connection, hello.agent_capabilities));
            tokio::select! {
                _ = child.wait() => {}
                () = stop.cancelled() => {}
            }
            Ok(())
        })
        .await
}

/// Who we are, and what we do for agents.
fn greeting(may: FileAccess) -> InitializeRequest {
    let files = FileSystemCapabilities::new()
        .read_text_file(may != FileAccess::None)
        .write_text_file(may == FileAccess::Write);
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files))
        .client_info(Implementation::new("rialto", env!("CARGO_PKG_VERSION")))
}

/// Where a program works: sessions want to know that from the root on.
fn folder(command: &ProcessCommand) -> Result<PathBuf, String> {
    let named = command.cwd.as_deref().unwrap_or(".");
    let folder = std::path::absolute(named).and_then(|folder| folder.canonicalize());
    folder.map_err(|error| format!("the folder {named}: {error}"))
}

/// What an error in a turn means: a pipe that breaks is noticed before the end of its program.
async fn failure(error: &Error, gone: &CancellationToken) -> Failure {
    if timeout(LAST_BREATH, gone.cancelled()).await.is_ok() {
        return Failure::new(
            FailureKind::PeerUnreachable,
            "the agent's program ended in the middle of its work",
        );
    }
    let message = format!("the agent failed: {}", error.message);
    Failure::new(FailureKind::PeerFailed, message)
}

fn broken(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        LinesCodecError::MaxLineLengthExceeded => io::Error::other("a line was longer than 32 MiB"),
    }
}
