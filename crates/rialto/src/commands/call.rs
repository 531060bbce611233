//! `rialto call NAME [JSON]`: one call, with its progress, and its result on stdout.

mod there;

use std::time::Duration;

use rialto_api_types::tasks::TaskDetail;
use rialto_console::admin::calling::{self, Said};
use rialto_engine::{
    Request, Running, Step,
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
    cli::Call,
    desk::{Desk, Here, read},
    output::{self, Spinner, Trouble},
    program::Program,
};

/// Prints the result of a task for people: text as it is, data as JSON.
pub(crate) fn print_detail(task: &TaskDetail) {
    show(&task.task_id, task.state, &task.artifacts, task.message.as_ref());
}

pub(crate) async fn run(desk: &Desk, call: Call) -> Result<(), Trouble> {
    let said = match call.input.as_deref() {
        Some("-") => Some(
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?,
        ),
        other => other.map(str::to_owned),
    };
    let as_json = call.listing.json;
    match desk {
        Desk::Here(here) => {
            let task = make(here, call, said).await?;
            if as_json {
                output::json(&TaskDetail::from(task));
            } else {
                print(&task);
            }
        }
        Desk::There(there) => {
            let told = there::run(desk, there, &call, said).await?;
            if as_json {
                output::json(&told);
            } else {
                print_detail(&read(&told)?);
            }
        }
    }
    Ok(())
}

/// Makes a call from this process.
async fn make(here: &Here, call: Call, said: Option<String>) -> Result<Task, Trouble> {
    let (program, caller) = (&here.program, here.program.local_caller());
    for outcome in load(program, &call.agents).await {
        outcome?;
    }
    if program.engine.resolve(&caller, &call.name).is_none() {
        program.tools.ask(program.engine.registry()).await;
    }
    let said = said.map_or(Said::Nothing, Said::Text);
    let (target, parts) = calling::meant(&here.console, &caller, &call.name, said)?;
    let request = Request {
        task: call.task,
        context: call.context,
        wall_clock: call.timeout_ms.map(Duration::from_millis),
        ..Request::message(caller, EntryProtocol::Cli, target, parts)
    };
    Ok(follow(program, request, call.listing.json).await?)
}

/// Loads agents for this process only, trusted: the user who names them means to call them. Their names do not depend on which
/// one answers first.
pub(crate) async fn load(program: &Program, urls: &[String]) -> Vec<Result<(), Trouble>> {
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
fn not_loaded(error: RegistryError) -> Trouble {
    let needs_login =
        matches!(&error, RegistryError::Discovery(DiscoveryError::Status { status: 401 | 403, .. }));
    let mut trouble = Trouble::from(error);
    if needs_login {
        trouble.message += "; it requires authentication: register it with `rialto agents add URL --secret env:NAME` and leave --agent out";
    }
    trouble
}

/// Makes a call and shows its progress on stderr.
pub(crate) async fn follow(program: &Program, request: Request, quiet: bool) -> Result<Task, Failure> {
    let name = request.target.verb();
    let running = program.engine.call(request).await?;
    wait(running, &format!("calling {name}"), quiet).await
}

/// Waits for a call and shows its progress on stderr.
pub(crate) async fn wait(mut running: Running, doing: &str, quiet: bool) -> Result<Task, Failure> {
    let spinner = Spinner::new(doing.to_owned());
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            step = running.next() => match step {
                Step::Event(event) => tell(&spinner, &event, quiet),
                Step::Heartbeat => {}
                Step::Done(task) => return Ok(*task),
                Step::Failed(failure) => return Err(failure),
            },
            Ok(()) = &mut interrupted => {
                spinner.say("calling it off");
                running.cancel();
                return running.finish().await;
            }
        }
    }
}

fn tell(spinner: &Spinner, event: &Event, quiet: bool) {
    let text = match event {
        Event::Progress { message: Some(message), .. } => message.text(),
        Event::Artifact { artifact, .. } => rialto_model::message::text_of(&artifact.parts),
        _ => return,
    };
    spinner.say(&text);
    if !quiet && !text.trim().is_empty() {
        output::note(format!("· {}", output::printable(text.trim())));
    }
}

/// Whether it is us who ask, and not the agent.
fn waits_for_approval(message: Option<&Message>) -> bool {
    let metadata = message.and_then(|message| message.metadata.as_ref());
    metadata.is_some_and(|metadata| metadata.get().contains("\"rialto/approval\""))
}

/// A task's result for people: text as it is, data as JSON.
pub(crate) fn print(task: &Task) {
    show(&task.head.id, task.head.state, &task.artifacts, task.message.as_ref());
}

fn show(id: &TaskId, state: TaskState, artifacts: &[Artifact], message: Option<&Message>) {
    for artifact in artifacts {
        print_artifact(artifact, artifacts.len() > 1);
    }
    if let Some(message) = message.filter(|_| artifacts.is_empty() || state.is_waiting()) {
        print_message(message);
    }
    match state {
        TaskState::InputRequired if waits_for_approval(message) => output::note(format!(
            "It waits for approval: rialto approvals list, or where you may decide yourself \
             rialto call <agent> approve --task {id}"
        )),
        TaskState::InputRequired => output::note(format!(
            "The agent waits for an answer: rialto call <agent> \"<answer>\" --task {id}"
        )),
        TaskState::AuthRequired => {
            output::note(format!("The agent waits for a login. When it is done: rialto tasks show {id}"));
        }
        state if state != TaskState::Completed => {
            output::note(format!("The task {id} is {state}"));
        }
        _ => {}
    }
}

fn print_artifact(artifact: &Artifact, with_name: bool) {
    if let Some(name) = artifact.name.as_deref().filter(|_| with_name) {
        output::line(format!("# {}", output::printable(name)));
    }
    artifact.parts.iter().for_each(print_part);
}

fn print_message(message: &Message) {
    message.parts.iter().for_each(print_part);
}

fn print_part(part: &Part) {
    match &part.content {
        Content::Text(text) => output::line(text),
        Content::Data(data) | Content::Unknown(data) => output::json(data),
        Content::Url(url) => output::line(url),
        Content::Raw(bytes) => output::line(format!(
            "[{} {}, {} bytes in base64; --json shows them]",
            part.media_type.as_deref().unwrap_or("file"),
            part.filename.as_deref().unwrap_or("without a name"),
            bytes.len()
        )),
    }
}
