//! First steps: what is still to be done here, and what to paste into clients.

use maud::{Markup, html};
use rialto_policy::Action;
use serde_json::{Value, json};

use super::{
    layout::Frame,
    visit::{Visit, encoded},
};
use crate::{admin::overview::Overview, text};

/// What stands where a token belongs that we do not know.
const TOKEN: &str = "Bearer YOUR-TOKEN";

/// How this server is reached, for whoever is to be told.
struct Way {
    address: String,
    /// How the command line is called at the server's machine.
    command: String,
    needs_token: bool,
}

pub(super) fn shown(visit: &Visit, frame: &Frame, seen: &Overview) -> Markup {
    let way = Way::of(visit);
    let missing = missing(visit);
    let is_done = missing.is_empty() && seen.agents.all > 0 && seen.has_called;
    html! {
        div data-region="steps" { @if !is_done { (steps(visit, frame, &way, seen, &missing)) } }
        section.panel {
            h2 { "Connect a client" }
            (clients(visit, frame, &way))
        }
    }
}

/// What is to be done once, for as long as something of it is.
fn steps(visit: &Visit, frame: &Frame, way: &Way, seen: &Overview, missing: &[Action]) -> Markup {
    html! {
        section.panel {
            h2 { "First steps" }
            ol.steps {
                li {
                    span { (mark(missing.is_empty())) " Let yourself administer from here" }
                    @if !missing.is_empty() {
                        p { "At the server's machine; each line is a right of its own:" }
                        (snippet(&rights(way, visit.caller.id.as_str(), missing)))
                    }
                }
                li {
                    span { (mark(seen.agents.all > 0)) " Register an agent" }
                    @if seen.agents.all == 0 {
                        p { a href=(frame.to("/agents")) { "Do it here" } ", or at the server's machine:" }
                        (snippet(&format!("{} agents add https://agents.example.com/reviewer --allow", way.command)))
                    }
                }
                li {
                    span { (mark(seen.has_called)) " Make a call" }
                    @if !seen.has_called { (call(frame, way, seen)) }
                }
            }
        }
    }
}

fn call(frame: &Frame, way: &Way, seen: &Overview) -> Markup {
    let Some((agent, called)) = &seen.sample else {
        return html! { p.muted { "Each skill of an agent has a form on its page." } };
    };
    let header = if way.needs_token { " -H \"Authorization: Bearer $RIALTO_TOKEN\"" } else { "" };
    html! {
        p { "Try a skill of " a href=(frame.to(&format!("/agents/{}", encoded(agent)))) { (text::line(agent, 60)) } ", or call it:" }
        (snippet(&format!("curl{header} -d '{{}}' {}/call/{called}", way.address)))
    }
}

/// Each client, folded away but for the first.
fn clients(visit: &Visit, frame: &Frame, way: &Way) -> Markup {
    let (mcp, header) = (way.mcp(), way.header());
    let known = [
        ("Claude Code", format!("claude mcp add --transport http rialto {mcp}{header}")),
        ("Gemini CLI", format!("gemini mcp add --transport http{header} rialto {mcp}")),
        ("Codex, in ~/.codex/config.toml", way.codex()),
        ("Cursor, in ~/.cursor/mcp.json", way.json("mcpServers")),
        ("VS Code, in .vscode/mcp.json", way.json("servers")),
        ("Any client with a configuration file", way.json("mcpServers")),
        (
            "On the same machine, without a server (stdio)",
            "rialto install claude-code   # or claude-desktop, gemini, codex, cursor, vscode".to_owned(),
        ),
        ("From another A2A agent: the card is at", format!("{}/.well-known/agent-card.json", way.address)),
    ];
    html! {
        @if way.needs_token {
            p.muted {
                @if visit.console.may(&visit.caller, Action::AdminTokens).is_ok() {
                    "Each takes a token: " a href=(frame.to("/tokens")) { "make one" } ", and put it where it says so."
                } @else {
                    "Each takes a token, which " code { (way.command) " tokens create NAME" } " makes at the server's machine."
                }
            }
        }
        @for (at, (client, text)) in known.iter().enumerate() {
            details data-key=(format!("client-{at}")) open[at == 0] { summary { (client) } (snippet(text)) }
        }
    }
}

/// What the caller may not administer so far.
fn missing(visit: &Visit) -> Vec<Action> {
    let all = Action::ALL.into_iter().filter(|action| action.is_admin());
    all.filter(|action| visit.console.may(&visit.caller, *action).is_err()).collect()
}

fn rights(way: &Way, who: &str, missing: &[Action]) -> String {
    let line = |action: &Action| {
        format!("{} policy add allow-admin {} --caller {who}", way.command, action.as_str())
    };
    missing.iter().map(line).collect::<Vec<_>>().join("\n")
}

// === impl Way ===

impl Way {
    fn of(visit: &Visit) -> Self {
        let parts = visit.console.parts();
        Self {
            address: parts.site.url_for(&visit.uri, &visit.headers, &visit.caller.scope),
            command: visit.console.office().command(),
            needs_token: parts.needs_token,
        }
    }

    fn mcp(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// What a command line says of the token, which it takes from the environment.
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

fn mark(is_done: bool) -> Markup {
    html! { @if is_done { span.tag.good { "done" } } @else { span.tag.warn { "to do" } } }
}

fn snippet(text: &str) -> Markup {
    html! {
        div.copy {
            pre tabindex="0" { code { (text::visible(text, true)) } }
            button.needs-script type="button" data-copy { "Copy" }
        }
    }
}
