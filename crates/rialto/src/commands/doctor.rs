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
use rialto_secrets::private_files::find_open;
use serde::Serialize;

use crate::{
    api_client::ApiClient,
    app::{App, BuildError, DataLocation, store_error},
    cli::GlobalOptions,
    config::Config,
    environment::Environment,
    output::{self, CommandError, ProgressSpinner},
};

/// More tools than this drown a model.
const MANY_TOOLS_COUNT: usize = 200;

/// Result of one check.
#[derive(Debug, Serialize)]
struct DoctorFinding {
    what: String,
    level: FindingLevel,
    finding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingLevel {
    Ok,
    Warning,
    Error,
}

pub(crate) async fn run(
    common: &GlobalOptions,
    environment: &Environment,
    as_json: bool,
) -> Result<(), CommandError> {
    let spinner = ProgressSpinner::new("checking");
    let elsewhere = ApiClient::open_remote(common, environment)?;
    let findings = match &elsewhere {
        Some(api) => server::examine(api).await,
        None => examine(common, environment).await,
    };
    drop(spinner);
    if as_json {
        output::print_json(&findings);
    } else {
        for finding in &findings {
            let mark = match finding.level {
                FindingLevel::Ok => "ok  ",
                FindingLevel::Warning => "warn",
                FindingLevel::Error => "FAIL",
            };
            output::print_line(format!(
                "{mark}  {:<14} {}",
                finding.what,
                output::sanitize(&finding.finding)
            ));
            if let Some(fix) = &finding.fix {
                output::print_line(format!("      {:<14} -> {fix}", ""));
            }
        }
    }
    let failing = findings.iter().filter(|finding| finding.level == FindingLevel::Error).count();
    if failing == 0 {
        Ok(())
    } else {
        Err(CommandError::failed(format!("{failing} of {} checks failed", findings.len())))
    }
}

/// Checks that other users cannot read the data folder. Runs before the folder is opened, which restricts access.
fn check_private_files(folder: &Path) -> DoctorFinding {
    let open = find_open(folder);
    let Some(first) = open.first() else { return ok_finding("files", "readable by their owner only") };
    let (mode, others) = (first.mode & 0o7777, open.len() - 1);
    let more = if others == 0 { String::new() } else { format!(", and {others} more") };
    DoctorFinding {
        what: "files".to_owned(),
        level: FindingLevel::Warning,
        finding: format!("other users can read {} (mode {mode:04o}){more}", first.path.display()),
        fix: Some(format!("chmod -R go-rwx {}", folder.display())),
    }
}

async fn examine(common: &GlobalOptions, environment: &Environment) -> Vec<DoctorFinding> {
    let config = match Config::load(common.config.as_deref(), environment) {
        Ok(config) => config,
        Err(error) => {
            return vec![error_finding(
                "configuration",
                error.to_string(),
                "fix the file; `rialto config schema` lists all options",
            )];
        }
    };
    let mut findings = vec![ok_finding("configuration", "valid")];
    let folder = crate::data_folder(common, &config, environment);
    // Checked before the folder is opened, which restricts access.
    let files = check_private_files(&folder);
    let (place, fix) = match &config.store.url {
        Some(url) => (
            url.to_string(),
            "check that the database server is running and that [store] url is correct".to_owned(),
        ),
        None => {
            let folder = folder.display();
            let fix = format!("check that {folder} is writable, or select another folder with --data");
            (folder.to_string(), fix)
        }
    };
    let program = match App::open(config, DataLocation::Folder(folder), None, environment).await {
        Ok(program) => program,
        Err(error @ BuildError::Guardrails(_)) => {
            findings.push(error_finding(
                "guardrails",
                error.to_string(),
                "fix [guardrails] in the configuration",
            ));
            return findings;
        }
        Err(error) => {
            findings.push(error_finding("store", error.to_string(), &fix));
            findings.push(files);
            return findings;
        }
    };
    findings.push(check_store(&program, &place, &fix).await);
    findings.push(files);
    findings
        .push(ok_finding("policies", format!("{} active", program.engine.policies().active().ids().len())));
    findings.push(check_tool_count(&program));
    findings.push(check_tool_names(&program));
    findings.extend(check_agents(&program).await);
    findings.extend(check_deployments(&program).await);
    findings.extend(check_webhooks(&program).await);
    findings.push(check_address(&program).await);
    findings
}

/// Checks that the store can be written: with a full disk it still opens and reads.
async fn check_store(program: &App, place: &str, fix: &str) -> DoctorFinding {
    if let Some(problem) = program.store.problem().await {
        return error_finding("store", format!("opens in {place}, but {}", problem.message()), fix);
    }
    match program.store.touch().await {
        Ok(_) => ok_finding("store", format!("opens in {place}")),
        Err(error) => error_finding(
            "store",
            format!("opens in {place}, but cannot be written: {}", store_error(&error)),
            fix,
        ),
    }
}

/// Reports the form of tool names for MCP clients.
fn check_tool_names(program: &App) -> DoctorFinding {
    let shown = match program.config.mcp.tool_names {
        ToolNames::Auto => {
            "a2a_<agent>_<skill> to MCP clients; <agent>.<skill> to Claude Code, Gemini CLI, Codex and the Inspector, which accept dots"
        }
        ToolNames::Canonical => {
            "<agent>.<skill> to every MCP client; the APIs of OpenAI and Anthropic refuse such names"
        }
        ToolNames::Legacy => "a2a_<agent>_<skill> to every MCP client",
        ToolNames::Both => "each skill twice, as <agent>.<skill> and as a2a_<agent>_<skill>",
    };
    ok_finding("tool names", shown)
}

fn check_tool_count(program: &App) -> DoctorFinding {
    match program.engine.registry().directory(&program.scope).len() {
        0 => warning("tools", "there are none", "rialto agents add URL --allow"),
        n if n > MANY_TOOLS_COUNT => warning(
            "tools",
            format!("{n} tools are listed"),
            "models choose badly among so many tools: `[mcp] search_above = 200` or `/mcp?tools=search` lists three that find the others",
        ),
        n => ok_finding("tools", format!("{n} tools are listed")),
    }
}

async fn check_agents(program: &App) -> Vec<DoctorFinding> {
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
        findings.extend(check_credential(program, &agent, &what).await);
        let error = agent.last_error.clone().unwrap_or_default();
        findings.push(match health {
            Ok(Health::Healthy | Health::Unknown) => {
                ok_finding(&what, format!("healthy, {} skills", agent.card.skills.len()))
            }
            Ok(Health::Degraded) => {
                warning(&what, format!("degraded: {error}"), &format!("rialto agents show {}", agent.slug))
            }
            Ok(Health::Unreachable) => error_finding(
                &what,
                format!("unreachable: {error}"),
                &format!("start it, or rialto agents remove {}", agent.slug),
            ),
            Err(error) => error_finding(&what, error.to_string(), "see the line above about the store"),
        });
        let caller = program.local_caller();
        let target = rialto_model::call::CallTarget { skill: agent.card.skills.first().cloned(), agent };
        let question =
            rialto_policy::AuthorizationRequest::for_target(&caller, rialto_policy::Action::Invoke, &target);
        if target.agent.trust == AgentTrust::External
            && !program.engine.policies().active().decide(&question).allowed
        {
            findings.push(warning(
                &what,
                "no policy lets you call it",
                &format!("rialto policy allow {}", target.agent.slug),
            ));
        }
    }
    findings
}

/// Checks that deployed servers are reachable and have their secrets.
async fn check_deployments(program: &App) -> Vec<DoctorFinding> {
    let registry = program.engine.registry();
    let asking = registry.deployments().list(&program.scope).into_iter().map(|row| async move {
        let health = registry.probe(&row).await;
        (registry.get(&row.id).unwrap_or(row), health)
    });
    let mut findings = Vec::new();
    for (row, health) in futures::future::join_all(asking).await {
        let what = format!("{} {}", row.backing.kind(), row.slug);
        findings.extend(check_settings(program, &row, &what).await);
        let error = row.last_error.clone().unwrap_or_default();
        let fix = format!("rialto tools show {}", row.slug);
        findings.push(match health {
            Ok(Health::Unreachable) => error_finding(&what, format!("unavailable: {error}"), &fix),
            Ok(Health::Degraded) => warning(&what, format!("degraded: {error}"), &fix),
            Ok(Health::Healthy | Health::Unknown) => {
                ok_finding(&what, format!("{} tools", row.card.skills.len()))
            }
            Err(error) => error_finding(&what, error.to_string(), "see the line above about the store"),
        });
    }
    program.tools.close().await;
    findings
}

/// Checks the headers and variables of a deployed server.
async fn check_settings(program: &App, row: &Agent, what: &str) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, setting) in row.backing.via().map(BackingTransport::settings).into_iter().flatten() {
        for piece in setting.pieces() {
            if let SettingPiece::From(source) = piece
                && (program.secrets)(&source).await.is_err()
            {
                findings.push(error_finding(
                    what,
                    format!("{name} is missing"),
                    &secret_fix(&source, &row.slug),
                ));
            }
        }
    }
    findings
}

/// Checks the credentials of an agent.
async fn check_credential(program: &App, agent: &Agent, what: &str) -> Vec<DoctorFinding> {
    let Some(credential) = &agent.credential else { return Vec::new() };
    let mut findings = Vec::new();
    if let Err(why) = rialto_a2a::credential::scheme(credential, &agent.url, Some(&agent.card)) {
        let fix = format!("see rialto agents credential {} --help", agent.slug);
        findings.push(error_finding(what, why, &fix));
    }
    for source in credential.callers.values().chain([&credential.source]) {
        if let Err(why) = (program.secrets)(source).await {
            findings.push(error_finding(what, why, &secret_fix(source, &agent.slug)));
        }
        if let Some(path) = crate::commands::agents::exposed_secret_file(source) {
            let finding = format!("others on this machine can read its secret in {path}");
            findings.push(warning(what, finding, &format!("chmod 600 {path}")));
        }
    }
    findings
}

fn secret_fix(source: &SecretSource, slug: &str) -> String {
    match source {
        SecretSource::Env(name) => format!("export {name}=…"),
        SecretSource::File(path) => format!("write the secret to {path}, with mode 600"),
        SecretSource::Store(name) => format!("rialto secrets set {name}"),
        SecretSource::Held(_) => format!("rialto agents credential {slug} --secret SOURCE"),
    }
}

async fn check_webhooks(program: &App) -> Vec<DoctorFinding> {
    let looked_at = |webhook: Webhook| {
        let (what, standing) = (format!("webhook {}", webhook.id), webhook.standing);
        let fix = format!("fix its receiver, then rialto webhooks retry {}", webhook.id);
        match (standing.disabled, standing.last_error) {
            (Some(why), _) => error_finding(&what, format!("disabled: {why}"), &fix),
            (None, Some(why)) => warning(&what, format!("failed {} times: {why}", standing.failures), &fix),
            (None, None) if standing.lost > 0 => {
                ok_finding(&what, format!("{} delivered, {} lost before", standing.delivered, standing.lost))
            }
            (None, None) => ok_finding(&what, format!("{} delivered", standing.delivered)),
        }
    };
    match program.store.webhooks().await {
        Ok(webhooks) => webhooks.into_iter().map(looked_at).collect(),
        Err(error) => {
            vec![error_finding("webhooks", error.to_string(), "see the line above about the store")]
        }
    }
}

async fn check_address(program: &App) -> DoctorFinding {
    let address = &program.config.server.addr;
    match rialto_edge::listener::HttpListener::open(address).await {
        Ok(_) => ok_finding("address", format!("{address} is free for `rialto serve`")),
        Err(_) => warning(
            "address",
            format!("{address} is in use"),
            "a server may already be running; otherwise select another address with --addr",
        ),
    }
}

fn ok_finding(what: &str, finding: impl Into<String>) -> DoctorFinding {
    DoctorFinding { what: what.to_owned(), level: FindingLevel::Ok, finding: finding.into(), fix: None }
}

fn warning(what: &str, finding: impl Into<String>, fix: &str) -> DoctorFinding {
    DoctorFinding {
        what: what.to_owned(),
        level: FindingLevel::Warning,
        finding: finding.into(),
        fix: Some(fix.to_owned()),
    }
}

fn error_finding(what: &str, finding: impl Into<String>, fix: &str) -> DoctorFinding {
    DoctorFinding {
        what: what.to_owned(),
        level: FindingLevel::Error,
        finding: finding.into(),
        fix: Some(fix.to_owned()),
    }
}
