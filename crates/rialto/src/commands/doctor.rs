//! `rialto doctor`: what would fail, and how to fix it.

mod server;

use std::path::Path;

use futures::StreamExt;
use rialto_mcp::ToolNames;
use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    backing::{BackingTransport, SettingPiece},
    credential::SecretSource,
    webhook::Webhook,
};
use serde::Serialize;

use crate::{
    cli::Common,
    config::Config,
    desk::Desk,
    environment::Environment,
    output::{self, Spinner, Trouble},
    private_files::find_open,
    program::{BuildError, Place, Program, store_error},
};

/// More tools than this drown a model.
const MANY_TOOLS: usize = 200;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    level: Level,
    finding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

pub(crate) async fn run(common: &Common, environment: &Environment, as_json: bool) -> Result<(), Trouble> {
    let spinner = Spinner::new("looking");
    let elsewhere = Desk::elsewhere(common, environment)?;
    let findings = match &elsewhere {
        Some(desk) => server::examine(desk).await,
        None => examine(common, environment).await,
    };
    drop(spinner);
    if as_json {
        output::json(&findings);
    } else {
        for finding in &findings {
            let mark = match finding.level {
                Level::Ok => "ok  ",
                Level::Warning => "warn",
                Level::Error => "FAIL",
            };
            output::line(format!("{mark}  {:<14} {}", finding.what, output::printable(&finding.finding)));
            if let Some(fix) = &finding.fix {
                output::line(format!("      {:<14} -> {fix}", ""));
            }
        }
    }
    let failing = findings.iter().filter(|finding| finding.level == Level::Error).count();
    if failing == 0 {
        Ok(())
    } else {
        Err(Trouble::other(format!("{failing} of {} checks failed", findings.len())))
    }
}

/// Whether others than its owner can read what is kept in the data folder. Looked at before that is opened, which closes it.
fn private_files(folder: &Path) -> Finding {
    let open = find_open(folder);
    let Some(first) = open.first() else { return good("files", "only their owner can read them") };
    let (mode, others) = (first.mode & 0o7777, open.len() - 1);
    let more = if others == 0 { String::new() } else { format!(", and {others} more") };
    Finding {
        what: "files".to_owned(),
        level: Level::Warning,
        finding: format!("others can read {} (mode {mode:04o}){more}", first.path.display()),
        fix: Some(format!("chmod -R go-rwx {}", folder.display())),
    }
}

async fn examine(common: &Common, environment: &Environment) -> Vec<Finding> {
    let config = match Config::load(common.config.as_deref(), environment) {
        Ok(config) => config,
        Err(error) => {
            return vec![bad(
                "configuration",
                error.to_string(),
                "mend the file; `rialto config schema` lists every option",
            )];
        }
    };
    let mut findings = vec![good("configuration", "valid")];
    let folder = crate::data_folder(common, &config, environment);
    // Looked at before the folder is opened, which closes it.
    let files = private_files(&folder);
    let (place, fix) = match &config.store.url {
        Some(url) => {
            (url.to_string(), "see that the database server runs, and that [store] url is right".to_owned())
        }
        None => {
            let folder = folder.display();
            let fix = format!("see that {folder} can be written to, or name another folder with --data");
            (folder.to_string(), fix)
        }
    };
    let program = match Program::open(config, Place::Folder(folder), None, environment).await {
        Ok(program) => program,
        Err(error @ BuildError::Guardrails(_)) => {
            findings.push(bad("guardrails", error.to_string(), "mend [guardrails] in the configuration"));
            return findings;
        }
        Err(error) => {
            findings.push(bad("store", error.to_string(), &fix));
            findings.push(files);
            return findings;
        }
    };
    findings.push(store(&program, &place, &fix).await);
    findings.push(files);
    findings.push(good("policies", format!("{} in force", program.engine.policy().ids().len())));
    findings.push(tools(&program));
    findings.push(tool_names(&program));
    findings.extend(agents(&program).await);
    findings.extend(deployed(&program).await);
    findings.extend(webhooks(&program).await);
    findings.push(address(&program).await);
    findings
}

/// Whether the store can be written: a full disk may still be opened and read.
async fn store(program: &Program, place: &str, fix: &str) -> Finding {
    if let Some(problem) = program.store.problem().await {
        return bad("store", format!("opens in {place}, but {}", problem.message()), fix);
    }
    match program.store.touch().await {
        Ok(_) => good("store", format!("opens in {place}")),
        Err(error) => {
            bad("store", format!("opens in {place}, but cannot be written: {}", store_error(&error)), fix)
        }
    }
}

/// Says which form of a tool's name MCP clients are shown.
fn tool_names(program: &Program) -> Finding {
    let shown = match program.config.mcp.tool_names {
        ToolNames::Auto => {
            "a2a_<agent>_<skill> to MCP clients; <agent>.<skill> to Claude Code, Gemini CLI, Codex and the Inspector, which take dots"
        }
        ToolNames::Canonical => {
            "<agent>.<skill> to every MCP client; the APIs of OpenAI and Anthropic refuse such names"
        }
        ToolNames::Legacy => "a2a_<agent>_<skill> to every MCP client",
        ToolNames::Both => "each skill twice, as <agent>.<skill> and as a2a_<agent>_<skill>",
    };
    good("tool names", shown)
}

fn tools(program: &Program) -> Finding {
    match program.engine.registry().directory(&program.scope).len() {
        0 => warn("tools", "there are none", "rialto agents add URL --allow"),
        n if n > MANY_TOOLS => warn(
            "tools",
            format!("{n} tools are listed"),
            "a model chooses badly among so many: `[mcp] search_above = 200` or `/mcp?tools=search` lists three that find the others",
        ),
        n => good("tools", format!("{n} tools are listed")),
    }
}

async fn agents(program: &Program) -> Vec<Finding> {
    let registry = program.engine.registry();
    let agents = registry.agents(&program.scope);
    let probes = futures::stream::iter(agents).map(|agent| async move {
        let health = registry.probe(&agent).await;
        let now = registry.get(&agent.id).unwrap_or(agent);
        (now, health)
    });
    let probed: Vec<_> = probes.buffered(16).collect().await;
    let mut findings = Vec::new();
    for (agent, health) in probed {
        let what = format!("agent {}", agent.slug);
        findings.extend(credential(program, &agent, &what).await);
        let error = agent.last_error.clone().unwrap_or_default();
        findings.push(match health {
            Ok(Health::Healthy | Health::Unknown) => {
                good(&what, format!("healthy, {} skills", agent.card.skills.len()))
            }
            Ok(Health::Degraded) => {
                warn(&what, format!("degraded: {error}"), &format!("rialto agents show {}", agent.slug))
            }
            Ok(Health::Unreachable) => bad(
                &what,
                format!("unreachable: {error}"),
                &format!("start it, or rialto agents remove {}", agent.slug),
            ),
            Err(error) => bad(&what, error.to_string(), "see the line above about the store"),
        });
        let caller = program.local_caller();
        let target = rialto_model::call::CallTarget { skill: agent.card.skills.first().cloned(), agent };
        let question = rialto_policy::Question::about(&caller, rialto_policy::Action::Invoke, &target);
        if target.agent.trust == AgentTrust::External && !program.engine.policy().decide(&question).allowed {
            findings.push(warn(
                &what,
                "no policy lets you call it",
                &format!("rialto policy allow {}", target.agent.slug),
            ));
        }
    }
    findings
}

/// Whether what is deployed can be reached, and has the secrets that it needs.
async fn deployed(program: &Program) -> Vec<Finding> {
    let registry = program.engine.registry();
    let asking = registry.deployed(&program.scope).into_iter().map(|row| async move {
        let health = registry.probe(&row).await;
        (registry.get(&row.id).unwrap_or(row), health)
    });
    let mut findings = Vec::new();
    for (row, health) in futures::future::join_all(asking).await {
        let what = format!("{} {}", row.backing.kind(), row.slug);
        findings.extend(settings(program, &row, &what).await);
        let error = row.last_error.clone().unwrap_or_default();
        let fix = format!("rialto tools show {}", row.slug);
        findings.push(match health {
            Ok(Health::Unreachable) => bad(&what, format!("unavailable: {error}"), &fix),
            Ok(Health::Degraded) => warn(&what, format!("degraded: {error}"), &fix),
            Ok(Health::Healthy | Health::Unknown) => good(&what, format!("{} tools", row.card.skills.len())),
            Err(error) => bad(&what, error.to_string(), "see the line above about the store"),
        });
    }
    program.tools.close().await;
    findings
}

/// Whether all headers and variables of something deployed can be had.
async fn settings(program: &Program, row: &Agent, what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, setting) in row.backing.via().map(BackingTransport::settings).into_iter().flatten() {
        for piece in setting.pieces() {
            if let SettingPiece::From(source) = piece
                && (program.secrets)(&source).await.is_err()
            {
                findings.push(bad(what, format!("{name} is missing"), &fix_of(&source, &row.slug)));
            }
        }
    }
    findings
}

/// Whether everything that an agent is shown can be had.
async fn credential(program: &Program, agent: &Agent, what: &str) -> Vec<Finding> {
    let Some(credential) = &agent.credential else { return Vec::new() };
    let mut findings = Vec::new();
    if let Err(why) = rialto_a2a::credential::scheme(credential, &agent.url, Some(&agent.card)) {
        let fix = format!("see rialto agents credential {} --help", agent.slug);
        findings.push(bad(what, why, &fix));
    }
    for source in credential.callers.values().chain([&credential.source]) {
        if let Err(why) = (program.secrets)(source).await {
            findings.push(bad(what, why, &fix_of(source, &agent.slug)));
        }
        if let Some(path) = crate::commands::agents::open_to_others(source) {
            let finding = format!("others on this machine can read its secret in {path}");
            findings.push(warn(what, finding, &format!("chmod 600 {path}")));
        }
    }
    findings
}

fn fix_of(source: &SecretSource, slug: &str) -> String {
    match source {
        SecretSource::Env(name) => format!("export {name}=…"),
        SecretSource::File(path) => format!("write the secret to {path}, with mode 600"),
        SecretSource::Store(name) => format!("rialto secrets set {name}"),
        SecretSource::Held(_) => format!("rialto agents credential {slug} --secret SOURCE"),
    }
}

async fn webhooks(program: &Program) -> Vec<Finding> {
    let looked_at = |webhook: Webhook| {
        let (what, standing) = (format!("webhook {}", webhook.id), webhook.standing);
        let fix = format!("mend its receiver, then rialto webhooks retry {}", webhook.id);
        match (standing.disabled, standing.last_error) {
            (Some(why), _) => bad(&what, format!("disabled: {why}"), &fix),
            (None, Some(why)) => warn(&what, format!("failed {} times: {why}", standing.failures), &fix),
            (None, None) if standing.lost > 0 => {
                good(&what, format!("{} delivered, {} lost before", standing.delivered, standing.lost))
            }
            (None, None) => good(&what, format!("{} delivered", standing.delivered)),
        }
    };
    match program.store.webhooks().await {
        Ok(webhooks) => webhooks.into_iter().map(looked_at).collect(),
        Err(error) => vec![bad("webhooks", error.to_string(), "see the line above about the store")],
    }
}

async fn address(program: &Program) -> Finding {
    let address = &program.config.server.addr;
    match rialto_edge::serve::Door::open(address).await {
        Ok(_) => good("address", format!("{address} is free for `rialto serve`")),
        Err(_) => warn(
            "address",
            format!("{address} is in use"),
            "a server may be running already; else choose another with --addr",
        ),
    }
}

fn good(what: &str, finding: impl Into<String>) -> Finding {
    Finding { what: what.to_owned(), level: Level::Ok, finding: finding.into(), fix: None }
}

fn warn(what: &str, finding: impl Into<String>, fix: &str) -> Finding {
    Finding {
        what: what.to_owned(),
        level: Level::Warning,
        finding: finding.into(),
        fix: Some(fix.to_owned()),
    }
}

fn bad(what: &str, finding: impl Into<String>, fix: &str) -> Finding {
    Finding { what: what.to_owned(), level: Level::Error, finding: finding.into(), fix: Some(fix.to_owned()) }
}
