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
    cli::{Dispatch, Dispatches, RouteCommand, Routing, WorkFlags},
    commands::call::{print_detail, wait},
    desk::{Desk, read},
    output::{self, Trouble},
    program::Program,
};

/// So many choices are listed at most.
const MOST: usize = 200;

pub(crate) async fn run(desk: &Desk, command: Routing) -> Result<(), Trouble> {
    match command {
        Routing::Dispatch(options) => dispatch(desk, options).await,
        Routing::Route(RouteCommand::Explain { work, listing }) => {
            let told: Json = desk.post(&["resolve"]).saying(&work.work()).patiently().read().await?;
            if listing.json {
                output::json(&told);
            } else {
                explain(&read(&told)?);
            }
            Ok(())
        }
        Routing::Dispatches(options) => dispatches(desk, options).await,
    }
}

/// Gives work away and waits for it: here with its progress, elsewhere for its end.
async fn dispatch(desk: &Desk, options: Dispatch) -> Result<(), Trouble> {
    let work = options.work.work();
    let part = part(options.input.as_deref(), &work)?;
    let as_json = options.listing.json;
    let done = match desk.program() {
        Some(program) => dispatch_here(program, options, work, part).await?,
        None => desk.post(&["dispatch"]).saying(&wanted(&options, &work, part)).patiently().read().await?,
    };
    if as_json {
        let id = ("dispatchId".to_owned(), Json::encode(&done.dispatch_id));
        output::json(&[id, ("task".to_owned(), done.task)].into_iter().collect::<Extra>());
        return Ok(());
    }
    print_detail(&read(&done.task)?);
    if let (Some(agent), Some(id)) = (done.agent, done.dispatch_id) {
        output::note(format!("Done by {agent} (rialto dispatches {id} says why)"));
    }
    Ok(())
}

/// The work as a server is told of it.
fn wanted(options: &Dispatch, work: &WorkDescription, part: Part) -> NewDispatch {
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
    program: &Program,
    options: Dispatch,
    work: WorkDescription,
    part: Part,
) -> Result<DispatchResult<Json>, Trouble> {
    let request = DispatchRequest {
        context: options.context,
        wall_clock: options.timeout_ms.map(Duration::from_millis),
        ..DispatchRequest::new(program.local_caller(), EntryProtocol::Cli, work, vec![part])
    };
    let running = Box::pin(program.engine.dispatch(request)).await?;
    let dispatch_id = running.dispatch().cloned();
    let task = wait(running, "dispatching", options.listing.json).await?;
    let agent = program.engine.registry().get(&task.head.agent).map(|agent| agent.slug.clone());
    Ok(DispatchResult { dispatch_id, agent, task: Json::encode(&TaskDetail::from(task)) })
}

/// What is said to the agent: what was given, or the description.
fn part(input: Option<&str>, work: &WorkDescription) -> Result<Part, Trouble> {
    let input = match input {
        Some("-") => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?
        }
        Some(text) => text.to_owned(),
        None if work.description.trim().is_empty() => {
            return Err(Trouble::usage("say what is to be done: a description, or --input"));
        }
        None => return Ok(Part::text(work.description.clone())),
    };
    Ok(match Json::parse(input.trim()) {
        Ok(data) if data.is_object() => Part::data(data),
        _ => Part::text(input),
    })
}

async fn dispatches(desk: &Desk, options: Dispatches) -> Result<(), Trouble> {
    if let Some(id) = options.id {
        let told: Result<Json, Failure> = desk.get(&["dispatches", &id]).read().await;
        let told = told.map_err(|failure| match failure.kind {
            FailureKind::NotFound => {
                let message = format!("there is no choice \"{id}\", and none made that task");
                Failure { message, ..failure }
            }
            _ => failure,
        })?;
        if options.listing.json {
            output::json(&told);
        } else {
            explain(&read(&told)?);
        }
        return Ok(());
    }
    let question = desk
        .get(&["dispatches"])
        .with_given("workType", options.work_type)
        .with_given("cursor", options.before);
    let limit = if options.limit == 0 { MOST } else { options.limit.min(MOST) };
    let told: Vec<Json> = question.rows("dispatches", Some(limit)).await?;
    if options.listing.json {
        output::json(&told);
    } else if told.is_empty() {
        output::line("Nothing was dispatched.");
    } else {
        let found = told.iter().map(read::<Decision>).collect::<Result<Vec<_>, _>>()?;
        let header = ["dispatch", "work", "caller", "agent", "outcome", "when (utc)"];
        output::table(&header, found.iter().map(row).collect());
    }
    Ok(())
}

fn row(record: &Decision) -> Vec<String> {
    let agents: Vec<&str> = record.attempts.iter().map(|attempt| attempt.agent.as_str()).collect();
    vec![
        record.id.to_string(),
        about(&record.work),
        record.caller.to_string(),
        agents.join(" → "),
        record.worker().map(outcome).unwrap_or_default(),
        record.at.strftime("%F %T").to_string(),
    ]
}

fn outcome(attempt: &AttemptRecord) -> String {
    attempt.outcome.map_or("open", rialto_model::routing::AssignmentOutcome::as_str).to_owned()
}

fn about(work: &WorkDescription) -> String {
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

/// One choice, with everybody who was weighed.
fn explain(record: &Decision) {
    output::line(format!("{} for {} (seed {})", about(&record.work), record.caller, record.seed));
    if record.candidates.is_empty() {
        output::line("Nobody fits; `rialto agents list` shows who is there.");
        return;
    }
    let header = ["agent", "skill", "fits", "health", "tasks", "posterior", "draw", "score", "verdict"];
    output::table(&header, record.candidates.iter().map(weighed).collect());
    if record.more > 0 {
        output::line(format!("and {} more", record.more));
    }
    for one in record.candidates.iter().take(5) {
        output::line(format!("{}: {}", one.agent, output::printable(&one.reasons.join("; "))));
    }
    for attempt in &record.attempts {
        let why = attempt.why_left.as_ref().map(|why| format!(", left: {why}")).unwrap_or_default();
        let (agent, task) = (&attempt.agent, &attempt.task_id);
        output::line(output::printable(&format!("given to {agent} as {task}: {}{why}", outcome(attempt))));
    }
}

fn weighed(one: &DispatchCandidate) -> Vec<String> {
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

// === impl WorkFlags ===

impl WorkFlags {
    fn work(&self) -> WorkDescription {
        WorkDescription {
            work_type: self.work_type.clone().unwrap_or_default(),
            description: self.description.clone().unwrap_or_default(),
            required_skills: self.skills.clone(),
            input_modes: self.input_modes.clone(),
        }
    }
}
