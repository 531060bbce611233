//! The load harness: measures Rialto against its own targets, beside a bare proxy in the same run.
//!
//! Machines are noisy, so nothing here is judged by speed alone: the measures are CPU time per call and the ratio to a
//! byte-forwarding proxy that met the same noise. Everything a run needs is started by it, on free loopback ports, and
//! dies with it.
#![expect(clippy::print_stderr, reason = "a bench talks to a terminal")]

mod agent;
mod bridge;
mod child;
mod database;
mod fleet;
mod governed;
mod guard;
mod guardrails;
mod list;
mod load;
mod mcp;
mod nodes;
mod pipelines;
mod process;
mod program;
mod proxy;
mod report;
mod routing;
mod seconds;
mod soak;
mod start;
mod tasks;
mod trouble;
mod wire;

use std::{error::Error, fmt::Display, io, io::Write, net::SocketAddr, process::ExitCode};

use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::{report::Verdict, trouble::Trouble};

/// Measures Rialto: the cost of a crossing, of a list, of a start, of the codecs.
#[derive(Parser)]
#[command(name = "rialto-bench", version)]
struct Cli {
    /// Print JSON for programs instead of a table for people.
    #[arg(long, global = true)]
    json: bool,
    /// End with status 1 when a target is missed.
    #[arg(long, global = true)]
    check: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// An MCP call to an A2A agent through Rialto, beside the same agent behind a bare proxy.
    Bridge(bridge::Args),
    /// A message of A2A 1.0 to an agent of 0.3 through Rialto, beside the same agent behind a bare proxy.
    Translate(bridge::Load),
    /// Tasks that are acknowledged before they are done, and many who listen to one.
    Tasks(tasks::Args),
    /// A server under steady load for half an hour, with three million tasks at its end.
    Soak(soak::Args),
    /// One, two and three nodes that share a PostgreSQL database.
    Nodes(nodes::Args),
    /// Small pipelines of three steps each.
    Pipelines(pipelines::Args),
    /// Pages of tools/list with 1, 1,000 and 100,000 skills.
    List(list::Args),
    /// From exec to the first tools/list answer on stdio.
    Start(start::Args),
    /// Reading and writing tasks in every dialect.
    Wire(wire::Args),
    /// Choosing agents: what is lost by not knowing them, and what a choice costs.
    Routing(routing::Args),
    /// Looking through clean text with the built-in guardrails.
    Guardrails(guardrails::Args),
    /// The agent that answers at once, as a child process.
    #[command(hide = true)]
    Agent(agent::Args),
    /// Many agents on one port, as a child process.
    #[command(hide = true)]
    Fleet(fleet::Args),
    /// The bare proxy, as a child process.
    #[command(hide = true)]
    Proxy { to: SocketAddr },
    /// Runs a program that dies when we do, as a child process.
    #[command(hide = true)]
    Guard(guard::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli).await {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("error: {}", chain(&trouble));
            ExitCode::from(2)
        }
    }
}

async fn run(cli: &Cli) -> Result<ExitCode, Trouble> {
    match &cli.command {
        Command::Bridge(args) => Box::pin(bridge::run(args)).await.map(|report| show(cli, &report)),
        Command::Translate(load) => Box::pin(bridge::translate(load)).await.map(|report| show(cli, &report)),
        Command::Tasks(args) => Box::pin(tasks::run(args)).await.map(|report| show(cli, &report)),
        Command::Soak(args) => Box::pin(soak::run(args)).await.map(|report| show(cli, &report)),
        Command::Nodes(args) => Box::pin(nodes::run(args)).await.map(|report| show(cli, &report)),
        Command::Pipelines(args) => Box::pin(pipelines::run(args)).await.map(|report| show(cli, &report)),
        Command::List(args) => Box::pin(list::run(args)).await.map(|report| show(cli, &report)),
        Command::Start(args) => start::run(args).await.map(|report| show(cli, &report)),
        Command::Wire(args) => wire::run(args).map(|report| show(cli, &report)),
        Command::Routing(args) => routing::run(args).map(|report| show(cli, &report)),
        Command::Guardrails(args) => guardrails::run(args).map(|report| show(cli, &report)),
        Command::Agent(args) => agent::serve(*args).await.map(|()| ExitCode::SUCCESS),
        Command::Fleet(args) => fleet::serve(args).await.map(|()| ExitCode::SUCCESS),
        Command::Proxy { to } => proxy::serve(*to).await.map(|()| ExitCode::SUCCESS),
        Command::Guard(args) => guard::run(args).await,
    }
}

/// Prints what was measured and says how the program should end.
fn show<R: Serialize + Display + Verdict>(cli: &Cli, report: &R) -> ExitCode {
    let text =
        if cli.json { serde_json::to_string_pretty(report).unwrap_or_default() } else { report.to_string() };
    // A reader who has seen enough and left (`head`) is no trouble of ours.
    let _ = writeln!(io::stdout(), "{text}");
    if report.is_broken() || (cli.check && report.is_missed()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The error and its causes on one line.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
