//! `rialto dispatch`, `rialto route explain` and `rialto dispatches`.

use std::time::Duration;

use rialto_console::admin::tasks::TaskJson;
use rialto_engine::DispatchRequest;
use rialto_model::{
    call::Door,
    failure::{Failure, Kind},
    ids::DispatchId,
    json::Json,
    message::Part,
    routing::{Attempt, Candidate, Dispatch as Decision, DispatchFilter, Verdict, Work},
};
use serde_json::json;

use crate::{
    cli::{Dispatches, RouteCommand, Routing, WorkFlags},
    commands::call::{print, wait},
    output::{self, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Routing) -> Result<(), Trouble> {
    match command {
        Routing::Dispatch(options) => dispatch(program, options).await,
        Routing::Route(RouteCommand::Explain { work, listing }) => {
            let record = program.engine.explain(&Program::local_caller(), &work.work()).await?;
            if listing.json {
                output::json(&record);
            } else {
                explain(&record);
            }
            Ok(())
        }
        Routing::Dispatches(options) => dispatches(program, options).await,
    }
}

async fn dispatch(program: &Program, options: crate::cli::Dispatch) -> Result<(), Trouble> {
    let work = options.work.work();
    let part = part(options.input.as_deref(), &work)?;
    let request = DispatchRequest {
        context: options.context,
        wall_clock: options.timeout_ms.map(Duration::from_millis),
        ..DispatchRequest::new(Program::local_caller(), Door::Cli, work, vec![part])
    };
    let running = Box::pin(program.engine.dispatch(request)).await?;
    let id = running.dispatch().cloned();
    let task = wait(running, "dispatching", options.listing.json).await?;
    if options.listing.json {
        output::json(&json!({ "dispatchId": id, "task": Json::of(&TaskJson::of(&task)) }));
        return Ok(());
    }
    print(&task);
    if let (Some(agent), Some(id)) = (program.engine.registry().get(&task.head.agent), id) {
        output::note(format!("Done by {} (rialto dispatches {id} says why)", agent.slug));
    }
    Ok(())
}

/// What is said to the agent: what was given, or the description.
fn part(input: Option<&str>, work: &Work) -> Result<Part, Trouble> {
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

async fn dispatches(program: &Program, options: Dispatches) -> Result<(), Trouble> {
    let filter = DispatchFilter {
        caller: None,
        work_type: options.work_type,
        id: options.id.clone(),
        before: options.before.map(DispatchId::from),
        limit: options.limit,
    };
    let found = program.engine.dispatches(&Program::local_caller(), filter).await?;
    if let Some(id) = options.id {
        let missing =
            || Failure::new(Kind::NotFound, format!("there is no choice \"{id}\", and none made that task"));
        let record = found.first().ok_or_else(missing)?;
        if options.listing.json {
            output::json(record);
        } else {
            explain(record);
        }
    } else if options.listing.json {
        output::json(&found);
    } else if found.is_empty() {
        output::line("Nothing was dispatched.");
    } else {
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

fn outcome(attempt: &Attempt) -> String {
    attempt.outcome.map_or("open", rialto_model::routing::PlayOutcome::as_str).to_owned()
}

fn about(work: &Work) -> String {
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

fn weighed(one: &Candidate) -> Vec<String> {
    let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
    let verdict = match &one.verdict {
        Verdict::Chosen => "chosen".to_owned(),
        Verdict::Passed => "passed".to_owned(),
        Verdict::Out(why) => format!("out: {why}"),
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
    fn work(&self) -> Work {
        Work {
            work_type: self.work_type.clone().unwrap_or_default(),
            description: self.description.clone().unwrap_or_default(),
            required_skills: self.skills.clone(),
            input_modes: self.input_modes.clone(),
        }
    }
}
