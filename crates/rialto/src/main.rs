//! The program: reads the command line, puts the parts together, decides nothing.

mod certificates;
mod cli;
mod commands;
mod config;
mod demo;
mod desk;
mod environment;
mod flows;
mod guarding;
mod looking;
mod mesh;
mod office;
mod output;
mod policies;
mod private_files;
mod program;
mod reloading;
mod telemetry;
mod tools;
mod vault;
mod webhooks;

use std::{num::NonZero, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches};

use crate::{
    cli::{Cli, Command, Common},
    commands::{
        agents, audit, call, costs, inspect, install, mcp, orgs, policy, secrets, serve, tasks, tokens,
        webhooks as hooks,
    },
    config::Config,
    desk::Desk,
    environment::Environment,
    output::Trouble,
    policies::Policies,
    program::{Place, Program, open_store},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.common.remote.typed = cli::TypedOptions::among(&matches);
    let environment = Environment::of_process();
    log(&cli, &environment);
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if matches!(cli.command, Command::Serve(_)) {
        // Callers are served on threads of their own; these do what nobody waits for.
        threads.worker_threads(std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(4));
    }
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::note(format!("rialto: the runtime did not start: {error}"));
            return ExitCode::from(70);
        }
    };
    let result = runtime.block_on(run(cli, &environment));
    // A thread that still reads stdin must not keep the program from ending.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            report(&trouble, wants_json);
            ExitCode::from(trouble.status)
        }
    }
}

async fn run(cli: Cli, environment: &Environment) -> Result<(), Trouble> {
    let common = cli.common;
    desk::check(&common, &cli.command)?;
    match cli.command {
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "rialto", &mut std::io::stdout());
            Ok(())
        }
        Command::Demo(options) => demo::run(options, environment).await,
        Command::Maintenance(command) => commands::backup::run(&common, environment, command).await,
        Command::Client(command) => install::run(&command, &common, environment).await,
        Command::Keys(command) => run_keys(&common, environment, command),
        Command::Config(command) => run_config(&common, environment, &command),
        Command::Guard(command) => run_guard(&common, environment, command).await,
        Command::Workflow(command) => run_workflow(&common, environment, command).await,
        Command::Policy(command) => run_policy(&common, environment, command).await,
        Command::Mcp(options) => Box::pin(run_mcp(&common, environment, options)).await,
        Command::Serve(options) => run_serve(&common, environment, options).await,
        Command::Agents(command) => run_agents(&common, environment, command).await,
        Command::Tools(command) => run_tools(&common, environment, command).await,
        Command::Call(options) => run_call(&common, environment, options).await,
        Command::Routing(command) => run_routing(&common, environment, command).await,
        Command::Pipeline(command) => run_pipeline(&common, environment, command).await,
        Command::Tasks(command) => run_tasks(&common, environment, command).await,
        Command::Secrets(command) => run_secrets(&common, environment, command).await,
        Command::Record(command) => Box::pin(run_record(&common, environment, command)).await,
        Command::Tokens(command) => run_tokens(&common, environment, command).await,
        Command::Tenants(command) => run_tenants(&common, environment, command).await,
    }
}

async fn run_mcp(common: &Common, environment: &Environment, options: cli::Mcp) -> Result<(), Trouble> {
    let program = open_for_client(common, &options, environment).await?;
    mcp::run(program.within(common.tenant.scope()), options).await
}

async fn run_serve(common: &Common, environment: &Environment, options: cli::Serve) -> Result<(), Trouble> {
    let program = open_accepting(common, environment, options.accept_damage).await?;
    serve::run(program, options, environment).await
}

fn run_keys(common: &Common, environment: &Environment, command: cli::Keys) -> Result<(), Trouble> {
    let config = Config::load(common.config.as_deref(), environment)?;
    commands::keys::run(&config, common, environment, command)
}

fn run_config(common: &Common, environment: &Environment, command: &cli::Config) -> Result<(), Trouble> {
    commands::config::run(&Config::load(common.config.as_deref(), environment)?, command)
}

async fn run_guard(common: &Common, environment: &Environment, command: cli::Guard) -> Result<(), Trouble> {
    if Desk::is_elsewhere(common)? {
        return commands::guard::run_there(&command, &Desk::open(common, environment).await?).await;
    }
    let config = Config::load(common.config.as_deref(), environment)?;
    commands::guard::run(&command, &config, &common.tenant.scope().org)
}

async fn run_agents(common: &Common, environment: &Environment, command: cli::Agents) -> Result<(), Trouble> {
    agents::run(&Desk::open(common, environment).await?, command).await
}

async fn run_tokens(common: &Common, environment: &Environment, command: cli::Tokens) -> Result<(), Trouble> {
    tokens::run(&Desk::open(common, environment).await?, command, common.tenant.org.as_deref()).await
}

async fn run_tenants(
    common: &Common,
    environment: &Environment,
    command: cli::Tenants,
) -> Result<(), Trouble> {
    orgs::run(&Desk::open(common, environment).await?, command).await
}

async fn run_record(common: &Common, environment: &Environment, command: cli::Record) -> Result<(), Trouble> {
    match command {
        cli::Record::Inspect { task, listing } => {
            inspect::run(&Desk::open(common, environment).await?, &task, listing.json).await
        }
        cli::Record::Audit(command) => audit::run(&Desk::open(common, environment).await?, command).await,
        cli::Record::Costs(options) => costs::run(&Desk::open(common, environment).await?, &options).await,
        cli::Record::Approvals(command) => {
            let desk = Desk::open(common, environment).await?;
            let done = commands::approvals::run(&desk, command).await;
            desk.close().await;
            done
        }
        cli::Record::Sessions(command) => {
            commands::sessions::run(&Desk::open(common, environment).await?, command).await
        }
        cli::Record::Webhooks(command) => hooks::run(&Desk::open(common, environment).await?, command).await,
    }
}

/// Policies can be looked at and mended as files, also when they keep the program from opening.
async fn run_policy(common: &Common, environment: &Environment, command: cli::Policy) -> Result<(), Trouble> {
    match command {
        cli::Policy::Schema => {
            output::line(rialto_policy::SCHEMA.trim_end());
            Ok(())
        }
        cli::Policy::Check { files } if !files.is_empty() => policy::check(&files),
        command @ (cli::Policy::Check { .. }
        | cli::Policy::Remove { .. }
        | cli::Policy::History { .. }
        | cli::Policy::Restore { .. }
        | cli::Policy::Fmt { .. }
        | cli::Policy::Add(cli::AddPolicy { file: Some(_), .. })) => {
            if Desk::is_elsewhere(common)? {
                return policy::mend_there(&Desk::open(common, environment).await?, command).await;
            }
            mender(common, environment).await?.run(command).await
        }
        command => policy::run(&Desk::open(common, environment).await?, command).await,
    }
}

async fn run_tasks(common: &Common, environment: &Environment, command: cli::Tasks) -> Result<(), Trouble> {
    let desk = Desk::open(common, environment).await?;
    let done = tasks::run(&desk, command).await;
    desk.close().await;
    done
}

async fn run_tools(common: &Common, environment: &Environment, command: cli::Tools) -> Result<(), Trouble> {
    let desk = Desk::open(common, environment).await?;
    let done = commands::tools::run(&desk, command).await;
    desk.close().await;
    done
}

async fn run_call(common: &Common, environment: &Environment, options: cli::Call) -> Result<(), Trouble> {
    let desk = Desk::open(common, environment).await?;
    let called = Box::pin(call::run(&desk, options)).await;
    desk.close().await;
    called
}

async fn run_routing(
    common: &Common,
    environment: &Environment,
    command: cli::Routing,
) -> Result<(), Trouble> {
    let desk = Desk::open(common, environment).await?;
    let done = Box::pin(commands::routing::run(&desk, command)).await;
    desk.close().await;
    done
}

/// A file needs nothing but itself; what is kept needs the store.
async fn run_workflow(
    common: &Common,
    environment: &Environment,
    command: cli::Workflow,
) -> Result<(), Trouble> {
    match command {
        cli::Workflow::File(command) => commands::workflow::run(command),
        cli::Workflow::Kept(command) => run_flows(common, environment, command, None).await,
    }
}

async fn run_pipeline(
    common: &Common,
    environment: &Environment,
    command: cli::Pipeline,
) -> Result<(), Trouble> {
    let kind = Some(rialto_model::flow::FlowKind::Pipeline);
    run_flows(common, environment, command.into_flows(), kind).await
}

async fn run_flows(
    common: &Common,
    environment: &Environment,
    command: cli::Flows,
    kind: Option<rialto_model::flow::FlowKind>,
) -> Result<(), Trouble> {
    let desk = Desk::open(common, environment).await?;
    let done = Box::pin(commands::flows::run(&desk, command, kind)).await;
    desk.close().await;
    done
}

async fn run_secrets(
    common: &Common,
    environment: &Environment,
    command: cli::Secrets,
) -> Result<(), Trouble> {
    secrets::run(&Desk::open(common, environment).await?, command, environment).await
}

async fn open(common: &Common, environment: &Environment) -> Result<Program, Trouble> {
    open_accepting(common, environment, false).await
}

/// Opens the program; with `accept_damage`, on a damaged store too.
async fn open_accepting(
    common: &Common,
    environment: &Environment,
    accept_damage: bool,
) -> Result<Program, Trouble> {
    let mut config = Config::load(common.config.as_deref(), environment)?;
    config.store.accept_damage = accept_damage;
    let folder = data_folder(common, &config, environment);
    let program = Program::open(config, Place::Folder(folder), None, environment).await?;
    Ok(program.within(common.tenant.scope()))
}

/// The policies as files, whether or not they hold up.
fn policy_files(common: &Common, config: &Config, environment: &Environment) -> Result<Policies, Trouble> {
    let policies = Policies::Folder(data_folder(common, config, environment).join("policies"));
    policies.prepare().map_err(|error| Trouble::other(error.to_string()))?;
    Ok(policies)
}

/// What policies are mended with when they keep everything else from opening.
async fn mender(common: &Common, environment: &Environment) -> Result<policy::Mender, Trouble> {
    let config = Config::load(common.config.as_deref(), environment)?;
    let store = open_store(&config, &Place::Folder(data_folder(common, &config, environment))).await?;
    let files = policy_files(common, &config, environment)?;
    let policies = program::book(files, &store, &config, environment);
    Ok(policy::Mender { policies, org: common.tenant.scope().org, store })
}

/// For a client's own server a folder that cannot be written to is no reason to fail: it then remembers nothing. A database
/// that was named is: what others keep there must count here too.
async fn open_for_client(
    common: &Common,
    options: &cli::Mcp,
    environment: &Environment,
) -> Result<Program, Trouble> {
    let config = Config::load(common.config.as_deref(), environment)?;
    let folder = data_folder(common, &config, environment);
    let policies = options.policy.clone().map(Policies::File);
    let opened = Program::open(config.clone(), Place::Folder(folder), policies.clone(), environment).await;
    match opened {
        Err(program::BuildError::Store(error) | program::BuildError::File { path: error, .. })
            if common.data.is_none() && config.store.url.is_none() =>
        {
            tracing::warn!("nothing is remembered beyond this session: {error}");
            Ok(Program::open(config, Place::Memory, policies, environment).await?)
        }
        opened => Ok(opened?),
    }
}

/// The folder everything is kept in: named on the command line, in the configuration, or the system's own place.
pub(crate) fn data_folder(common: &Common, config: &Config, environment: &Environment) -> PathBuf {
    common.data.clone().or_else(|| config.data.clone()).unwrap_or_else(|| environment.default_data_dir())
}

fn log(cli: &Cli, environment: &Environment) {
    let default = if matches!(cli.command, Command::Serve(_)) { "info" } else { "warn" };
    // A configuration that cannot be read is told of by whoever needs it.
    let configured = || Config::load(cli.common.config.as_deref(), environment).ok();
    let format = cli.common.log_format.or_else(|| configured().map(|config| config.telemetry.log));
    telemetry::start(cli.common.log.as_deref(), default, format.unwrap_or_default());
}

fn report(trouble: &Trouble, wants_json: bool) {
    match &trouble.failure {
        Some(failure) if wants_json => output::json(&serde_json::json!({
            "error": {
                "code": failure.kind.rpc_code(),
                "class": failure.kind.class(),
                "message": failure.message,
                "data": failure.data,
            }
        })),
        _ => output::note(format!("rialto: {}", trouble.message)),
    }
}
