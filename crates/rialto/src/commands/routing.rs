//! `rialto dispatch`, `rialto route explain` and `rialto dispatches`.

use std::time::Duration;

use rialto_api_types::{
    dispatches::{DispatchResult, NewDispatch},
    tasks::TaskDetail,
};
use rialto_engine::DispatchRequest;
use rialto_model::{
    call::EntryProtocol,
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    message::{Content, Part},
    routing::{AttemptRecord, CandidateVerdict, Dispatch as Decision, DispatchCandidate, WorkDescription},
};

use crate::{
    api_client::{ApiClient, parse_response},
    app::App,
    cli::{DispatchOptions, DispatchesOptions, RouteCommand, RoutingCommand, WorkOptions},
    commands::call::{print_detail, wait_with_progress},
    output::{self, CommandError},
};

/// Maximum number of listed decisions.
const MAX_LISTED: usize = 200;

pub(crate) async fn run(api: &ApiClient, command: RoutingCommand) -> Result<(), CommandError> {
    match command {
        RoutingCommand::Dispatch(options) => dispatch(api, options).await,
        RoutingCommand::Route(RouteCommand::Explain { work, listing }) => {
            let response: Json =
                api.post(&["resolve"]).with_json(&work.work()).with_long_timeout().read().await?;
            if listing.json {
                output::print_json(&response);
            } else {
                print_decision(&parse_response(&response)?);
            }
            Ok(())
        }
        RoutingCommand::Dispatches(options) => dispatches(api, options).await,
    }
}

/// Gives work away and waits for it: here with its progress, elsewhere for its end.
async fn dispatch(api: &ApiClient, options: DispatchOptions) -> Result<(), CommandError> {
    let work = options.work.work();
    let part = message_part(options.input.as_deref(), &work)?;
    let as_json = options.listing.json;
    let done = match api.local_app() {
        Some(program) => dispatch_here(program, options, work, part).await?,
        None => {
            api.post(&["dispatch"])
                .with_json(&dispatch_request(&options, &work, part))
                .with_long_timeout()
                .read()
                .await?
        }
    };
    if as_json {
        let id = ("dispatchId".to_owned(), Json::encode(&done.dispatch_id));
        output::print_json(&[id, ("task".to_owned(), done.task)].into_iter().collect::<Extra>());
        return Ok(());
    }
    print_detail(&parse_response(&done.task)?);
    if let (Some(agent), Some(id)) = (done.agent, done.dispatch_id) {
        output::print_note(format!("Done by {agent} (reasons: rialto dispatches {id})"));
    }
    Ok(())
}

/// Request body for a server.
fn dispatch_request(options: &DispatchOptions, work: &WorkDescription, part: Part) -> NewDispatch {
    let message = match part.content {
        Content::Text(text) => Some(Json::encode(&text)),
        Content::Data(data) => Some(data),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => None,
    };
    NewDispatch {
        work_type: work.work_type.clone(),
        description: work.description.clone(),
        required_skills: work.required_skills.clone(),
        input_modes: work.input_modes.clone(),
        message,
        context_id: options.context.clone(),
        timeout_ms: options.timeout_ms,
    }
}

async fn dispatch_here(
    program: &App,
    options: DispatchOptions,
    work: WorkDescription,
    part: Part,
) -> Result<DispatchResult<Json>, CommandError> {
    let request = DispatchRequest {
        context: options.context,
        timeout: options.timeout_ms.map(Duration::from_millis),
        ..DispatchRequest::new(program.local_caller(), EntryProtocol::Cli, work, vec![part])
    };
    let running = Box::pin(program.engine.dispatches().start(request)).await?;
    let dispatch_id = running.dispatch().cloned();
    let task = wait_with_progress(running, "dispatching", options.listing.json).await?;
    let agent = program.engine.registry().get(&task.head.agent).map(|agent| agent.slug.clone());
    Ok(DispatchResult { dispatch_id, agent, task: Json::encode(&TaskDetail::from(task)) })
}

/// Message to the agent: the input, or the description.
fn message_part(input: Option<&str>, work: &WorkDescription) -> Result<Part, CommandError> {
    let input = match input {
        Some("-") => std::io::read_to_string(std::io::stdin())
            .map_err(|error| CommandError::usage(error.to_string()))?,
        Some(text) => text.to_owned(),
        None if work.description.trim().is_empty() => {
            return Err(CommandError::usage("describe the work: a description, or --input"));
        }
        None => return Ok(Part::text(work.description.clone())),
    };
    Ok(match Json::parse(input.trim()) {
        Ok(data) if data.is_object() => Part::data(data),
        _ => Part::text(input),
    })
}

async fn dispatches(api: &ApiClient, options: DispatchesOptions) -> Result<(), CommandError> {
    if let Some(id) = options.id {
        let response: Result<Json, Failure> = api.get(&["dispatches", &id]).read().await;
        let response = response.map_err(|failure| match failure.kind {
            FailureKind::NotFound => {
                let message =
                    format!("there is no routing decision \"{id}\", and none for a task with that id");
                Failure { message, ..failure }
            }
            _ => failure,
        })?;
        if options.listing.json {
            output::print_json(&response);
        } else {
            print_decision(&parse_response(&response)?);
        }
        return Ok(());
    }
    let question = api
        .get(&["dispatches"])
        .with_optional_query("workType", options.work_type)
        .with_optional_query("cursor", options.before);
    let limit = if options.limit == 0 { MAX_LISTED } else { options.limit.min(MAX_LISTED) };
    let response: Vec<Json> = question.fetch_rows("dispatches", Some(limit)).await?;
    if options.listing.json {
        output::print_json(&response);
    } else if response.is_empty() {
        output::print_line("No routing decisions.");
    } else {
        let found = response.iter().map(parse_response::<Decision>).collect::<Result<Vec<_>, _>>()?;
        let header = ["dispatch", "work", "caller", "agent", "outcome", "when (utc)"];
        output::print_table(&header, found.iter().map(decision_row).collect());
    }
    Ok(())
}

fn decision_row(record: &Decision) -> Vec<String> {
    let agents: Vec<&str> = record.attempts.iter().map(|attempt| attempt.agent.as_str()).collect();
    vec![
        record.id.to_string(),
        work_summary(&record.work),
        record.caller.to_string(),
        agents.join(" → "),
        record.worker().map(attempt_outcome).unwrap_or_default(),
        record.at.strftime("%F %T").to_string(),
    ]
}

fn attempt_outcome(attempt: &AttemptRecord) -> String {
    attempt.outcome.map_or("open", rialto_model::routing::AssignmentOutcome::as_str).to_owned()
}

fn work_summary(work: &WorkDescription) -> String {
    let required = work.required_skills.join(", ");
    let said = [work.work_type.as_str(), required.as_str(), work.description.as_str()];
    let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let mut text = said.join("; ");
    if let Some((end, _)) = text.char_indices().nth(60) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Prints a routing decision with all candidates.
fn print_decision(record: &Decision) {
    output::print_line(format!(
        "{} for {} (seed {})",
        work_summary(&record.work),
        record.caller,
        record.seed
    ));
    if record.candidates.is_empty() {
        output::print_line("No agent matches; `rialto agents list` lists all agents.");
        return;
    }
    let header = ["agent", "skill", "match", "health", "tasks", "success rate", "sample", "score", "verdict"];
    output::print_table(&header, record.candidates.iter().map(candidate_row).collect());
    if record.more > 0 {
        output::print_line(format!("and {} more", record.more));
    }
    for one in record.candidates.iter().take(5) {
        output::print_line(format!("{}: {}", one.agent, output::sanitize(&one.reasons.join("; "))));
    }
    for attempt in &record.attempts {
        let why = attempt.why_left.as_ref().map(|why| format!(", failed over: {why}")).unwrap_or_default();
        let (agent, task) = (&attempt.agent, &attempt.task_id);
        output::print_line(output::sanitize(&format!(
            "sent to {agent} as {task}: {}{why}",
            attempt_outcome(attempt)
        )));
    }
}

fn candidate_row(one: &DispatchCandidate) -> Vec<String> {
    let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
    let verdict = match &one.verdict {
        CandidateVerdict::Chosen => "chosen".to_owned(),
        CandidateVerdict::Passed => "passed".to_owned(),
        CandidateVerdict::Out(why) => format!("out: {why}"),
    };
    vec![
        one.agent.clone(),
        one.skill.as_ref().map(ToString::to_string).unwrap_or_default(),
        format!("{:.2}", one.capability_score),
        format!("{} ×{}", one.health, one.health_factor),
        format!("{} ×{}", one.active_tasks, one.load_factor),
        format!("Beta({:.1}, {:.1})", one.posterior.alpha, one.posterior.beta),
        number(one.draw),
        number(one.score),
        verdict,
    ]
}

// === impl WorkOptions ===

impl WorkOptions {
    fn work(&self) -> WorkDescription {
        WorkDescription {
            work_type: self.work_type.clone().unwrap_or_default(),
            description: self.description.clone().unwrap_or_default(),
            required_skills: self.skills.clone(),
            input_modes: self.input_modes.clone(),
        }
    }
}
