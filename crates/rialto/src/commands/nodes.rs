//! `rialto nodes …`: the servers that share the store.

use jiff::Timestamp;
use rialto_api_types::nodes::{NodeList, NodeRow};
use rialto_model::json::Json;

use crate::{
    cli::Nodes,
    desk::{Desk, read},
    output::{self, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Nodes) -> Result<(), Trouble> {
    match command {
        Nodes::List(listing) => list(desk, listing.json).await,
        Nodes::Drain { name, undo, listing } => drain(desk, &name, undo, listing.json).await,
    }
}

async fn list(desk: &Desk, as_json: bool) -> Result<(), Trouble> {
    let NodeList::<Json> { nodes } = desk.get(&["nodes"]).read().await?;
    if as_json {
        output::json(&nodes);
        return Ok(());
    }
    if nodes.is_empty() {
        output::line("No server runs on this store.");
        return Ok(());
    }
    let rows = nodes.iter().map(read::<NodeRow>).collect::<Result<Vec<_>, _>>()?;
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
    output::table(&header, rows.collect());
    Ok(())
}

async fn drain(desk: &Desk, name: &str, undo: bool, as_json: bool) -> Result<(), Trouble> {
    let path = ["nodes", name, "drain"];
    let request = if undo { desk.delete(&path) } else { desk.post(&path) };
    let node: Json = request.read().await?;
    if as_json {
        output::json(&node);
        return Ok(());
    }
    let state = read::<NodeRow>(&node)?.state.as_str();
    if undo {
        output::line(format!("{name} is drained no more; it is {state}"));
    } else {
        output::line(format!("{name} is drained; it is {state}"));
        output::note(format!(
            "It answers requests until it is stopped, and it is not ready from the next second on. To undo it: rialto nodes drain {name} --undo"
        ));
    }
    Ok(())
}
