//! `rialto tools …`: what is deployed, from the command line.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use rialto_model::{
    agent::{Agent, Keep},
    call::Caller,
    clock::{Clock, SystemClock},
    deployed::Backing,
    ids::Scope,
};
use serde_json::Value;

use crate::{
    cli::{AddTool, Listing, Tools},
    commands::call,
    config::deployed::{Function, McpServer, Setting, Wanted, Way, Words},
    output::{self, Spinner, Trouble},
    program::Program,
    tools::shown::{self, Shown},
};

pub(crate) async fn run(program: &Program, command: Tools) -> Result<(), Trouble> {
    let done = match command {
        Tools::Add(add) => self::add(program, *add).await,
        Tools::List(listing) => list(program, listing).await,
        Tools::Show { name, listing } => show(program, &name, listing).await,
        Tools::Remove { name } => remove(program, &name).await,
        Tools::Call(options) => call::run(program, options).await,
    };
    program.finish_traces().await;
    program.tools.close().await;
    done
}

async fn add(program: &Program, add: AddTool) -> Result<(), Trouble> {
    let as_json = add.listing.json;
    let deployment = wanted(add)?;
    let spinner =
        Spinner::new(format!("asking {} what it can do", deployment.backing.name().unwrap_or_default()));
    let registered = program.engine.registry().deploy(deployment).await?;
    drop(spinner);
    let row = registered.agent;
    if as_json {
        output::json(&Shown::of(program.engine.registry(), &row));
        return Ok(());
    }
    let word = if registered.created { "deployed" } else { "updated" };
    output::line(format!("{word} {} ({}):", row.slug, row.backing.kind()));
    for name in shown::names(program.engine.registry(), &row) {
        output::line(format!("  {}", output::printable(&name)));
    }
    Ok(())
}

/// What the flags say, in the words of the configuration.
fn wanted(add: AddTool) -> Result<rialto_engine::registry::Deployment, Trouble> {
    let file = |path: Option<PathBuf>| path.map(|path| Value::String(path.display().to_string()));
    let way = Way {
        command: (!add.command.is_empty()).then_some(Words::Many(add.command)),
        env: pairs(&add.env, '=', "--env NAME=VALUE")?,
        cwd: add.cwd.map(|folder| folder.display().to_string()),
        url: add.url,
        headers: pairs(&add.headers, ':', "--header \"NAME: VALUE\"")?,
        timeout: add.timeout,
        ..Way::default()
    };
    let made = if add.function {
        let function = Function {
            name: add.name,
            description: add.description.unwrap_or_default(),
            input_schema: file(add.schema),
            output_schema: file(add.output_schema),
            idempotent: add.idempotent,
            way,
        };
        Wanted::Function(&function).deployment()
    } else {
        Wanted::Server(&McpServer { name: add.name, sampling: add.sampling, way }).deployment()
    };
    made.map_err(|(key, reason)| Trouble::usage(format!("{key}: {reason}")))
}

fn pairs(given: &[String], between: char, form: &str) -> Result<BTreeMap<String, Setting>, Trouble> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between)?;
        Some((name.trim().to_owned(), Setting::Text(value.trim().to_owned())))
            .filter(|(name, _)| !name.is_empty())
    };
    // What was given may be a secret, so it is not repeated.
    let wrong = || Trouble::usage(format!("write it as {form}"));
    given.iter().map(|text| pair(text).ok_or_else(wrong)).collect()
}

async fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    program.tools.ask(registry).await;
    let rows = registry.deployed(&Scope::default());
    if listing.json {
        output::json(&rows.iter().map(|row| Shown::of(registry, row)).collect::<Vec<_>>());
        return Ok(());
    }
    if rows.is_empty() {
        output::line(
            "Nothing is deployed yet. `rialto tools add NAME --url URL` or `rialto tools add NAME -- COMMAND` deploys an \
             MCP server, and with --function a function.",
        );
        return Ok(());
    }
    let cells = rows.iter().flat_map(|row| {
        let is_there = if shown::is_available(row) { "available" } else { "unavailable" };
        let of = row.backing.name().unwrap_or_default();
        let mut names = shown::names(registry, row);
        if names.is_empty() {
            names.push("-".to_owned());
        }
        let line = move |name| {
            vec![name, row.backing.kind().to_owned(), of.to_owned(), where_to(row), is_there.to_owned()]
        };
        names.into_iter().map(line)
    });
    output::table(&["tool", "kind", "of", "where", "state"], cells.collect());
    for row in rows.iter().filter(|row| !shown::is_available(row)) {
        let why = row.last_error.as_deref().unwrap_or("it has not answered yet");
        output::note(format!("{}: {}", row.slug, output::printable(why)));
    }
    Ok(())
}

fn where_to(row: &Agent) -> String {
    row.backing.via().map(rialto_model::deployed::Via::described).unwrap_or_default()
}

async fn show(program: &Program, name: &str, listing: Listing) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    program.tools.ask(registry).await;
    let row = find(program, &Program::local_caller(), name)?;
    let shown = Shown::of(registry, &row);
    if listing.json {
        output::json(&shown);
        return Ok(());
    }
    let kept = if row.keep == Keep::Configured { "the configuration" } else { "the store" };
    let facts = [
        ("name", row.slug.clone()),
        ("kind", row.backing.kind().to_owned()),
        ("where", where_to(&row)),
        ("kept in", kept.to_owned()),
        ("trust", row.trust.to_string()),
        ("health", row.health.to_string()),
        ("error", row.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(format!("{name:<10} {}", output::printable(value)));
    }
    for (name, from) in shown.settings() {
        output::line(format!("{:<10} {} from {from}", "setting", output::printable(name)));
    }
    output::line("");
    let cells = shown.tools.iter().map(|tool| vec![tool.name.clone(), tool.description.to_owned()]);
    output::table(&["tool", "description"], cells.collect());
    Ok(())
}

async fn remove(program: &Program, name: &str) -> Result<(), Trouble> {
    let row = named(program, &Scope::default(), name).ok_or_else(|| unknown(program, name))?;
    program.engine.registry().remove(&row).await?;
    program
        .policies
        .forget(&row, SystemClock.now())
        .await
        .map_err(|error| Trouble::other(format!("its policies were not removed: {error}")))?;
    output::line(format!("removed {} ({})", row.slug, row.url));
    Ok(())
}

/// What is deployed under this name.
pub(crate) fn named(program: &Program, scope: &Scope, name: &str) -> Option<Arc<Agent>> {
    let rows = program.engine.registry().deployed(scope);
    let is_meant = |row: &&Arc<Agent>| row.slug == name || row.url == name || row.id.as_str() == name;
    let found =
        rows.iter().find(is_meant).or_else(|| rows.iter().find(|row| row.backing.name() == Some(name)));
    found.cloned()
}

/// What is deployed under this name, or has a tool of this name.
fn find(program: &Program, caller: &Caller, name: &str) -> Result<Arc<Agent>, Trouble> {
    let by_tool = || {
        let target = program.engine.resolve(caller, name)?;
        (!matches!(target.agent.backing, Backing::A2a)).then_some(target.agent)
    };
    named(program, &caller.scope, name).or_else(by_tool).ok_or_else(|| unknown(program, name))
}

fn unknown(program: &Program, name: &str) -> Trouble {
    let of = program.engine.resolve(&Program::local_caller(), name);
    let of = of.map(|target| target.agent).filter(|agent| !agent.backing.is_agent());
    Trouble::usage(match of {
        Some(row) => format!("{name} is a tool of {}; name that: {}", row.slug, row.slug),
        None => format!("nothing is deployed as \"{name}\"; `rialto tools list` shows what is"),
    })
}
