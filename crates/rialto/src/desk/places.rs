//! Which commands can be given to a server, and which are about this machine.

use crate::{
    cli::{Command, Common, Maintenance, Orgs, Policy, Secrets, Tenants, Workflow},
    output::Trouble,
};

/// Where a command can do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Here, or on a server.
    Anywhere,
    /// Here, by its nature: it needs no server, so one that the environment names is none of its business.
    ThisMachine,
    /// Here, because it has not been brought to servers: somebody who means a server must be told.
    NotThere,
}

/// Refuses a command that cannot be given to the server that was named.
pub(crate) fn check(common: &Common, command: &Command) -> Result<(), Trouble> {
    let (remote, place) = (&common.remote, place(command));
    let is_named = remote.server.as_deref().is_some_and(|server| !server.trim().is_empty());
    if remote.typed.token && !is_named {
        let message =
            "--token and --token-from say who asks a server; name it with --server, or leave them out";
        return Err(Trouble::usage(message));
    }
    match place {
        Place::ThisMachine if remote.typed.server => Err(Trouble::usage(
            "this command is about this machine, not about a server; leave --server out, or run it at the server's machine",
        )),
        Place::NotThere if is_named && remote.typed.server => Err(Trouble::usage(
            "this command does not work over the network; run it at the server's machine, without --server",
        )),
        Place::NotThere if is_named && !remote.typed.data => Err(Trouble::usage(
            "RIALTO_SERVER names a server, and this command does not work over the network; run it at the server's machine, or unset RIALTO_SERVER to mean this one",
        )),
        _ => Ok(()),
    }
}

const fn place(command: &Command) -> Place {
    match command {
        Command::Agents(_)
        | Command::Call(_)
        | Command::Tools(_)
        | Command::Maintenance(Maintenance::Doctor(_) | Maintenance::Nodes(_))
        | Command::Tasks(_)
        | Command::Tokens(_)
        | Command::Tenants(Tenants::Orgs(Orgs::List(_)) | Tenants::Projects(_))
        | Command::Guard(_)
        | Command::Routing(_)
        | Command::Workflow(Workflow::Kept(_))
        | Command::Pipeline(_)
        | Command::Record(_) => Place::Anywhere,
        Command::Secrets(secrets) if !matches!(secrets, Secrets::RotateKey { .. }) => Place::Anywhere,
        Command::Serve(_)
        | Command::Mcp(_)
        | Command::Demo(_)
        | Command::Keys(_)
        | Command::Config(_)
        | Command::Client(_)
        | Command::Maintenance(_)
        | Command::Completions { .. }
        | Command::Workflow(Workflow::File(_))
        | Command::Tenants(Tenants::Orgs(_))
        | Command::Policy(Policy::Schema) => Place::ThisMachine,
        Command::Policy(Policy::Check { files }) if !files.is_empty() => Place::ThisMachine,
        Command::Policy(policy) if !matches!(policy, Policy::Fmt { .. }) => Place::Anywhere,
        Command::Policy(_) | Command::Secrets(_) => Place::NotThere,
    }
}
