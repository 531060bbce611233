//! `rialto tools …`: what is deployed, from the command line.

use std::{collections::BTreeMap, path::PathBuf};

use rialto_api_types::tools::{CommandLine, DeploymentKind, DeploymentRow, NewDeployment};
use rialto_model::json::Json;
use serde_json::Value;

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{AddToolOptions, OutputOptions, ToolsCommand},
    commands::{agents::card_diff, call},
    config::deployments,
    output::{self, CommandError, ProgressSpinner},
};

pub(crate) async fn run(api: &ApiClient, command: ToolsCommand) -> Result<(), CommandError> {
    if let Some(program) = api.local_app()
        && matches!(command, ToolsCommand::List(_) | ToolsCommand::Show { .. })
    {
        program.tools.refresh_unlisted(program.engine.registry()).await;
    }
    match command {
        ToolsCommand::Add(add) => self::add(api, *add).await,
        ToolsCommand::List(listing) => list(api, listing).await,
        ToolsCommand::Show { name, listing } => show(api, &name, listing).await,
        ToolsCommand::Remove { name } => remove(api, &name).await,
        ToolsCommand::Call(options) => call::run(api, options).await,
    }
}

async fn add(api: &ApiClient, add: AddToolOptions) -> Result<(), CommandError> {
    let as_json = add.listing.json;
    let spinner = ProgressSpinner::new(format!("asking {} what it can do", add.name));
    let question = api.post(&["tools"]).with_json(&deployment_from_options(add)?).with_long_timeout();
    let (is_new, response): (bool, Json) = question.send_created().await?;
    drop(spinner);
    if as_json {
        output::print_json(&response);
        return Ok(());
    }
    let row: DeploymentRow = parse_response(&response)?;
    let word = if is_new { "deployed" } else { "updated" };
    output::print_line(format!("{word} {} ({}):", row.name, row.kind));
    for tool in &row.tools {
        output::print_line(format!("  {}", output::sanitize(&tool.name)));
    }
    Ok(())
}

/// The deployment that the flags describe.
fn deployment_from_options(add: AddToolOptions) -> Result<NewDeployment, CommandError> {
    Ok(NewDeployment {
        kind: if add.function { DeploymentKind::Function } else { DeploymentKind::Mcp },
        name: add.name,
        url: add.url,
        headers: parse_pairs(&add.headers, ':', "--header \"NAME: VALUE\"")?,
        command: Some(add.command).filter(|words| !words.is_empty()).map(CommandLine::Words),
        args: Vec::new(),
        env: parse_pairs(&add.env, '=', "--env NAME=VALUE")?,
        cwd: add.cwd.map(|folder| folder.display().to_string()),
        nodes: Vec::new(),
        singleton: false,
        timeout: add.timeout,
        sampling: add.sampling,
        trust: add.trust,
        description: add.function.then(|| add.description.unwrap_or_default()),
        input_schema: read_schema("schema", add.schema.filter(|_| add.function))?,
        output_schema: read_schema("output-schema", add.output_schema.filter(|_| add.function))?,
        idempotent: add.function.then_some(add.idempotent),
    })
}

/// A schema in a file of this machine, as it is sent to the server.
fn read_schema(flag: &str, file: Option<PathBuf>) -> Result<Option<Json>, CommandError> {
    let Some(file) = file else { return Ok(None) };
    let named = Value::from(file.display().to_string());
    deployments::read_schema(Some(&named)).map_err(|why| CommandError::usage(format!("--{flag}: {why}")))
}

fn parse_pairs(given: &[String], between: char, form: &str) -> Result<BTreeMap<String, Json>, CommandError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between)?;
        Some((name.trim().to_owned(), Json::encode(value.trim()))).filter(|(name, _)| !name.is_empty())
    };
    // What was given may be a secret, so it is not repeated.
    let wrong = || CommandError::usage(format!("write it as {form}"));
    given.iter().map(|text| pair(text).ok_or_else(wrong)).collect()
}

async fn list(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let response: Vec<Json> = api.get(&["tools"]).read().await?;
    if listing.json {
        output::print_json(&response);
        return Ok(());
    }
    if response.is_empty() {
        output::print_line(
            "Nothing is deployed yet. `rialto tools add NAME --url URL` or `rialto tools add NAME -- COMMAND` deploys an \
             MCP server, and with --function a function.",
        );
        return Ok(());
    }
    let rows = response.iter().map(parse_response::<DeploymentRow>).collect::<Result<Vec<_>, _>>()?;
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
    output::print_table(&["tool", "kind", "of", "location", "state"], cells.collect());
    for row in rows.iter().filter(|row| !row.available) {
        let why = row.last_error.as_deref().unwrap_or("no response yet");
        output::print_note(format!("{}: {}", row.name, output::sanitize(why)));
    }
    Ok(())
}

async fn show(api: &ApiClient, name: &str, listing: OutputOptions) -> Result<(), CommandError> {
    let response: Json = api.get(&["tools", name]).read().await?;
    if listing.json {
        output::print_json(&response);
        return Ok(());
    }
    let row: DeploymentRow = parse_response(&response)?;
    let kept = if row.configured { "the configuration" } else { "the store" };
    let facts = [
        ("name", row.name.clone()),
        ("kind", row.kind.clone()),
        ("location", location(&row)),
        ("stored in", kept.to_owned()),
        ("trust", row.trust.to_string()),
        ("health", row.health.to_string()),
        ("error", row.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::print_line(format!("{name:<10} {}", output::sanitize(value)));
    }
    for (name, from) in &row.settings {
        output::print_line(format!("{:<10} {} from {from}", "setting", output::sanitize(name)));
    }
    if let Some(pending) = row.pending.map(card_diff) {
        output::print_line("");
        output::print_line("waiting for approval:");
        output::print_line(pending.to_string().trim_end());
        output::print_line(format!("approve with `rialto agents approve {}`", row.slug));
    }
    output::print_line("");
    let cells = row.tools.into_iter().map(|tool| vec![tool.name, tool.description]);
    output::print_table(&["tool", "description"], cells.collect());
    Ok(())
}

async fn remove(api: &ApiClient, name: &str) -> Result<(), CommandError> {
    api.delete(&["tools", name]).send_unit().await?;
    output::print_line(format!("removed {name}"));
    Ok(())
}

/// Address or program of a server or a function.
fn location(row: &DeploymentRow) -> String {
    let command = row.command.as_ref().and_then(|words| words.first());
    row.url.as_ref().or(command).cloned().unwrap_or_default()
}
