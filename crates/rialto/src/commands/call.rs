//! `rialto call NAME [JSON]`: one call, with its progress, and its result on stdout.

use std::time::Duration;

use rialto_console::admin::tasks::TaskJson;
use rialto_engine::{Request, Running, Step, registry::Registration};
use rialto_model::{
    agent::{Keep, Trust},
    call::{Caller, Door, Target},
    event::Event,
    failure::{Failure, Kind},
    json::Json,
    message::{Artifact, Content, Message, Part},
    task::{Task, TaskState},
};

use crate::{
    cli::Call,
    output::{self, Spinner, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, call: Call) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    for url in &call.agents {
        load(program, url).await?;
    }
    if program.engine.resolve(&caller, &call.name).is_none() {
        program.tools.ask(program.engine.registry()).await;
    }
    let (target, parts) = understand(program, &caller, &call)?;
    let request = Request {
        task: call.task,
        context: call.context,
        wall_clock: call.timeout_ms.map(Duration::from_millis),
        ..Request::message(caller, Door::Cli, target, parts)
    };
    let task = follow(program, request, call.listing.json).await?;
    if call.listing.json {
        output::json(&TaskJson::of(&task));
    } else {
        print(&task);
    }
    Ok(())
}

/// Loads an agent for this process only: whoever names it here means to call it.
pub(crate) async fn load(program: &Program, url: &str) -> Result<(), Trouble> {
    let registration = Registration {
        keep: Keep::Session,
        trust: Some(Trust::Trusted),
        allow_private: true,
        ..Registration::new(url)
    };
    program.engine.registry().register(registration).await?;
    Ok(())
}

fn understand(program: &Program, caller: &Caller, call: &Call) -> Result<(Target, Vec<Part>), Trouble> {
    let input = match call.input.as_deref() {
        Some("-") => Some(
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?,
        ),
        other => other.map(str::to_owned),
    };
    if let Some(target) = program.engine.resolve(caller, &call.name) {
        let args = match input {
            None => Json::empty_object(),
            Some(text) => Json::parse(text.trim())
                .map_err(|error| Trouble::usage(format!("the arguments are not JSON: {error}")))?,
        };
        return Ok((target, vec![Part::data(args)]));
    }
    let Ok(agent) = program.engine.registry().find(&caller.scope, &call.name) else {
        return Err(unknown(program, caller, &call.name).into());
    };
    let Some(text) = input else {
        return Err(Trouble::usage(format!(
            "{} is an agent: say what to tell it, or name one of its skills",
            agent.slug
        )));
    };
    let part = match Json::parse(text.trim()) {
        Ok(data) if data.is_object() => Part::data(data),
        _ => Part::text(text),
    };
    Ok((Target { agent, skill: None }, vec![part]))
}

fn unknown(program: &Program, caller: &Caller, name: &str) -> Failure {
    let directory = program.engine.registry().directory(&caller.scope);
    let near = directory.listed().map(|entry| entry.canonical.as_str());
    let near = near.filter(|known| {
        known.contains(name) || name.split('.').any(|word| word.len() > 2 && known.contains(word))
    });
    let near: Vec<&str> = near.take(3).collect();
    let hint = if near.is_empty() {
        "`rialto agents list` shows what there is".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Failure::new(Kind::NotFound, format!("there is no skill or agent \"{name}\"; {hint}"))
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
fn waits_for_approval(task: &Task) -> bool {
    let metadata = task.message.as_ref().and_then(|message| message.metadata.as_ref());
    metadata.is_some_and(|metadata| metadata.get().contains("\"rialto/approval\""))
}

/// A task's result for people: text as it is, data as JSON.
pub(crate) fn print(task: &Task) {
    for artifact in &task.artifacts {
        print_artifact(artifact, task.artifacts.len() > 1);
    }
    if let Some(message) = &task.message
        && (task.artifacts.is_empty() || task.head.state.is_waiting())
    {
        print_message(message);
    }
    match task.head.state {
        TaskState::InputRequired if waits_for_approval(task) => output::note(format!(
            "It waits for approval: rialto approvals list, or where you may decide yourself \
             rialto call <agent> approve --task {}",
            task.head.id
        )),
        TaskState::InputRequired => output::note(format!(
            "The agent waits for an answer: rialto call <agent> \"<answer>\" --task {}",
            task.head.id
        )),
        TaskState::AuthRequired => output::note(format!(
            "The agent waits for a login. When it is done: rialto tasks show {}",
            task.head.id
        )),
        state if state != TaskState::Completed => {
            output::note(format!("The task {} is {state}", task.head.id));
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
