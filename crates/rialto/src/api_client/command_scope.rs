//! Scope of each command: this machine, a server, or both.

use crate::{
    cli::{
        GlobalOptions, MaintenanceCommand, OrgsCommand, PolicyCommand, RialtoCommand, SecretsCommand,
        TenantsCommand, WorkflowCommand,
    },
    output::CommandError,
};

/// Scope of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandScope {
    /// This machine, or a server.
    LocalOrRemote,
    /// This machine, always: a server in the environment is ignored.
    ThisMachine,
    /// This machine, because servers do not support it yet: with --server it is an error.
    LocalUntilSupported,
}

/// Rejects a command that cannot run on the selected server.
pub(crate) fn check(common: &GlobalOptions, command: &RialtoCommand) -> Result<(), CommandError> {
    let (remote, place) = (&common.remote, command_scope(command));
    let is_named = remote.server.as_deref().is_some_and(|server| !server.trim().is_empty());
    if remote.typed.token && !is_named {
        let message = "--token and --token-from need a server: name it with --server, or omit them";
        return Err(CommandError::usage(message));
    }
    match place {
        CommandScope::ThisMachine if remote.typed.server => Err(CommandError::usage(
            "this command runs on this machine only; omit --server, or run it on the server's machine",
        )),
        CommandScope::LocalUntilSupported if is_named && remote.typed.server => Err(CommandError::usage(
            "this command does not work over the network; run it on the server's machine, without --server",
        )),
        CommandScope::LocalUntilSupported if is_named && !remote.typed.data => Err(CommandError::usage(
            "RIALTO_SERVER names a server, and this command does not work over the network; run it on the server's machine, or unset RIALTO_SERVER to use this machine",
        )),
        _ => Ok(()),
    }
}

const fn command_scope(command: &RialtoCommand) -> CommandScope {
    match command {
        RialtoCommand::Agents(_)
        | RialtoCommand::Call(_)
        | RialtoCommand::Tools(_)
        | RialtoCommand::Maintenance(MaintenanceCommand::Doctor(_) | MaintenanceCommand::Nodes(_))
        | RialtoCommand::Tasks(_)
        | RialtoCommand::Tokens(_)
        | RialtoCommand::Tenants(TenantsCommand::Orgs(OrgsCommand::List(_)) | TenantsCommand::Projects(_))
        | RialtoCommand::Guard(_)
        | RialtoCommand::Routing(_)
        | RialtoCommand::Workflow(WorkflowCommand::Kept(_))
        | RialtoCommand::Pipeline(_)
        | RialtoCommand::Record(_) => CommandScope::LocalOrRemote,
        RialtoCommand::Secrets(secrets) if !matches!(secrets, SecretsCommand::RotateKey { .. }) => {
            CommandScope::LocalOrRemote
        }
        RialtoCommand::Serve(_)
        | RialtoCommand::Mcp(_)
        | RialtoCommand::Demo(_)
        | RialtoCommand::Keys(_)
        | RialtoCommand::Config(_)
        | RialtoCommand::Client(_)
        | RialtoCommand::Maintenance(_)
        | RialtoCommand::Completions { .. }
        | RialtoCommand::Workflow(WorkflowCommand::File(_))
        | RialtoCommand::Tenants(TenantsCommand::Orgs(_))
        | RialtoCommand::Policy(PolicyCommand::Schema) => CommandScope::ThisMachine,
        RialtoCommand::Policy(PolicyCommand::Check { files }) if !files.is_empty() => {
            CommandScope::ThisMachine
        }
        RialtoCommand::Policy(policy) if !matches!(policy, PolicyCommand::Fmt { .. }) => {
            CommandScope::LocalOrRemote
        }
        RialtoCommand::Policy(_) | RialtoCommand::Secrets(_) => CommandScope::LocalUntilSupported,
    }
}
