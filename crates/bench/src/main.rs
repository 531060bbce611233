//! Load harness: measures Rialto against its own targets, beside a bare proxy in the same run.
//!
//! Machines are noisy, so nothing here is judged by speed alone: the measures are CPU time per call and the ratio to a
//! byte-forwarding proxy under equal noise. Every process of a run is started by it, on free loopback ports, and
//! dies with it.
#![expect(clippy::print_stderr, reason = "a bench talks to a terminal")]

mod agent;
mod bridge;
mod child;
mod child_guard;
mod codecs;
mod database;
mod duration_arg;
mod error;
mod fleet;
mod governed_server;
mod guardrails;
mod list;
mod load;
mod mcp_client;
mod nodes;
mod pipelines;
mod process;
mod program;
mod proxy;
mod report;
mod routing;
mod soak;
mod start;
mod tasks;

use std::{error::Error, fmt::Display, io, io::Write, net::SocketAddr, process::ExitCode};

use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::{error::BenchError, report::BenchReport};

/// Measures Rialto: the cost of calls, lists, starts and codecs.
#[derive(Parser)]
#[command(name = "rialto-bench", version)]
struct BenchCli {
    /// Print JSON for programs instead of a table for people.
    #[arg(long, global = true)]
    json: bool,
    /// End with status 1 when a target is missed.
    #[arg(long, global = true)]
    check: bool,
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// MCP calls to an A2A agent through Rialto, compared with a bare proxy.
    Bridge(bridge::BridgeArgs),
    /// A2A 1.0 messages to an agent of version 0.3 through Rialto, compared with a bare proxy.
    Translate(bridge::LoadArgs),
    /// Tasks that are acknowledged before they are done, and many who listen to one.
    Tasks(tasks::TasksArgs),
    /// A server under steady load for half an hour, with three million tasks at its end.
    Soak(soak::SoakArgs),
    /// One, two and three nodes that share a PostgreSQL database.
    Nodes(nodes::NodesArgs),
    /// Small pipelines of three steps each.
    Pipelines(pipelines::PipelinesArgs),
    /// Pages of tools/list with 1, 1,000 and 100,000 skills.
    List(list::ListArgs),
    /// From exec to the first tools/list answer on stdio.
    Start(start::StartArgs),
    /// Reading and writing tasks in every dialect.
    Wire(codecs::CodecArgs),
    /// Choosing agents: what is lost by not knowing them, and what a choice costs.
    Routing(routing::RoutingArgs),
    /// Throughput of the built-in guardrails on clean text.
    Guardrails(guardrails::GuardrailsArgs),
    /// The agent that answers at once, as a child process.
    #[command(hide = true)]
    Agent(agent::AgentArgs),
    /// Many agents on one port, as a child process.
    #[command(hide = true)]
    Fleet(fleet::FleetArgs),
    /// The bare proxy, as a child process.
    #[command(hide = true)]
    Proxy { to: SocketAddr },
    /// Runs a program that dies when we do, as a child process.
    #[command(hide = true)]
    Guard(child_guard::ChildGuardArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = BenchCli::parse();
    match run(&cli).await {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("error: {}", error_chain(&trouble));
            ExitCode::from(2)
        }
    }
}

async fn run(cli: &BenchCli) -> Result<ExitCode, BenchError> {
    match &cli.command {
        BenchCommand::Bridge(args) => {
            Box::pin(bridge::run(args)).await.map(|report| print_report(cli, &report))
        }
        BenchCommand::Translate(load) => {
            Box::pin(bridge::translate(load)).await.map(|report| print_report(cli, &report))
        }
        BenchCommand::Tasks(args) => {
            Box::pin(tasks::run(args)).await.map(|report| print_report(cli, &report))
        }
        BenchCommand::Soak(args) => Box::pin(soak::run(args)).await.map(|report| print_report(cli, &report)),
        BenchCommand::Nodes(args) => {
            Box::pin(nodes::run(args)).await.map(|report| print_report(cli, &report))
        }
        BenchCommand::Pipelines(args) => {
            Box::pin(pipelines::run(args)).await.map(|report| print_report(cli, &report))
        }
        BenchCommand::List(args) => Box::pin(list::run(args)).await.map(|report| print_report(cli, &report)),
        BenchCommand::Start(args) => start::run(args).await.map(|report| print_report(cli, &report)),
        BenchCommand::Wire(args) => codecs::run(args).map(|report| print_report(cli, &report)),
        BenchCommand::Routing(args) => routing::run(args).map(|report| print_report(cli, &report)),
        BenchCommand::Guardrails(args) => guardrails::run(args).map(|report| print_report(cli, &report)),
        BenchCommand::Agent(args) => agent::serve(*args).await.map(|()| ExitCode::SUCCESS),
        BenchCommand::Fleet(args) => fleet::serve(args).await.map(|()| ExitCode::SUCCESS),
        BenchCommand::Proxy { to } => proxy::serve(*to).await.map(|()| ExitCode::SUCCESS),
        BenchCommand::Guard(args) => child_guard::run(args).await,
    }
}

/// Prints the report and returns the exit code.
fn print_report<R: Serialize + Display + BenchReport>(cli: &BenchCli, report: &R) -> ExitCode {
    let text =
        if cli.json { serde_json::to_string_pretty(report).unwrap_or_default() } else { report.to_string() };
    // Closed output (`head`) is not an error.
    let _ = writeln!(io::stdout(), "{text}");
    if report.is_broken() || (cli.check && report.is_missed()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The error and its causes on one line.
fn error_chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
