//! `rialto install <client>` and `rialto uninstall <client>`: our entry in an MCP client's own configuration.
//!
//! Each client keeps its servers in a file of its own. The change is shown before anything is written, every byte that is not
//! ours stays as it is, and the file can be restored.

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
    clients::Format,
    config_file::ConfigFile,
    entry::{Connection, McpOptions},
};
use crate::{
    cli::{Client, ClientCommand, Common, Install, Uninstall},
    environment::Environment,
    output::{self, Spinner, Trouble},
};

pub(crate) async fn run(
    command: &ClientCommand,
    common: &Common,
    environment: &Environment,
) -> Result<(), Trouble> {
    match command {
        ClientCommand::Install(options) => install(options, common, environment).await,
        ClientCommand::Uninstall(options) => uninstall(options, environment),
    }
}

async fn install(options: &Install, common: &Common, environment: &Environment) -> Result<(), Trouble> {
    let file = open(options.client, environment)?;
    let format = clients::format(options.client);
    let known = edit::read(format, file.text()).map_err(|reason| unreadable(&file, &reason));
    if options.check {
        return check_entry(options.client, &file, known?, environment).await;
    }
    let known = known.as_ref().ok().and_then(|known| entry::connection(known.as_ref()?));
    let entry = new_entry(options, common, known.as_ref())?;
    let after =
        edit::set(format, file.text(), &entry).map_err(|reason| by_hand(&file, format, &entry, &reason))?;
    if after == file.text() {
        output::line(format!("{} already has this entry", file.path().display()));
        return Ok(());
    }
    show(file.path(), file.text(), &after);
    if options.dry_run || !(options.yes || confirm()?) {
        output::line("nothing was written");
        return Ok(());
    }
    let made_servers = edit::lacks_servers(format, file.text());
    file.install(&after, made_servers).map_err(|error| failed(file.path(), &error))?;
    if let Some(backup) = file.backup() {
        output::line(format!("the file before is kept as {}", backup.display()));
    }
    let name = options.client.name();
    output::line(format!(
        "written to {}; restart {name} to see it; `rialto install --check {name}` says whether it connects",
        file.path().display()
    ));
    Ok(())
}

/// Removes the entry: the file becomes what it was, or loses only the entry if it has changed since.
fn uninstall(options: &Uninstall, environment: &Environment) -> Result<(), Trouble> {
    let file = open(options.client, environment)?;
    let format = clients::format(options.client);
    let known = edit::read(format, file.text()).map_err(|reason| unreadable(&file, &reason))?;
    if !file.exists() || known.is_none() {
        output::line(format!("{} has no entry for rialto", file.path().display()));
        return Ok(());
    }
    let after = match file.restored() {
        Some(before) => before,
        None => Some(edit::remove(format, file.text(), file.made_servers()).map_err(|reason| {
            let path = file.path().display();
            Trouble::other(format!(
                "{path}: {reason}; nothing was changed. Remove the entry \"rialto\" yourself"
            ))
        })?),
    };
    show(file.path(), file.text(), after.as_deref().unwrap_or_default());
    if options.dry_run || !(options.yes || confirm()?) {
        output::line("nothing was written");
        return Ok(());
    }
    file.uninstall(after.as_deref()).map_err(|error| failed(file.path(), &error))?;
    let done = if after.is_some() {
        "no longer has the entry"
    } else {
        "was made by the installation and is removed"
    };
    output::line(format!("{} {done}; restart {}", file.path().display(), options.client.name()));
    Ok(())
}

async fn check_entry(
    client: Client,
    file: &ConfigFile,
    known: Option<Value>,
    environment: &Environment,
) -> Result<(), Trouble> {
    let (path, name) = (file.path().display(), client.name());
    let Some(known) = known else {
        return Err(Trouble::other(format!(
            "{name} would not connect: {path} has no entry for rialto. Fix: rialto install {name}"
        )));
    };
    let Some(connection) = entry::connection(&known) else {
        return Err(Trouble::other(format!(
            "{name} would not connect: the entry in {path} has neither a command nor a URL. Fix: rialto install {name}"
        )));
    };
    if known.get("enabled") == Some(&Value::Bool(false)) || known.get("disabled") == Some(&Value::Bool(true))
    {
        return Err(Trouble::other(format!(
            "{name} would not connect: the entry in {path} is disabled. Fix: enable it in {name}, or rialto uninstall {name} and install it again"
        )));
    }
    let spinner = Spinner::new("connecting");
    let outcome = check::connect(client, &connection, environment).await;
    drop(spinner);
    match outcome {
        Ok(server) => {
            let by = match &connection {
                Connection::Stdio { command, .. } => format!("starts {command}"),
                Connection::Http { url, .. } => format!("calls {url}"),
            };
            let (server, version, tools) = (server.name, server.version, server.tools);
            output::line(format!("{name} connects: it {by}, which is {server} {version} with {tools} tools"));
            Ok(())
        }
        Err(failure) => {
            let (reason, fix) = (failure.reason, failure.fix);
            Err(Trouble::other(format!("{name} would not connect: {reason}. Fix: {fix}")))
        }
    }
}

fn open(client: Client, environment: &Environment) -> Result<ConfigFile, Trouble> {
    let path = clients::config_path(client, environment)?;
    ConfigFile::open(path.clone()).map_err(|error| failed(&path, &error))
}

fn new_entry(
    options: &Install,
    common: &Common,
    known: Option<&Connection>,
) -> Result<Map<String, Value>, Trouble> {
    if let Some(url) = &options.http {
        entry::check_url("--http", url).map_err(Trouble::usage)?;
        let entry =
            entry::http_entry(options.client, url, options.token_env.as_deref()).map_err(Trouble::usage)?;
        return Ok(entry::members(entry));
    }
    for url in &options.agents {
        entry::check_url("--agent", url).map_err(Trouble::usage)?;
    }
    let program = std::env::current_exe()
        .map_err(|error| Trouble::other(format!("the path of this program is not known: {error}")))?;
    let (data, config) = (absolute(common.data.as_deref())?, absolute(common.config.as_deref())?);
    let args = entry::mcp_args(known, &McpOptions { agents: &options.agents, data, config });
    Ok(entry::members(entry::stdio_entry(options.client, &program, &args)))
}

/// A path that means the same wherever the client is started.
fn absolute(path: Option<&Path>) -> Result<Option<String>, Trouble> {
    let Some(path) = path else { return Ok(None) };
    let whole = std::path::absolute(path).map_err(|error| failed(path, &error))?;
    Ok(Some(whole.display().to_string()))
}

fn failed(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::other(format!("{}: {error}", path.display()))
}

fn unreadable(file: &ConfigFile, reason: &str) -> Trouble {
    Trouble::other(format!("{}: {reason}; nothing was changed", file.path().display()))
}

/// What to write where we cannot.
fn by_hand(file: &ConfigFile, format: Format, entry: &Map<String, Value>, reason: &str) -> Trouble {
    let (path, snippet) = (file.path().display(), edit::snippet(format, entry));
    Trouble::other(format!(
        "{path}: {reason}; nothing was changed. Add this to it yourself:\n{}",
        snippet.trim_end()
    ))
}

/// Prints the lines that are removed and added, in order.
fn show(path: &Path, before: &str, after: &str) {
    output::line(format!("{}:", path.display()));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    for text in &old[same..old.len() - rest] {
        output::line(format!("- {text}"));
    }
    for text in &new[same..new.len() - rest] {
        output::line(format!("+ {text}"));
    }
}

fn confirm() -> Result<bool, Trouble> {
    if !std::io::stdin().is_terminal() {
        return Err(Trouble::usage("not a terminal: pass --yes to confirm"));
    }
    let mut out = std::io::stdout();
    let _ = write!(out, "Write this? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Trouble::other(error.to_string()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
