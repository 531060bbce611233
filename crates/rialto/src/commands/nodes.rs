//! `rialto nodes …`: the servers that share the store.

use jiff::Timestamp;
use rialto_api_types::nodes::{NodeList, NodeRow};
use rialto_model::json::Json;

use crate::{
    api_client::{ApiClient, parse_response},
    cli::NodesCommand,
    output::{self, CommandError},
};

pub(crate) async fn run(api: &ApiClient, command: NodesCommand) -> Result<(), CommandError> {
    match command {
        NodesCommand::List(listing) => list(api, listing.json).await,
        NodesCommand::Drain { name, undo, listing } => drain(api, &name, undo, listing.json).await,
    }
}

async fn list(api: &ApiClient, as_json: bool) -> Result<(), CommandError> {
    let NodeList::<Json> { nodes } = api.get(&["nodes"]).read().await?;
    if as_json {
        output::print_json(&nodes);
        return Ok(());
    }
    if nodes.is_empty() {
        output::print_line("No server is running on this store.");
        return Ok(());
    }
    let rows = nodes.iter().map(parse_response::<NodeRow>).collect::<Result<Vec<_>, _>>()?;
    let moment = |at: Timestamp| at.strftime("%F %T").to_string();
    let rows = rows.into_iter().map(|row| {
        vec![
            row.name,
            row.state.as_str().to_owned(),
            row.open_tasks.to_string(),
            row.address,
            row.process.to_string(),
            row.runner,
            row.version,
            moment(row.started_at),
            moment(row.renewed_at),
        ]
    });
    let header = [
        "node",
        "state",
        "open tasks",
        "address",
        "process",
        "runner",
        "version",
        "started (utc)",
        "last renewed (utc)",
    ];
    output::print_table(&header, rows.collect());
    Ok(())
}

async fn drain(api: &ApiClient, name: &str, undo: bool, as_json: bool) -> Result<(), CommandError> {
    let path = ["nodes", name, "drain"];
    let request = if undo { api.delete(&path) } else { api.post(&path) };
    let node: Json = request.read().await?;
    if as_json {
        output::print_json(&node);
        return Ok(());
    }
    let state = parse_response::<NodeRow>(&node)?.state.as_str();
    if undo {
        output::print_line(format!("{name} is no longer drained; it is {state}"));
    } else {
        output::print_line(format!("{name} is drained; it is {state}"));
        output::print_note(format!(
            "It answers requests until it is stopped, and reports not ready from the next second on. To undo: rialto nodes drain {name} --undo"
        ));
    }
    Ok(())
}
