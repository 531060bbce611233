//! `rialto tools …`: what is deployed, from the command line.

use std::{collections::BTreeMap, path::PathBuf};

use rialto_api_types::tools::{CommandLine, DeploymentKind, DeploymentRow, NewDeployment};
use rialto_model::json::Json;
use serde_json::Value;

use crate::{
    cli::{AddTool, Listing, Tools},
    commands::{agents::card_diff, call},
    config::deployed,
    desk::{Desk, read},
    output::{self, Spinner, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Tools) -> Result<(), Trouble> {
    if let Some(program) = desk.program()
        && matches!(command, Tools::List(_) | Tools::Show { .. })
    {
        program.tools.ask(program.engine.registry()).await;
    }
    match command {
        Tools::Add(add) => self::add(desk, *add).await,
        Tools::List(listing) => list(desk, listing).await,
        Tools::Show { name, listing } => show(desk, &name, listing).await,
        Tools::Remove { name } => remove(desk, &name).await,
        Tools::Call(options) => call::run(desk, options).await,
    }
}

async fn add(desk: &Desk, add: AddTool) -> Result<(), Trouble> {
    let as_json = add.listing.json;
    let spinner = Spinner::new(format!("asking {} what it can do", add.name));
    let question = desk.post(&["tools"]).saying(&described(add)?).patiently();
    let (is_new, told): (bool, Json) = question.made().await?;
    drop(spinner);
    if as_json {
        output::json(&told);
        return Ok(());
    }
    let row: DeploymentRow = read(&told)?;
    let word = if is_new { "deployed" } else { "updated" };
    output::line(format!("{word} {} ({}):", row.name, row.kind));
    for tool in &row.tools {
        output::line(format!("  {}", output::printable(&tool.name)));
    }
    Ok(())
}

/// The deployment that the flags describe.
fn described(add: AddTool) -> Result<NewDeployment, Trouble> {
    Ok(NewDeployment {
        kind: if add.function { DeploymentKind::Function } else { DeploymentKind::Mcp },
        name: add.name,
        url: add.url,
        headers: pairs(&add.headers, ':', "--header \"NAME: VALUE\"")?,
        command: Some(add.command).filter(|words| !words.is_empty()).map(CommandLine::Words),
        args: Vec::new(),
        env: pairs(&add.env, '=', "--env NAME=VALUE")?,
        cwd: add.cwd.map(|folder| folder.display().to_string()),
        nodes: Vec::new(),
        singleton: false,
        timeout: add.timeout,
        sampling: add.sampling,
        trust: add.trust,
        description: add.function.then(|| add.description.unwrap_or_default()),
        input_schema: schema("schema", add.schema.filter(|_| add.function))?,
        output_schema: schema("output-schema", add.output_schema.filter(|_| add.function))?,
        idempotent: add.function.then_some(add.idempotent),
    })
}

/// A schema in a file of this machine, as it is sent to the server.
fn schema(flag: &str, file: Option<PathBuf>) -> Result<Option<Json>, Trouble> {
    let Some(file) = file else { return Ok(None) };
    let named = Value::from(file.display().to_string());
    deployed::schema_of(Some(&named)).map_err(|why| Trouble::usage(format!("--{flag}: {why}")))
}

fn pairs(given: &[String], between: char, form: &str) -> Result<BTreeMap<String, Json>, Trouble> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between)?;
        Some((name.trim().to_owned(), Json::encode(value.trim()))).filter(|(name, _)| !name.is_empty())
    };
    // What was given may be a secret, so it is not repeated.
    let wrong = || Trouble::usage(format!("write it as {form}"));
    given.iter().map(|text| pair(text).ok_or_else(wrong)).collect()
}

async fn list(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let told: Vec<Json> = desk.get(&["tools"]).read().await?;
    if listing.json {
        output::json(&told);
        return Ok(());
    }
    if told.is_empty() {
        output::line(
            "Nothing is deployed yet. `rialto tools add NAME --url URL` or `rialto tools add NAME -- COMMAND` deploys an \
             MCP server, and with --function a function.",
        );
        return Ok(());
    }
    let rows = told.iter().map(read::<DeploymentRow>).collect::<Result<Vec<_>, _>>()?;
    let cells = rows.iter().flat_map(|row| {
        let is_there = match (row.available, row.change_held) {
            (false, _) => "unavailable",
            (true, true) => "available, change held",
            (true, false) => "available",
        };
        let mut names: Vec<String> = row.tools.iter().map(|tool| tool.name.clone()).collect();
        if names.is_empty() {
            names.push("-".to_owned());
        }
        let line =
            move |name| vec![name, row.kind.clone(), row.name.clone(), location(row), is_there.to_owned()];
        names.into_iter().map(line)
    });
    output::table(&["tool", "kind", "of", "where", "state"], cells.collect());
    for row in rows.iter().filter(|row| !row.available) {
        let why = row.last_error.as_deref().unwrap_or("it has not answered yet");
        output::note(format!("{}: {}", row.name, output::printable(why)));
    }
    Ok(())
}

async fn show(desk: &Desk, name: &str, listing: Listing) -> Result<(), Trouble> {
    let told: Json = desk.get(&["tools", name]).read().await?;
    if listing.json {
        output::json(&told);
        return Ok(());
    }
    let row: DeploymentRow = read(&told)?;
    let kept = if row.configured { "the configuration" } else { "the store" };
    let facts = [
        ("name", row.name.clone()),
        ("kind", row.kind.clone()),
        ("where", location(&row)),
        ("kept in", kept.to_owned()),
        ("trust", row.trust.to_string()),
        ("health", row.health.to_string()),
        ("error", row.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(format!("{name:<10} {}", output::printable(value)));
    }
    for (name, from) in &row.settings {
        output::line(format!("{:<10} {} from {from}", "setting", output::printable(name)));
    }
    if let Some(pending) = row.pending.map(card_diff) {
        output::line("");
        output::line("held until it is approved:");
        output::line(pending.to_string().trim_end());
        output::line(format!("take it with `rialto agents approve {}`", row.slug));
    }
    output::line("");
    let cells = row.tools.into_iter().map(|tool| vec![tool.name, tool.description]);
    output::table(&["tool", "description"], cells.collect());
    Ok(())
}

async fn remove(desk: &Desk, name: &str) -> Result<(), Trouble> {
    desk.delete(&["tools", name]).done().await?;
    output::line(format!("removed {name}"));
    Ok(())
}

/// Address or program of a server or a function.
fn location(row: &DeploymentRow) -> String {
    let command = row.command.as_ref().and_then(|words| words.first());
    row.url.as_ref().or(command).cloned().unwrap_or_default()
}
