//! `rialto call NAME [JSON]`: one call, with its progress, and its result on stdout.

mod remote;

use std::time::Duration;

use rialto_admin::calls::{self, CallInput};
use rialto_api_types::tasks::TaskDetail;
use rialto_engine::{
    CallHandle, CallRequest, CallUpdate,
    peer::DiscoveryError,
    registry::{Registration, RegistryError},
};
use rialto_model::{
    agent::{AgentTrust, RowStorage},
    call::EntryProtocol,
    event::Event,
    failure::Failure,
    ids::TaskId,
    message::{Artifact, Content, Message, Part},
    task::{Task, TaskState},
};

use crate::{
    api_client::{ApiClient, LocalApi, parse_response},
    app::App,
    cli::CallOptions,
    output::{self, CommandError, ProgressSpinner},
};

/// Prints the result of a task for people: text as it is, data as JSON.
pub(crate) fn print_detail(task: &TaskDetail) {
    print_task(&task.task_id, task.state, &task.artifacts, task.message.as_ref());
}

pub(crate) async fn run(api: &ApiClient, call: CallOptions) -> Result<(), CommandError> {
    let said = match call.input.as_deref() {
        Some("-") => Some(
            std::io::read_to_string(std::io::stdin())
                .map_err(|error| CommandError::usage(error.to_string()))?,
        ),
        other => other.map(str::to_owned),
    };
    let as_json = call.listing.json;
    match api {
        ApiClient::Local(local) => {
            let task = call_locally(local, call, said).await?;
            if as_json {
                output::print_json(&TaskDetail::from(task));
            } else {
                print_result(&task);
            }
        }
        ApiClient::Remote(remote) => {
            let response = remote::run(api, remote, &call, said).await?;
            if as_json {
                output::print_json(&response);
            } else {
                print_detail(&parse_response(&response)?);
            }
        }
    }
    Ok(())
}

/// Makes a call from this process.
async fn call_locally(
    local: &LocalApi,
    call: CallOptions,
    said: Option<String>,
) -> Result<Task, CommandError> {
    let (program, caller) = (&local.program, local.program.local_caller());
    for outcome in load_agents(program, &call.agents).await {
        outcome?;
    }
    if program.engine.calls().resolve(&caller, &call.name).is_none() {
        program.tools.refresh_unlisted(program.engine.registry()).await;
    }
    let said = said.map_or(CallInput::Empty, CallInput::Text);
    let (target, parts) = calls::resolve_call(&local.admin, &caller, &call.name, said)?;
    let request = CallRequest {
        task: call.task,
        context: call.context,
        timeout: call.timeout_ms.map(Duration::from_millis),
        ..CallRequest::message(caller, EntryProtocol::Cli, target, parts)
    };
    Ok(call_with_progress(program, request, call.listing.json).await?)
}

/// Loads agents for this process only, trusted: the user who names them means to call them. Their names do not depend on which
/// one answers first.
pub(crate) async fn load_agents(program: &App, urls: &[String]) -> Vec<Result<(), CommandError>> {
    let registrations = urls.iter().map(|url| Registration {
        keep: RowStorage::Session,
        trust: Some(AgentTrust::Trusted),
        allow_private: true,
        scope: program.scope.clone(),
        ..Registration::new(url)
    });
    let registered = program.engine.registry().register_all(registrations.collect()).await;
    registered.into_iter().map(|outcome| outcome.map(|_| ()).map_err(not_loaded)).collect()
}

/// Names the command that takes a credential: an agent of one process has none.
fn not_loaded(error: RegistryError) -> CommandError {
    let needs_login =
        matches!(&error, RegistryError::Discovery(DiscoveryError::Status { status: 401 | 403, .. }));
    let mut trouble = CommandError::from(error);
    if needs_login {
        trouble.message += "; it requires authentication: register it with `rialto agents add URL --secret env:NAME` and leave --agent out";
    }
    trouble
}

/// Makes a call and shows its progress on stderr.
pub(crate) async fn call_with_progress(
    program: &App,
    request: CallRequest,
    quiet: bool,
) -> Result<Task, Failure> {
    let name = request.target.verb();
    let running = program.engine.calls().start(request).await?.into_handle()?;
    wait_with_progress(running, &format!("calling {name}"), quiet).await
}

/// Waits for a call and shows its progress on stderr.
pub(crate) async fn wait_with_progress(
    mut running: CallHandle,
    doing: &str,
    quiet: bool,
) -> Result<Task, Failure> {
    let spinner = ProgressSpinner::new(doing.to_owned());
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            step = running.next() => match step {
                CallUpdate::Event(event) => show_progress(&spinner, &event, quiet),
                CallUpdate::Heartbeat => {}
                CallUpdate::Done(task) => return Ok(*task),
                CallUpdate::Failed(failure) => return Err(failure),
            },
            Ok(()) = &mut interrupted => {
                spinner.set_message("cancelling the call");
                running.cancel();
                return running.finish().await;
            }
        }
    }
}

fn show_progress(spinner: &ProgressSpinner, event: &Event, quiet: bool) {
    let text = match event {
        Event::Progress { message: Some(message), .. } => message.text(),
        Event::Artifact { artifact, .. } => rialto_model::message::text_of(&artifact.parts),
        _ => return,
    };
    spinner.set_message(&text);
    if !quiet && !text.trim().is_empty() {
        output::print_note(format!("· {}", output::sanitize(text.trim())));
    }
}

/// True if Rialto asks for approval, not the agent.
fn waits_for_approval(message: Option<&Message>) -> bool {
    let metadata = message.and_then(|message| message.metadata.as_ref());
    metadata.is_some_and(|metadata| metadata.get().contains("\"rialto/approval\""))
}

/// A task's result for people: text as it is, data as JSON.
pub(crate) fn print_result(task: &Task) {
    print_task(&task.head.id, task.head.state, &task.artifacts, task.message.as_ref());
}

fn print_task(id: &TaskId, state: TaskState, artifacts: &[Artifact], message: Option<&Message>) {
    for artifact in artifacts {
        print_artifact(artifact, artifacts.len() > 1);
    }
    if let Some(message) = message.filter(|_| artifacts.is_empty() || state.is_waiting()) {
        print_message(message);
    }
    match state {
        TaskState::InputRequired if waits_for_approval(message) => output::print_note(format!(
            "The call waits for approval: rialto approvals list, or, if you may approve it, \
             rialto call <agent> approve --task {id}"
        )),
        TaskState::InputRequired => output::print_note(format!(
            "The agent waits for an answer: rialto call <agent> \"<answer>\" --task {id}"
        )),
        TaskState::AuthRequired => {
            output::print_note(format!("The agent waits for a login. After it: rialto tasks show {id}"));
        }
        state if state != TaskState::Completed => {
            output::print_note(format!("The task {id} is {state}"));
        }
        _ => {}
    }
}

fn print_artifact(artifact: &Artifact, with_name: bool) {
    if let Some(name) = artifact.name.as_deref().filter(|_| with_name) {
        output::print_line(format!("# {}", output::sanitize(name)));
    }
    artifact.parts.iter().for_each(print_part);
}

fn print_message(message: &Message) {
    message.parts.iter().for_each(print_part);
}

fn print_part(part: &Part) {
    match &part.content {
        Content::Text(text) => output::print_line(text),
        Content::Data(data) | Content::Unknown(data) => output::print_json(data),
        Content::Url(url) => output::print_line(url),
        Content::Raw(bytes) => output::print_line(format!(
            "[{} {}, {} bytes in base64; --json shows them]",
            part.media_type.as_deref().unwrap_or("file"),
            part.filename.as_deref().unwrap_or("without a name"),
            bytes.len()
        )),
    }
}
