//! First steps on the overview page, and the configuration of clients.

use maud::{Markup, html};
use rialto_admin::overview::Overview;
use rialto_policy::Action;
use serde_json::{Value, json};

use super::{
    layout::PageFrame,
    request::{PageRequest, encode_segment},
};
use crate::text;

/// Placeholder for the token in a client configuration.
const TOKEN: &str = "Bearer YOUR-TOKEN";

/// Address and authentication of this server, for the configuration of clients.
struct ClientSetup {
    address: String,
    /// Command line of the program on the server's machine.
    command: String,
    needs_token: bool,
}

pub(super) fn panels(request: &PageRequest, frame: &PageFrame, seen: &Overview) -> Markup {
    let setup = ClientSetup::new(request);
    let missing = missing_permissions(request);
    let is_done = missing.is_empty() && seen.agents.all > 0 && seen.has_called;
    html! {
        div data-region="steps" { @if !is_done { (steps(request, frame, &setup, seen, &missing)) } }
        section.panel {
            h2 { "Connect a client" }
            (clients(request, frame, &setup))
        }
    }
}

/// Steps of the setup, shown until all are done.
fn steps(
    request: &PageRequest,
    frame: &PageFrame,
    setup: &ClientSetup,
    seen: &Overview,
    missing: &[Action],
) -> Markup {
    html! {
        section.panel {
            h2 { "First steps" }
            ol.steps {
                li {
                    span { (step_tag(missing.is_empty())) " Grant yourself administrative permissions" }
                    @if !missing.is_empty() {
                        p { "Run on the server's machine; each line grants one permission:" }
                        (snippet(&permission_commands(setup, request.caller.id.as_str(), missing)))
                    }
                }
                li {
                    span { (step_tag(seen.agents.all > 0)) " Register an agent" }
                    @if seen.agents.all == 0 {
                        p { a href=(frame.url("/agents")) { "Register it here" } ", or on the server's machine:" }
                        (snippet(&format!("{} agents add https://agents.example.com/reviewer --allow", setup.command)))
                    }
                }
                li {
                    span { (step_tag(seen.has_called)) " Make a call" }
                    @if !seen.has_called { (sample_call(frame, setup, seen)) }
                }
            }
        }
    }
}

fn sample_call(frame: &PageFrame, setup: &ClientSetup, seen: &Overview) -> Markup {
    let Some((agent, called)) = &seen.sample else {
        return html! { p.muted { "The page of an agent has a form for each of its skills." } };
    };
    let header = if setup.needs_token { " -H \"Authorization: Bearer $RIALTO_TOKEN\"" } else { "" };
    html! {
        p { "Try a skill of " a href=(frame.url(&format!("/agents/{}", encode_segment(agent)))) { (text::render_line(agent, 60)) } ", or call it:" }
        (snippet(&format!("curl{header} -d '{{}}' {}/call/{called}", setup.address)))
    }
}

/// Configuration of each client; the first one is open.
fn clients(request: &PageRequest, frame: &PageFrame, setup: &ClientSetup) -> Markup {
    let (mcp, header) = (setup.mcp(), setup.header());
    let known = [
        ("Claude Code", format!("claude mcp add --transport http rialto {mcp}{header}")),
        ("Gemini CLI", format!("gemini mcp add --transport http{header} rialto {mcp}")),
        ("Codex, in ~/.codex/config.toml", setup.codex()),
        ("Cursor, in ~/.cursor/mcp.json", setup.json("mcpServers")),
        ("VS Code, in .vscode/mcp.json", setup.json("servers")),
        ("Any client with a configuration file", setup.json("mcpServers")),
        (
            "On the same machine, without a server (stdio)",
            "rialto install claude-code   # or claude-desktop, gemini, codex, cursor, vscode".to_owned(),
        ),
        ("From another A2A agent: the card is at", format!("{}/.well-known/agent-card.json", setup.address)),
    ];
    html! {
        @if setup.needs_token {
            p.muted {
                @if request.admin.check_admin(&request.caller, Action::AdminTokens).is_ok() {
                    "Each client needs a token: " a href=(frame.url("/tokens")) { "create one" } " and insert it into the configuration."
                } @else {
                    "Each client needs a token. Create one on the server's machine: " code { (setup.command) " tokens create NAME" } "."
                }
            }
        }
        @for (at, (client, text)) in known.iter().enumerate() {
            details data-key=(format!("client-{at}")) open[at == 0] { summary { (client) } (snippet(text)) }
        }
    }
}

/// Administrative actions that the caller is not allowed to perform.
fn missing_permissions(request: &PageRequest) -> Vec<Action> {
    let all = Action::ALL.into_iter().filter(|action| action.is_admin());
    all.filter(|action| request.admin.check_admin(&request.caller, *action).is_err()).collect()
}

fn permission_commands(setup: &ClientSetup, who: &str, missing: &[Action]) -> String {
    let line = |action: &Action| {
        format!("{} policy add allow-admin {} --caller {who}", setup.command, action.as_str())
    };
    missing.iter().map(line).collect::<Vec<_>>().join("\n")
}

// === impl ClientSetup ===

impl ClientSetup {
    fn new(request: &PageRequest) -> Self {
        let parts = request.admin.deps();
        Self {
            address: parts.site.url_for(&request.uri, &request.headers, &request.caller.scope),
            command: request.admin.host().cli_command(),
            needs_token: parts.needs_token,
        }
    }

    fn mcp(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// Command line option for the token, which is read from the environment.
    fn header(&self) -> &'static str {
        if self.needs_token { " --header \"Authorization: Bearer $RIALTO_TOKEN\"" } else { "" }
    }

    fn json(&self, member: &str) -> String {
        let mut entry = json!({ "type": "http", "url": self.mcp() });
        if self.needs_token {
            entry["headers"] = json!({ "Authorization": TOKEN });
        }
        let whole: Value = json!({ member: { "rialto": entry } });
        format!("{whole:#}")
    }

    fn codex(&self) -> String {
        let token = if self.needs_token { "\nbearer_token_env_var = \"RIALTO_TOKEN\"" } else { "" };
        format!("[mcp_servers.rialto]\nurl = \"{}\"{token}", self.mcp())
    }
}

fn step_tag(is_done: bool) -> Markup {
    html! { @if is_done { span.tag.good { "done" } } @else { span.tag.warn { "to do" } } }
}

fn snippet(text: &str) -> Markup {
    html! {
        div.copy {
            pre tabindex="0" { code { (text::escape_invisible(text, true)) } }
            button.needs-script type="button" data-copy { "Copy" }
        }
    }
}
