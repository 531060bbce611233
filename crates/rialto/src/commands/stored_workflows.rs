//! `rialto workflow add|list|show|status|remove|run|runs|resume|cancel`, also for pipelines.

use std::{path::Path, sync::Arc, time::Duration};

use rialto_api_types::{
    tasks::TaskDetail,
    workflows::{InlineRun, RunReply, StatusChange, WorkflowRow},
};
use rialto_engine::CallRequest;
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
    api_client::{ApiClient, parse_response},
    app::App,
    cli::{AddWorkflowOptions, ListRunsOptions, ResumeRunOptions, RunWorkflowOptions, StoredWorkflowCommand},
    commands::call::{print_detail, wait_with_progress},
    configured_workflows::name_from_file,
    output::{self, CommandError},
};

/// Maximum length of a definition's description in a table.
const MAX_SHOWN_CHARS: usize = 60;

/// Default time to wait for a run, and the maximum on a server, which answers before the client's timeout.
const DEFAULT_WAIT: Duration = Duration::from_secs(24 * 3_600);
const MAX_REMOTE_WAIT: Duration = Duration::from_secs(590);

/// `kind` is what definitions must be, where only one kind is meant.
pub(crate) async fn run(
    api: &ApiClient,
    command: StoredWorkflowCommand,
    kind: Option<FlowKind>,
) -> Result<(), CommandError> {
    match command {
        StoredWorkflowCommand::Add(options) => add(api, options, kind).await,
        StoredWorkflowCommand::List(listing) => list(api, listing.json, kind).await,
        StoredWorkflowCommand::Show { name, listing } => {
            let response: Json = api.get(&["workflows", &name]).read().await?;
            if listing.json {
                output::print_json(&response);
                return Ok(());
            }
            let flow: WorkflowRow = parse_response(&response)?;
            let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
            output::print_note(format!("{kind} {}, version {}, {status}", flow.name, flow.version));
            output::print_line(flow.text.unwrap_or_default().trim_end());
            Ok(())
        }
        StoredWorkflowCommand::Status { name, status, listing } => {
            let question = api.post(&["workflows", &name, "status"]);
            let response: Json =
                question.with_json(&StatusChange { status: FlowStatus::from(status) }).read().await?;
            if listing.json {
                output::print_json(&response);
                return Ok(());
            }
            let flow: WorkflowRow = parse_response(&response)?;
            output::print_line(format!("{} {} is {}", flow.kind.as_str(), flow.name, flow.status.as_str()));
            Ok(())
        }
        StoredWorkflowCommand::Remove { name } => {
            api.delete(&["workflows", &name]).send_unit().await?;
            output::print_line(format!("removed {name}; its runs continue"));
            Ok(())
        }
        StoredWorkflowCommand::Run(options) => start_run(api, options).await,
        StoredWorkflowCommand::Runs(options) => runs(api, options).await,
        StoredWorkflowCommand::Resume(options) => resume(api, options).await,
        StoredWorkflowCommand::Cancel { run, listing } => {
            show_task(&api.post(&["runs", &run, "cancel"]).with_long_timeout().read().await?, listing.json)
        }
    }
}

async fn add(
    api: &ApiClient,
    options: AddWorkflowOptions,
    kind: Option<FlowKind>,
) -> Result<(), CommandError> {
    let text = read_text(&options.file)?;
    let question = api
        .post(&["workflows"])
        .with_query("name", options.name.unwrap_or_else(|| name_from_file(&options.file)))
        .with_optional_query("kind", kind.map(FlowKind::as_str))
        .with_optional_query("status", options.status.map(|status| FlowStatus::from(status).as_str()));
    let response: Result<Json, Failure> = question.with_json(&text).read().await;
    let response = response.map_err(|failure| match failure.kind {
        FailureKind::Invalid => {
            Failure { message: with_file_name(&options.file, &failure.message), ..failure }
        }
        _ => failure,
    })?;
    if options.listing.json {
        output::print_json(&response);
        return Ok(());
    }
    let flow: WorkflowRow = parse_response(&response)?;
    let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
    output::print_line(format!("saved {kind} {} as version {}, {status}", flow.name, flow.version));
    if flow.status == FlowStatus::Draft {
        output::print_note(format!("Test it: rialto {kind} run {} --draft", flow.name));
        output::print_note(format!("Activate it: rialto {kind} status {} active", flow.name));
    }
    Ok(())
}

async fn list(api: &ApiClient, as_json: bool, kind: Option<FlowKind>) -> Result<(), CommandError> {
    let question = api.get(&["workflows"]).with_optional_query("kind", kind.map(FlowKind::as_str));
    let response: Vec<Json> = question.read().await?;
    if as_json {
        output::print_json(&response);
    } else if response.is_empty() {
        output::print_line("No workflows yet: rialto workflow add FILE");
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
        let flows = response.iter().map(parse_response::<WorkflowRow>).collect::<Result<Vec<_>, _>>()?;
        let header = ["name", "kind", "status", "version", "skill", "since (utc)"];
        output::print_table(&header, flows.into_iter().map(row).collect());
    }
    Ok(())
}

/// Runs a definition and waits for it: here with its progress, elsewhere for its end.
async fn start_run(api: &ApiClient, options: RunWorkflowOptions) -> Result<(), CommandError> {
    let input = match read_input(options.input.as_deref())? {
        Some(text) => Json::parse(text.trim())
            .map_err(|error| CommandError::usage(format!("what the run is given is not JSON: {error}")))?,
        None => Json::empty_object(),
    };
    let file = Path::new(&options.name);
    let inline = (file.extension().is_some() && file.is_file()).then(|| read_text(file)).transpose()?;
    let as_json = options.listing.json;
    if let Some(program) = api.local_app() {
        return start_here(program, options, inline, input).await;
    }
    let question = match inline {
        Some(text) => api.post(&["runs"]).with_json(&inline_call(&text, input)),
        None => api
            .post(&["workflows", &options.name, "runs"])
            .with_query("draft", options.draft)
            .with_json(&input),
    };
    let wait = options.timeout_ms.map_or(MAX_REMOTE_WAIT, Duration::from_millis).min(MAX_REMOTE_WAIT);
    let response = question.with_query("timeoutMs", wait.as_millis()).with_long_timeout().read().await?;
    show_task(&response, as_json)
}

async fn start_here(
    program: &App,
    options: RunWorkflowOptions,
    inline: Option<String>,
    input: Json,
) -> Result<(), CommandError> {
    let caller = program.local_caller();
    program.tools.refresh_unlisted(program.engine.registry()).await;
    let (target, args) = if let Some(text) = inline {
        let agent = program.engine.registry().deployments().ensure_flows(&caller.scope).await?;
        let skill = skill("orchestrate_workflow", "orchestrate_workflow", "");
        (CallTarget { agent, skill: Some(Arc::new(skill)) }, inline_call(&text, input))
    } else {
        let book = program.flows.definitions();
        (book.resolve_target(&program.engine, &caller, &options.name, options.draft).await?, input)
    };
    let request = CallRequest {
        timeout: options.timeout_ms.map(Duration::from_millis).or(Some(DEFAULT_WAIT)),
        ..CallRequest::skill(caller, EntryProtocol::Cli, target, args)
    };
    let running = program.engine.calls().start(request).await?.into_handle()?;
    let task =
        wait_with_progress(running, &format!("running {}", options.name), options.listing.json).await?;
    show_task(&Json::encode(&TaskDetail::from(task)), options.listing.json)
}

/// Request with an inline definition and its input, which retains all digits.
fn inline_call(text: &str, input: Json) -> Json {
    Json::encode(&InlineRun { workflow: text.to_owned(), input })
}

async fn resume(api: &ApiClient, options: ResumeRunOptions) -> Result<(), CommandError> {
    let said = read_input(options.answer.as_deref())?;
    if let Some(program) = api.local_app() {
        return resume_here(program, options, said).await;
    }
    let question = match said {
        None => api.post(&["runs", &options.run, "resume"]),
        Some(text) => {
            let message = match Json::parse(text.trim()) {
                Ok(data) if data.is_object() => data,
                _ => Json::encode(&text),
            };
            let said = RunReply { message, step: options.step };
            let wait = MAX_REMOTE_WAIT.as_millis();
            api.post(&["runs", &options.run]).with_query("timeoutMs", wait).with_json(&said)
        }
    };
    show_task(&question.with_long_timeout().read().await?, options.listing.json)
}

async fn resume_here(
    program: &App,
    options: ResumeRunOptions,
    said: Option<String>,
) -> Result<(), CommandError> {
    let caller = program.local_caller();
    program.tools.refresh_unlisted(program.engine.registry()).await;
    let engine = &program.engine;
    let running = match said {
        None => engine.calls().follow_remote(&caller, &options.run).await?,
        Some(text) => {
            let mut part = match Json::parse(text.trim()) {
                Ok(data) if data.is_object() => Part::data(data),
                _ => Part::text(text),
            };
            let step = options.step.map(|step| json!({ "rialto/flow": { "node": step } }));
            part.metadata = step.as_ref().map(Json::encode);
            let worker = engine.tasks().target(&caller, &options.run).await?;
            let target = CallTarget { agent: worker.agent, skill: None };
            let mut request = CallRequest::message(caller, EntryProtocol::Cli, target, vec![part]);
            request.task = Some(options.run.clone());
            request.timeout = Some(DEFAULT_WAIT);
            engine.calls().start(request).await?.into_handle()?
        }
    };
    let task =
        wait_with_progress(running, &format!("resuming {}", options.run), options.listing.json).await?;
    show_task(&Json::encode(&TaskDetail::from(task)), options.listing.json)
}

async fn runs(api: &ApiClient, options: ListRunsOptions) -> Result<(), CommandError> {
    if let Some(id) = options.run {
        let response: Json = api.get(&["runs", &id]).read().await?;
        if options.listing.json {
            output::print_json(&response);
        } else {
            show_record(&parse_response(&response)?);
        }
        return Ok(());
    }
    let question = api
        .get(&["runs"])
        .with_optional_query("name", options.name)
        .with_optional_query("state", options.state.map(|state| RunState::from(state).as_str()))
        .with_optional_query("cursor", options.before);
    let response: Vec<Json> = question.fetch_rows("runs", Some(options.limit)).await?;
    if options.listing.json {
        output::print_json(&response);
    } else if response.is_empty() {
        output::print_line("No runs.");
    } else {
        let found = response.iter().map(parse_response::<FlowRun>).collect::<Result<Vec<_>, _>>()?;
        let header = ["run", "name", "version", "caller", "state", "began (utc)"];
        output::print_table(&header, found.iter().map(run_row).collect());
    }
    Ok(())
}

fn run_row(run: &FlowRun) -> Vec<String> {
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
    output::print_line(format!("{} of {}: {}", run.id, run.name, run.state.as_str()));
    if let Some(failure) = &run.failure {
        output::print_line(output::sanitize(&failure.message));
    }
    let header = ["step", "attempt", "state", "task", "message"];
    output::print_table(&header, record.steps.iter().map(step_row).collect());
    if let Some(output) = &run.output {
        output::print_json(output);
    }
}

fn step_row(step: &FlowStep) -> Vec<String> {
    let name = step.item.map_or_else(|| step.node.clone(), |item| format!("{}[{item}]", step.node));
    let asks = step.question.as_ref().and_then(|question| question.message.as_ref());
    let said = step.failure.as_ref().map(|failure| failure.message.clone());
    let said = said.or_else(|| asks.map(rialto_model::message::Message::text));
    let said = said.or_else(|| step.output.as_ref().map(ToString::to_string)).unwrap_or_default();
    let mut said = output::sanitize(said.lines().next().unwrap_or_default());
    if let Some((end, _)) = said.char_indices().nth(MAX_SHOWN_CHARS) {
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

fn show_task(response: &Json, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        output::print_json(response);
        return Ok(());
    }
    let task: TaskDetail = parse_response(response)?;
    print_detail(&task);
    if task.state.is_waiting() {
        output::print_note(format!("Answer: rialto workflow resume {} \"<answer>\"", task.task_id));
    }
    Ok(())
}

fn read_input(given: Option<&str>) -> Result<Option<String>, CommandError> {
    match given {
        Some("-") => Ok(Some(
            std::io::read_to_string(std::io::stdin())
                .map_err(|error| CommandError::usage(error.to_string()))?,
        )),
        other => Ok(other.map(str::to_owned)),
    }
}

fn read_text(file: &Path) -> Result<String, CommandError> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| CommandError::usage(format!("{}: {error}", file.display())))
}

/// Each line of what is wrong, with the file in front.
fn with_file_name(file: &Path, problems: &str) -> String {
    problems.lines().map(|line| format!("{}:{line}", file.display())).collect::<Vec<_>>().join("\n")
}
