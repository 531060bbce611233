//! `rialto workflow add|list|show|status|remove|run|runs|resume|cancel`, and the same for pipelines.

use std::{path::Path, sync::Arc, time::Duration};

use rialto_console::admin::tasks::TaskJson;
use rialto_engine::Request;
use rialto_flow::run::Given;
use rialto_model::{
    call::{Door, Target},
    deployed::skill,
    failure::{Failure, Kind},
    flow::{FlowKind, FlowRun, FlowStep, RunFilter, RunRecord},
    ids::TaskId,
    json::Json,
    message::Part,
    task::Task,
};
use serde_json::json;

use crate::{
    cli::{AddFlow, Flows, ListRuns, ResumeRun, RunFlow},
    commands::call::{print, wait},
    flows::{api::listed, stem},
    output::{self, Trouble},
    program::Program,
};

/// So much of a definition is printed in a table.
const SHOWN: usize = 60;

/// `kind` is what definitions must be, where only one kind is meant.
pub(crate) async fn run(program: &Program, command: Flows, kind: Option<FlowKind>) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    let (book, scope) = (program.flows.book(), &caller.scope);
    match command {
        Flows::Add(options) => add(program, options, kind).await,
        Flows::List(listing) => list(program, listing.json, kind).await,
        Flows::Show { name, listing } => {
            let (flow, _) = book.show(scope, &name).await.map_err(Failure::from)?;
            if listing.json {
                let mut shown = serde_json::to_value(listed(&flow)).unwrap_or_default();
                shown["text"] = json!(flow.text);
                output::json(&shown);
            } else {
                let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
                output::note(format!("{kind} {}, version {}, {status}", flow.name, flow.version));
                output::line(flow.text.trim_end());
            }
            Ok(())
        }
        Flows::Status { name, status, listing } => {
            let set = book.set_status(&program.engine, scope, &name, status.into()).await;
            let flow = set.map_err(Failure::from)?;
            if listing.json {
                output::json(&listed(&flow));
            } else {
                output::line(format!("{} {} is {}", flow.kind.as_str(), flow.name, flow.status.as_str()));
            }
            Ok(())
        }
        Flows::Remove { name } => {
            book.remove(&program.engine, scope, &name, false).await.map_err(Failure::from)?;
            output::line(format!("{name} is forgotten; runs of it go on"));
            Ok(())
        }
        Flows::Run(options) => start(program, options).await,
        Flows::Runs(options) => runs(program, options).await,
        Flows::Resume(options) => resume(program, options).await,
        Flows::Cancel { run, listing } => {
            let task = program.engine.cancel(&caller, &run).await?;
            show_task(&task, listing.json);
            Ok(())
        }
    }
}

async fn add(program: &Program, options: AddFlow, kind: Option<FlowKind>) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    let given = Given {
        scope: caller.scope,
        text: read(&options.file)?,
        name: options.name.unwrap_or_else(|| stem(&options.file)),
        kind,
        by: caller.id,
        status: options.status.map(Into::into),
        configured: false,
    };
    let added = program.flows.book().add(&program.engine, given).await;
    let flow = added.map_err(|error| match error {
        rialto_flow::run::BookError::Invalid(problems) => {
            Trouble::from(Failure::new(Kind::Invalid, located(&options.file, &problems)))
        }
        error => Failure::from(error).into(),
    })?;
    if options.listing.json {
        output::json(&listed(&flow));
        return Ok(());
    }
    let (kind, status) = (flow.kind.as_str(), flow.status.as_str());
    output::line(format!("{kind} {} is kept as version {}, {status}", flow.name, flow.version));
    if flow.status == rialto_model::flow::FlowStatus::Draft {
        output::note(format!("Try it out: rialto {kind} run {} --draft", flow.name));
        output::note(format!("Put it into use: rialto {kind} status {} active", flow.name));
    }
    Ok(())
}

async fn list(program: &Program, wants_json: bool, kind: Option<FlowKind>) -> Result<(), Trouble> {
    let scope = Program::local_caller().scope;
    let mut flows = program.flows.book().list(&scope).await.map_err(Failure::from)?;
    flows.retain(|flow| kind.is_none_or(|kind| flow.kind == kind));
    if wants_json {
        output::json(&flows.iter().map(listed).collect::<Vec<_>>());
    } else if flows.is_empty() {
        output::line("There are none: rialto workflow add FILE");
    } else {
        let row = |flow: &rialto_model::flow::Flow| {
            vec![
                flow.name.clone(),
                flow.kind.as_str().to_owned(),
                flow.status.as_str().to_owned(),
                flow.version.to_string(),
                flow.kind.skill_id(&flow.name),
                flow.at.strftime("%F %T").to_string(),
            ]
        };
        let header = ["name", "kind", "status", "version", "skill", "since (utc)"];
        output::table(&header, flows.iter().map(row).collect());
    }
    Ok(())
}

async fn start(program: &Program, options: RunFlow) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    program.tools.ask(program.engine.registry()).await;
    let input = match input_of(options.input.as_deref())? {
        Some(text) => Json::parse(text.trim())
            .map_err(|error| Trouble::usage(format!("what the run is given is not JSON: {error}")))?,
        None => Json::empty_object(),
    };
    let file = Path::new(&options.name);
    let (target, args) = if file.extension().is_some() && file.is_file() {
        let definition = json!({ "workflow": read(file)?, "input": Json::null() });
        let agent = program.engine.registry().flows(&caller.scope).await?;
        let inline = skill("orchestrate_workflow", "orchestrate_workflow", "");
        let args = with_input(&definition, input);
        (Target { agent, skill: Some(Arc::new(inline)) }, args)
    } else {
        let book = program.flows.book();
        (book.target_of(&program.engine, &caller, &options.name, options.draft).await?, input)
    };
    let request = Request {
        wall_clock: options.timeout_ms.map(Duration::from_millis).or(Some(Duration::from_secs(24 * 3_600))),
        ..Request::skill(caller, Door::Cli, target, args)
    };
    let running = program.engine.call(request).await?;
    let task = wait(running, &format!("running {}", options.name), options.listing.json).await?;
    show_task(&task, options.listing.json);
    Ok(())
}

/// The definition with what it is given, which keeps every digit.
fn with_input(definition: &serde_json::Value, input: Json) -> Json {
    let workflow = Json::of(&definition["workflow"]);
    let members = [("workflow".to_owned(), workflow), ("input".to_owned(), input)];
    Json::of(&members.into_iter().collect::<rialto_model::json::Extra>())
}

async fn resume(program: &Program, options: ResumeRun) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    program.tools.ask(program.engine.registry()).await;
    let engine = &program.engine;
    let running = match input_of(options.answer.as_deref())? {
        None => engine.rejoin(&caller, &options.run).await?,
        Some(text) => {
            let mut part = match Json::parse(text.trim()) {
                Ok(data) if data.is_object() => Part::data(data),
                _ => Part::text(text),
            };
            let step = options.step.map(|step| json!({ "rialto/flow": { "node": step } }));
            part.metadata = step.as_ref().map(Json::of);
            let worker = engine.worker(&caller, &options.run).await?;
            let target = Target { agent: worker.agent, skill: None };
            let mut request = Request::message(caller, Door::Cli, target, vec![part]);
            request.task = Some(options.run.clone());
            request.wall_clock = Some(Duration::from_secs(24 * 3_600));
            engine.call(request).await?
        }
    };
    let task = wait(running, &format!("going on with {}", options.run), options.listing.json).await?;
    show_task(&task, options.listing.json);
    Ok(())
}

async fn runs(program: &Program, options: ListRuns) -> Result<(), Trouble> {
    let scope = Program::local_caller().scope;
    if let Some(id) = options.run {
        let record = program.store.run(&scope, &TaskId::from(&id)).await?;
        let record = record.ok_or_else(|| Trouble::not_found(format!("there is no run \"{id}\"")))?;
        if options.listing.json {
            output::json(&record);
        } else {
            show_record(&record);
        }
        return Ok(());
    }
    let filter = RunFilter {
        caller: None,
        name: options.name,
        state: options.state.map(Into::into),
        before: options.before.map(TaskId::from),
        limit: options.limit,
    };
    let found = program.store.runs(&scope, &filter).await?;
    if options.listing.json {
        output::json(&found);
    } else if found.is_empty() {
        output::line("Nothing was run.");
    } else {
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

fn show_task(task: &Task, wants_json: bool) {
    if wants_json {
        output::json(&TaskJson::of(task));
        return;
    }
    print(task);
    if task.head.state.is_waiting() {
        output::note(format!("Answer: rialto workflow resume {} \"<answer>\"", task.head.id));
    }
}

fn input_of(given: Option<&str>) -> Result<Option<String>, Trouble> {
    match given {
        Some("-") => Ok(Some(
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?,
        )),
        other => Ok(other.map(str::to_owned)),
    }
}

fn read(file: &Path) -> Result<String, Trouble> {
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
