//! `rialto install <client>` and `rialto uninstall <client>`: Rialto's entry in the configuration of an MCP client.
//!
//! Each client has a configuration file of its own. The change is shown before it is written, all other bytes are retained, and the
//! file can be restored.

mod check;
mod clients;
mod config_file;
mod edit;
mod entry;
mod jsonc;
mod toml_text;
mod yaml_text;

use std::{
    io::{IsTerminal, Write},
    path::Path,
};

use serde_json::{Map, Value};

use self::{
    clients::ConfigFormat,
    config_file::ConfigFile,
    entry::{ClientConnection, McpArguments},
};
use crate::{
    cli::{ClientApp, ClientCommand, GlobalOptions, InstallOptions, UninstallOptions},
    environment::Environment,
    output::{self, CommandError, ProgressSpinner},
};

pub(crate) async fn run(
    command: &ClientCommand,
    common: &GlobalOptions,
    environment: &Environment,
) -> Result<(), CommandError> {
    match command {
        ClientCommand::Install(options) => install(options, common, environment).await,
        ClientCommand::Uninstall(options) => uninstall(options, environment),
    }
}

async fn install(
    options: &InstallOptions,
    common: &GlobalOptions,
    environment: &Environment,
) -> Result<(), CommandError> {
    let file = open(options.client, environment)?;
    let format = clients::format(options.client);
    let known = edit::read(format, file.text()).map_err(|reason| unreadable(&file, &reason));
    if options.check {
        return check_entry(options.client, &file, known?, environment).await;
    }
    let known = known.as_ref().ok().and_then(|known| entry::connection(known.as_ref()?));
    let entry = new_entry(options, common, known.as_ref())?;
    let after = edit::set(format, file.text(), &entry)
        .map_err(|reason| manual_edit_error(&file, format, &entry, &reason))?;
    if after == file.text() {
        output::print_line(format!("{} already has this entry", file.path().display()));
        return Ok(());
    }
    print_change(file.path(), file.text(), &after);
    if options.dry_run || !(options.yes || confirm()?) {
        output::print_line("nothing was written");
        return Ok(());
    }
    let made_servers = edit::lacks_servers(format, file.text());
    file.install(&after, made_servers).map_err(|error| write_error(file.path(), &error))?;
    if let Some(backup) = file.backup() {
        output::print_line(format!("the original file is saved as {}", backup.display()));
    }
    let name = options.client.name();
    output::print_line(format!(
        "written to {}; restart {name} to see it; `rialto install --check {name}` checks the connection",
        file.path().display()
    ));
    Ok(())
}

/// Removes the entry: the file becomes what it was, or loses only the entry if it has changed since.
fn uninstall(options: &UninstallOptions, environment: &Environment) -> Result<(), CommandError> {
    let file = open(options.client, environment)?;
    let format = clients::format(options.client);
    let known = edit::read(format, file.text()).map_err(|reason| unreadable(&file, &reason))?;
    if !file.exists() || known.is_none() {
        output::print_line(format!("{} has no entry for rialto", file.path().display()));
        return Ok(());
    }
    let after = match file.restored() {
        Some(before) => before,
        None => Some(edit::remove(format, file.text(), file.made_servers()).map_err(|reason| {
            let path = file.path().display();
            CommandError::failed(format!(
                "{path}: {reason}; nothing was changed. Remove the entry \"rialto\" yourself"
            ))
        })?),
    };
    print_change(file.path(), file.text(), after.as_deref().unwrap_or_default());
    if options.dry_run || !(options.yes || confirm()?) {
        output::print_line("nothing was written");
        return Ok(());
    }
    file.uninstall(after.as_deref()).map_err(|error| write_error(file.path(), &error))?;
    let done = if after.is_some() {
        "no longer has the entry"
    } else {
        "was created by the installation and is removed"
    };
    output::print_line(format!("{} {done}; restart {}", file.path().display(), options.client.name()));
    Ok(())
}

async fn check_entry(
    client: ClientApp,
    file: &ConfigFile,
    known: Option<Value>,
    environment: &Environment,
) -> Result<(), CommandError> {
    let (path, name) = (file.path().display(), client.name());
    let Some(known) = known else {
        return Err(CommandError::failed(format!(
            "{name} would not connect: {path} has no entry for rialto. Fix: rialto install {name}"
        )));
    };
    let Some(connection) = entry::connection(&known) else {
        return Err(CommandError::failed(format!(
            "{name} would not connect: the entry in {path} has neither a command nor a URL. Fix: rialto install {name}"
        )));
    };
    if known.get("enabled") == Some(&Value::Bool(false)) || known.get("disabled") == Some(&Value::Bool(true))
    {
        return Err(CommandError::failed(format!(
            "{name} would not connect: the entry in {path} is disabled. Fix: enable it in {name}, or rialto uninstall {name} and install it again"
        )));
    }
    let spinner = ProgressSpinner::new("connecting");
    let outcome = check::connect(client, &connection, environment).await;
    drop(spinner);
    match outcome {
        Ok(server) => {
            let by = match &connection {
                ClientConnection::Stdio { command, .. } => format!("starts {command}"),
                ClientConnection::Http { url, .. } => format!("calls {url}"),
            };
            let (server, version, tools) = (server.name, server.version, server.tools);
            output::print_line(format!(
                "{name} connects: it {by}, which is {server} {version} with {tools} tools"
            ));
            Ok(())
        }
        Err(failure) => {
            let (reason, fix) = (failure.reason, failure.fix);
            Err(CommandError::failed(format!("{name} would not connect: {reason}. Fix: {fix}")))
        }
    }
}

fn open(client: ClientApp, environment: &Environment) -> Result<ConfigFile, CommandError> {
    let path = clients::config_path(client, environment)?;
    ConfigFile::open(path.clone()).map_err(|error| write_error(&path, &error))
}

fn new_entry(
    options: &InstallOptions,
    common: &GlobalOptions,
    known: Option<&ClientConnection>,
) -> Result<Map<String, Value>, CommandError> {
    if let Some(url) = &options.http {
        entry::check_url("--http", url).map_err(CommandError::usage)?;
        let entry = entry::http_entry(options.client, url, options.token_env.as_deref())
            .map_err(CommandError::usage)?;
        return Ok(entry::members(entry));
    }
    for url in &options.agents {
        entry::check_url("--agent", url).map_err(CommandError::usage)?;
    }
    let program = std::env::current_exe()
        .map_err(|error| CommandError::failed(format!("the path of this program is not known: {error}")))?;
    let (data, config) = (absolute(common.data.as_deref())?, absolute(common.config.as_deref())?);
    let args = entry::mcp_args(known, &McpArguments { agents: &options.agents, data, config });
    Ok(entry::members(entry::stdio_entry(options.client, &program, &args)))
}

/// Absolute path, independent of the client's working directory.
fn absolute(path: Option<&Path>) -> Result<Option<String>, CommandError> {
    let Some(path) = path else { return Ok(None) };
    let whole = std::path::absolute(path).map_err(|error| write_error(path, &error))?;
    Ok(Some(whole.display().to_string()))
}

fn write_error(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::failed(format!("{}: {error}", path.display()))
}

fn unreadable(file: &ConfigFile, reason: &str) -> CommandError {
    CommandError::failed(format!("{}: {reason}; nothing was changed", file.path().display()))
}

/// Error with the entry to add by hand.
fn manual_edit_error(
    file: &ConfigFile,
    format: ConfigFormat,
    entry: &Map<String, Value>,
    reason: &str,
) -> CommandError {
    let (path, snippet) = (file.path().display(), edit::snippet(format, entry));
    CommandError::failed(format!(
        "{path}: {reason}; nothing was changed. Add this to it yourself:\n{}",
        snippet.trim_end()
    ))
}

/// Prints the lines that are removed and added, in order.
fn print_change(path: &Path, before: &str, after: &str) {
    output::print_line(format!("{}:", path.display()));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    for text in &old[same..old.len() - rest] {
        output::print_line(format!("- {text}"));
    }
    for text in &new[same..new.len() - rest] {
        output::print_line(format!("+ {text}"));
    }
}

fn confirm() -> Result<bool, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage("not a terminal: pass --yes to confirm"));
    }
    let mut out = std::io::stdout();
    let _ = write!(out, "Write this? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| CommandError::failed(error.to_string()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
