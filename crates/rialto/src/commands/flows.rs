//! `rialto workflow add|list|show|status|remove|run|runs|resume|cancel`, and the same for pipelines.

use std::{path::Path, sync::Arc, time::Duration};

use rialto_api_types::{
    tasks::TaskDetail,
    workflows::{InlineRun, RunReply, StatusChange, WorkflowRow},
};
use rialto_engine::Request;
use rialto_model::{
    backing::skill,
    call::{CallTarget, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::{FlowKind, FlowRun, FlowStatus, FlowStep, RunRecord, RunState},
    json::Json,
    message::Part,
};
use serde_json::json;

use crate::{
    cli::{AddFlow, Flows, ListRuns, ResumeRun, RunFlow},
    commands::call::{print_detail, wait},
    desk::{Desk, read},
    flows::stem,
    output::{self, Trouble},
    program::Program,
};

/// So much of a definition is printed in a table.
const SHOWN: usize = 60;

/// How long a run is waited for when nobody says, and how long if a server is asked: it answers before the client gives up.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
const LONGEST_THERE: Duration = Duration::from_secs(590);

/// `kind` is what definitions must be, where only one kind is meant.
pub(crate) async fn run(desk: &Desk, command: Flows, kind: Option<FlowKind>) -> Result<(), Trouble> {
    match command {
        Flows::Add(options) => add(desk, options, kind).await,
        Flows::List(listing) => list(desk, listing.json, kind).await,
        Flows::Show { name, listing } => {
            let told: Json = desk.get(&["workflows", &name]).read().await?;
            if listing.json {
                output::json(&told);
                return Ok(());
            }
            let flow: WorkflowRow = read(&told)?;
            let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
            output::note(format!("{kind} {}, version {}, {status}", flow.name, flow.version));
            output::line(flow.text.unwrap_or_default().trim_end());
            Ok(())
        }
        Flows::Status { name, status, listing } => {
            let question = desk.post(&["workflows", &name, "status"]);
            let told: Json =
                question.saying(&StatusChange { status: FlowStatus::from(status) }).read().await?;
            if listing.json {
                output::json(&told);
                return Ok(());
            }
            let flow: WorkflowRow = read(&told)?;
            output::line(format!("{} {} is {}", flow.kind.as_str(), flow.name, flow.status.as_str()));
            Ok(())
        }
        Flows::Remove { name } => {
            desk.delete(&["workflows", &name]).done().await?;
            output::line(format!("{name} is forgotten; runs of it go on"));
            Ok(())
        }
        Flows::Run(options) => start(desk, options).await,
        Flows::Runs(options) => runs(desk, options).await,
        Flows::Resume(options) => resume(desk, options).await,
        Flows::Cancel { run, listing } => {
            show_task(&desk.post(&["runs", &run, "cancel"]).patiently().read().await?, listing.json)
        }
    }
}

async fn add(desk: &Desk, options: AddFlow, kind: Option<FlowKind>) -> Result<(), Trouble> {
    let text = text_of(&options.file)?;
    let question = desk
        .post(&["workflows"])
        .with("name", options.name.unwrap_or_else(|| stem(&options.file)))
        .with_given("kind", kind.map(FlowKind::as_str))
        .with_given("status", options.status.map(|status| FlowStatus::from(status).as_str()));
    let told: Result<Json, Failure> = question.saying(&text).read().await;
    let told = told.map_err(|failure| match failure.kind {
        FailureKind::Invalid => Failure { message: located(&options.file, &failure.message), ..failure },
        _ => failure,
    })?;
    if options.listing.json {
        output::json(&told);
        return Ok(());
    }
    let flow: WorkflowRow = read(&told)?;
    let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
    output::line(format!("{kind} {} is kept as version {}, {status}", flow.name, flow.version));
    if flow.status == FlowStatus::Draft {
        output::note(format!("Try it out: rialto {kind} run {} --draft", flow.name));
        output::note(format!("Put it into use: rialto {kind} status {} active", flow.name));
    }
    Ok(())
}

async fn list(desk: &Desk, as_json: bool, kind: Option<FlowKind>) -> Result<(), Trouble> {
    let question = desk.get(&["workflows"]).with_given("kind", kind.map(FlowKind::as_str));
    let told: Vec<Json> = question.read().await?;
    if as_json {
        output::json(&told);
    } else if told.is_empty() {
        output::line("There are none: rialto workflow add FILE");
    } else {
        let row = |flow: WorkflowRow| {
            vec![
                flow.name,
                flow.kind.as_str().to_owned(),
                flow.status.as_str().to_owned(),
                flow.version.to_string(),
                flow.skill,
                flow.at.strftime("%F %T").to_string(),
            ]
        };
        let flows = told.iter().map(read::<WorkflowRow>).collect::<Result<Vec<_>, _>>()?;
        let header = ["name", "kind", "status", "version", "skill", "since (utc)"];
        output::table(&header, flows.into_iter().map(row).collect());
    }
    Ok(())
}

/// Runs a definition and waits for it: here with its progress, elsewhere for its end.
async fn start(desk: &Desk, options: RunFlow) -> Result<(), Trouble> {
    let input = match input_of(options.input.as_deref())? {
        Some(text) => Json::parse(text.trim())
            .map_err(|error| Trouble::usage(format!("what the run is given is not JSON: {error}")))?,
        None => Json::empty_object(),
    };
    let file = Path::new(&options.name);
    let inline = (file.extension().is_some() && file.is_file()).then(|| text_of(file)).transpose()?;
    let as_json = options.listing.json;
    if let Some(program) = desk.program() {
        return start_here(program, options, inline, input).await;
    }
    let question = match inline {
        Some(text) => desk.post(&["runs"]).saying(&inline_call(&text, input)),
        None => desk.post(&["workflows", &options.name, "runs"]).with("draft", options.draft).saying(&input),
    };
    let wait = options.timeout_ms.map_or(LONGEST_THERE, Duration::from_millis).min(LONGEST_THERE);
    let told = question.with("timeoutMs", wait.as_millis()).patiently().read().await?;
    show_task(&told, as_json)
}

async fn start_here(
    program: &Program,
    options: RunFlow,
    inline: Option<String>,
    input: Json,
) -> Result<(), Trouble> {
    let caller = program.local_caller();
    program.tools.ask(program.engine.registry()).await;
    let (target, args) = if let Some(text) = inline {
        let agent = program.engine.registry().flows(&caller.scope).await?;
        let skill = skill("orchestrate_workflow", "orchestrate_workflow", "");
        (CallTarget { agent, skill: Some(Arc::new(skill)) }, inline_call(&text, input))
    } else {
        let book = program.flows.book();
        (book.target_of(&program.engine, &caller, &options.name, options.draft).await?, input)
    };
    let request = Request {
        wall_clock: options.timeout_ms.map(Duration::from_millis).or(Some(LONGEST)),
        ..Request::skill(caller, EntryProtocol::Cli, target, args)
    };
    let running = program.engine.call(request).await?;
    let task = wait(running, &format!("running {}", options.name), options.listing.json).await?;
    show_task(&Json::encode(&TaskDetail::from(task)), options.listing.json)
}

/// A definition with what it is given, which keeps every digit.
fn inline_call(text: &str, input: Json) -> Json {
    Json::encode(&InlineRun { workflow: text.to_owned(), input })
}

async fn resume(desk: &Desk, options: ResumeRun) -> Result<(), Trouble> {
    let said = input_of(options.answer.as_deref())?;
    if let Some(program) = desk.program() {
        return resume_here(program, options, said).await;
    }
    let question = match said {
        None => desk.post(&["runs", &options.run, "resume"]),
        Some(text) => {
            let message = match Json::parse(text.trim()) {
                Ok(data) if data.is_object() => data,
                _ => Json::encode(&text),
            };
            let said = RunReply { message, step: options.step };
            let wait = LONGEST_THERE.as_millis();
            desk.post(&["runs", &options.run]).with("timeoutMs", wait).saying(&said)
        }
    };
    show_task(&question.patiently().read().await?, options.listing.json)
}

async fn resume_here(program: &Program, options: ResumeRun, said: Option<String>) -> Result<(), Trouble> {
    let caller = program.local_caller();
    program.tools.ask(program.engine.registry()).await;
    let engine = &program.engine;
    let running = match said {
        None => engine.rejoin(&caller, &options.run).await?,
        Some(text) => {
            let mut part = match Json::parse(text.trim()) {
                Ok(data) if data.is_object() => Part::data(data),
                _ => Part::text(text),
            };
            let step = options.step.map(|step| json!({ "rialto/flow": { "node": step } }));
            part.metadata = step.as_ref().map(Json::encode);
            let worker = engine.worker(&caller, &options.run).await?;
            let target = CallTarget { agent: worker.agent, skill: None };
            let mut request = Request::message(caller, EntryProtocol::Cli, target, vec![part]);
            request.task = Some(options.run.clone());
            request.wall_clock = Some(LONGEST);
            engine.call(request).await?
        }
    };
    let task = wait(running, &format!("going on with {}", options.run), options.listing.json).await?;
    show_task(&Json::encode(&TaskDetail::from(task)), options.listing.json)
}

async fn runs(desk: &Desk, options: ListRuns) -> Result<(), Trouble> {
    if let Some(id) = options.run {
        let told: Json = desk.get(&["runs", &id]).read().await?;
        if options.listing.json {
            output::json(&told);
        } else {
            show_record(&read(&told)?);
        }
        return Ok(());
    }
    let question = desk
        .get(&["runs"])
        .with_given("name", options.name)
        .with_given("state", options.state.map(|state| RunState::from(state).as_str()))
        .with_given("cursor", options.before);
    let told: Vec<Json> = question.rows("runs", Some(options.limit)).await?;
    if options.listing.json {
        output::json(&told);
    } else if told.is_empty() {
        output::line("Nothing was run.");
    } else {
        let found = told.iter().map(read::<FlowRun>).collect::<Result<Vec<_>, _>>()?;
        let header = ["run", "name", "version", "caller", "state", "began (utc)"];
        output::table(&header, found.iter().map(row).collect());
    }
    Ok(())
}

fn row(run: &FlowRun) -> Vec<String> {
    vec![
        run.id.to_string(),
        run.name.clone(),
        run.version.map_or_else(|| "inline".to_owned(), |version| version.to_string()),
        run.caller.to_string(),
        run.state.as_str().to_owned(),
        run.created_at.strftime("%F %T").to_string(),
    ]
}

fn show_record(record: &RunRecord) {
    let run = &record.run;
    output::line(format!("{} of {}: {}", run.id, run.name, run.state.as_str()));
    if let Some(failure) = &run.failure {
        output::line(output::printable(&failure.message));
    }
    let header = ["step", "attempt", "state", "task", "says"];
    output::table(&header, record.steps.iter().map(step_row).collect());
    if let Some(output) = &run.output {
        output::json(output);
    }
}

fn step_row(step: &FlowStep) -> Vec<String> {
    let name = step.item.map_or_else(|| step.node.clone(), |item| format!("{}[{item}]", step.node));
    let asks = step.question.as_ref().and_then(|question| question.message.as_ref());
    let said = step.failure.as_ref().map(|failure| failure.message.clone());
    let said = said.or_else(|| asks.map(rialto_model::message::Message::text));
    let said = said.or_else(|| step.output.as_ref().map(ToString::to_string)).unwrap_or_default();
    let mut said = output::printable(said.lines().next().unwrap_or_default());
    if let Some((end, _)) = said.char_indices().nth(SHOWN) {
        said.truncate(end);
        said.push('…');
    }
    vec![
        name,
        step.attempt.to_string(),
        step.state.as_str().to_owned(),
        step.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        said,
    ]
}

fn show_task(told: &Json, as_json: bool) -> Result<(), Trouble> {
    if as_json {
        output::json(told);
        return Ok(());
    }
    let task: TaskDetail = read(told)?;
    print_detail(&task);
    if task.state.is_waiting() {
        output::note(format!("Answer: rialto workflow resume {} \"<answer>\"", task.task_id));
    }
    Ok(())
}

fn input_of(given: Option<&str>) -> Result<Option<String>, Trouble> {
    match given {
        Some("-") => Ok(Some(
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?,
        )),
        other => Ok(other.map(str::to_owned)),
    }
}

fn text_of(file: &Path) -> Result<String, Trouble> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| Trouble::usage(format!("{}: {error}", file.display())))
}

/// Each line of what is wrong, with the file in front.
fn located(file: &Path, problems: &str) -> String {
    problems.lines().map(|line| format!("{}:{line}", file.display())).collect::<Vec<_>>().join("\n")
}
