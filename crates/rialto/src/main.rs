//! Entry point: parses the command line and runs a command.

mod api_client;
mod app;
mod certificates;
mod cli;
mod commands;
mod config;
mod config_reload;
mod configured_workflows;
mod console_host;
mod deployed_backends;
mod environment;
mod federation;
mod file_poll;
mod guardrail_config;
mod output;
mod policies;
mod webhooks;

use std::{num::NonZero, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches};

use crate::{
    api_client::ApiClient,
    app::{App, DataLocation, open_store},
    cli::{GlobalOptions, RialtoCli, RialtoCommand},
    commands::{
        agents, audit, call, costs, inspect, install, mcp, orgs, policy, secrets, serve, tasks, tokens,
        webhooks as hooks,
    },
    config::Config,
    environment::Environment,
    output::CommandError,
    policies::PolicyFiles,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = RialtoCli::command().get_matches();
    let mut cli = RialtoCli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.common.remote.typed = cli::ExplicitOptions::among(&matches);
    let environment = Environment::from_process();
    log(&cli, &environment);
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if matches!(cli.command, RialtoCommand::Serve(_)) {
        // Callers are served on worker threads; these run background tasks.
        threads.worker_threads(std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(4));
    }
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::print_note(format!("rialto: the runtime did not start: {error}"));
            return ExitCode::from(70);
        }
    };
    let result = runtime.block_on(run(cli, &environment));
    // A thread that still reads stdin must not block the exit.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            report(&trouble, wants_json);
            ExitCode::from(trouble.status)
        }
    }
}

async fn run(cli: RialtoCli, environment: &Environment) -> Result<(), CommandError> {
    let common = cli.common;
    api_client::check(&common, &cli.command)?;
    match cli.command {
        RialtoCommand::Completions { shell } => {
            clap_complete::generate(shell, &mut RialtoCli::command(), "rialto", &mut std::io::stdout());
            Ok(())
        }
        RialtoCommand::Demo(options) => commands::demo::run(options, environment).await,
        RialtoCommand::Maintenance(command) => commands::backup::run(&common, environment, command).await,
        RialtoCommand::Client(command) => install::run(&command, &common, environment).await,
        RialtoCommand::Keys(command) => run_keys(&common, environment, command),
        RialtoCommand::Config(command) => run_config(&common, environment, &command),
        RialtoCommand::Guard(command) => run_guard(&common, environment, command).await,
        RialtoCommand::Workflow(command) => run_workflow(&common, environment, command).await,
        RialtoCommand::Policy(command) => run_policy(&common, environment, command).await,
        RialtoCommand::Mcp(options) => Box::pin(run_mcp(&common, environment, options)).await,
        RialtoCommand::Serve(options) => run_serve(&common, environment, options).await,
        RialtoCommand::Agents(command) => run_agents(&common, environment, command).await,
        RialtoCommand::Tools(command) => run_tools(&common, environment, command).await,
        RialtoCommand::Call(options) => run_call(&common, environment, options).await,
        RialtoCommand::Routing(command) => run_routing(&common, environment, command).await,
        RialtoCommand::Pipeline(command) => run_pipeline(&common, environment, command).await,
        RialtoCommand::Tasks(command) => run_tasks(&common, environment, command).await,
        RialtoCommand::Secrets(command) => run_secrets(&common, environment, command).await,
        RialtoCommand::Record(command) => Box::pin(run_record(&common, environment, command)).await,
        RialtoCommand::Tokens(command) => run_tokens(&common, environment, command).await,
        RialtoCommand::Tenants(command) => run_tenants(&common, environment, command).await,
    }
}

async fn run_mcp(
    common: &GlobalOptions,
    environment: &Environment,
    options: cli::McpStdioOptions,
) -> Result<(), CommandError> {
    let program = open_for_client(common, &options, environment).await?;
    mcp::run(program.with_tenant(common.tenant.scope()), options).await
}

async fn run_serve(
    common: &GlobalOptions,
    environment: &Environment,
    options: cli::ServeOptions,
) -> Result<(), CommandError> {
    let program = open_accepting(common, environment, options.accept_damage).await?;
    serve::run(program, options, environment).await
}

fn run_keys(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::KeysCommand,
) -> Result<(), CommandError> {
    let config = Config::load(common.config.as_deref(), environment)?;
    commands::keys::run(&config, common, environment, command)
}

fn run_config(
    common: &GlobalOptions,
    environment: &Environment,
    command: &cli::ConfigCommand,
) -> Result<(), CommandError> {
    commands::config::run(&Config::load(common.config.as_deref(), environment)?, command)
}

async fn run_guard(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::GuardCommand,
) -> Result<(), CommandError> {
    if ApiClient::has_remote(common)? {
        return commands::guard::run_there(&command, &ApiClient::open(common, environment).await?).await;
    }
    let config = Config::load(common.config.as_deref(), environment)?;
    commands::guard::run(&command, &config, &common.tenant.scope().org)
}

async fn run_agents(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::AgentsCommand,
) -> Result<(), CommandError> {
    agents::run(&ApiClient::open(common, environment).await?, command).await
}

async fn run_tokens(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::TokensCommand,
) -> Result<(), CommandError> {
    tokens::run(&ApiClient::open(common, environment).await?, command, common.tenant.org.as_deref()).await
}

async fn run_tenants(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::TenantsCommand,
) -> Result<(), CommandError> {
    orgs::run(&ApiClient::open(common, environment).await?, command).await
}

async fn run_record(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::RecordsCommand,
) -> Result<(), CommandError> {
    match command {
        cli::RecordsCommand::Inspect { task, listing } => {
            inspect::run(&ApiClient::open(common, environment).await?, &task, listing.json).await
        }
        cli::RecordsCommand::Audit(command) => {
            audit::run(&ApiClient::open(common, environment).await?, command).await
        }
        cli::RecordsCommand::Costs(options) => {
            costs::run(&ApiClient::open(common, environment).await?, &options).await
        }
        cli::RecordsCommand::Approvals(command) => {
            let api = ApiClient::open(common, environment).await?;
            let done = commands::approvals::run(&api, command).await;
            api.close().await;
            done
        }
        cli::RecordsCommand::Sessions(command) => {
            commands::sessions::run(&ApiClient::open(common, environment).await?, command).await
        }
        cli::RecordsCommand::Webhooks(command) => {
            hooks::run(&ApiClient::open(common, environment).await?, command).await
        }
    }
}

/// Policies can be read and fixed as files, also when they prevent the program from opening.
async fn run_policy(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::PolicyCommand,
) -> Result<(), CommandError> {
    match command {
        cli::PolicyCommand::Schema => {
            output::print_line(rialto_policy::SCHEMA.trim_end());
            Ok(())
        }
        cli::PolicyCommand::Check { files } if !files.is_empty() => policy::check(&files),
        command @ (cli::PolicyCommand::Check { .. }
        | cli::PolicyCommand::Remove { .. }
        | cli::PolicyCommand::History { .. }
        | cli::PolicyCommand::Restore { .. }
        | cli::PolicyCommand::Fmt { .. }
        | cli::PolicyCommand::Add(cli::AddPolicyOptions { file: Some(_), .. })) => {
            if ApiClient::has_remote(common)? {
                return policy::mend_there(&ApiClient::open(common, environment).await?, command).await;
            }
            mender(common, environment).await?.run(command).await
        }
        command => policy::run(&ApiClient::open(common, environment).await?, command).await,
    }
}

async fn run_tasks(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::TasksCommand,
) -> Result<(), CommandError> {
    let api = ApiClient::open(common, environment).await?;
    let done = tasks::run(&api, command).await;
    api.close().await;
    done
}

async fn run_tools(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::ToolsCommand,
) -> Result<(), CommandError> {
    let api = ApiClient::open(common, environment).await?;
    let done = commands::tools::run(&api, command).await;
    api.close().await;
    done
}

async fn run_call(
    common: &GlobalOptions,
    environment: &Environment,
    options: cli::CallOptions,
) -> Result<(), CommandError> {
    let api = ApiClient::open(common, environment).await?;
    let called = Box::pin(call::run(&api, options)).await;
    api.close().await;
    called
}

async fn run_routing(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::RoutingCommand,
) -> Result<(), CommandError> {
    let api = ApiClient::open(common, environment).await?;
    let done = Box::pin(commands::routing::run(&api, command)).await;
    api.close().await;
    done
}

/// Commands on files need no store; commands on stored workflows do.
async fn run_workflow(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::WorkflowCommand,
) -> Result<(), CommandError> {
    match command {
        cli::WorkflowCommand::File(command) => commands::workflow::run(command),
        cli::WorkflowCommand::Kept(command) => run_flows(common, environment, command, None).await,
    }
}

async fn run_pipeline(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::PipelineCommand,
) -> Result<(), CommandError> {
    let kind = Some(rialto_model::flow::FlowKind::Pipeline);
    run_flows(common, environment, command.into_flows(), kind).await
}

async fn run_flows(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::StoredWorkflowCommand,
    kind: Option<rialto_model::flow::FlowKind>,
) -> Result<(), CommandError> {
    let api = ApiClient::open(common, environment).await?;
    let done = Box::pin(commands::stored_workflows::run(&api, command, kind)).await;
    api.close().await;
    done
}

async fn run_secrets(
    common: &GlobalOptions,
    environment: &Environment,
    command: cli::SecretsCommand,
) -> Result<(), CommandError> {
    secrets::run(&ApiClient::open(common, environment).await?, command, environment).await
}

async fn open(common: &GlobalOptions, environment: &Environment) -> Result<App, CommandError> {
    open_accepting(common, environment, false).await
}

/// Opens the program; with `accept_damage`, on a damaged store too.
async fn open_accepting(
    common: &GlobalOptions,
    environment: &Environment,
    accept_damage: bool,
) -> Result<App, CommandError> {
    let mut config = Config::load(common.config.as_deref(), environment)?;
    config.store.accept_damage = accept_damage;
    let folder = data_folder(common, &config, environment);
    let program = App::open(config, DataLocation::Folder(folder), None, environment).await?;
    Ok(program.with_tenant(common.tenant.scope()))
}

/// The policy files, without validation.
fn policy_files(
    common: &GlobalOptions,
    config: &Config,
    environment: &Environment,
) -> Result<PolicyFiles, CommandError> {
    let policies = PolicyFiles::Folder(data_folder(common, config, environment).join("policies"));
    policies.prepare().map_err(|error| CommandError::failed(error.to_string()))?;
    Ok(policies)
}

/// Opens the editor of policies, for use when invalid ones prevent everything else.
async fn mender(
    common: &GlobalOptions,
    environment: &Environment,
) -> Result<policy::OfflinePolicyEditor, CommandError> {
    let config = Config::load(common.config.as_deref(), environment)?;
    let store = open_store(&config, &DataLocation::Folder(data_folder(common, &config, environment))).await?;
    let files = policy_files(common, &config, environment)?;
    let policies = app::policy_store(files, &store, &config, environment);
    Ok(policy::OfflinePolicyEditor { policies, org: common.tenant.scope().org, store })
}

/// A client's own server starts also with a data folder that is not writable, and then stores nothing. A named database must be
/// writable: its policies apply here too.
async fn open_for_client(
    common: &GlobalOptions,
    options: &cli::McpStdioOptions,
    environment: &Environment,
) -> Result<App, CommandError> {
    let config = Config::load(common.config.as_deref(), environment)?;
    let folder = data_folder(common, &config, environment);
    let policies = options.policy.clone().map(PolicyFiles::File);
    let opened = App::open(config.clone(), DataLocation::Folder(folder), policies.clone(), environment).await;
    match opened {
        Err(app::BuildError::Store(error) | app::BuildError::File { path: error, .. })
            if common.data.is_none() && config.store.url.is_none() =>
        {
            tracing::warn!("nothing is remembered beyond this session: {error}");
            Ok(App::open(config, DataLocation::Memory, policies, environment).await?)
        }
        opened => Ok(opened?),
    }
}

/// Data folder: from the command line, the configuration, or the system's default.
pub(crate) fn data_folder(common: &GlobalOptions, config: &Config, environment: &Environment) -> PathBuf {
    common.data.clone().or_else(|| config.data.clone()).unwrap_or_else(|| environment.default_data_dir())
}

fn log(cli: &RialtoCli, environment: &Environment) {
    let default = if matches!(cli.command, RialtoCommand::Serve(_)) { "info" } else { "warn" };
    // A configuration that cannot be read is reported by the command.
    let configured = || Config::load(cli.common.config.as_deref(), environment).ok();
    let format = cli.common.log_format.or_else(|| configured().map(|config| config.telemetry.log));
    rialto_telemetry::start_logging(cli.common.log.as_deref(), default, format.unwrap_or_default());
}

fn report(trouble: &CommandError, wants_json: bool) {
    match &trouble.failure {
        Some(failure) if wants_json => output::print_json(&serde_json::json!({
            "error": {
                "code": failure.kind.rpc_code(),
                "class": failure.kind.class(),
                "message": failure.message,
                "data": failure.data,
            }
        })),
        _ => output::print_note(format!("rialto: {}", trouble.message)),
    }
}
