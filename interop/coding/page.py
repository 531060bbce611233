"""Writes down how the clients did: docs/CLIENTS.md, as a run of all of them saw it."""

import json
import re
from pathlib import Path

from bridge import Server
from cases import CASES, Verdict
from client import Client

Cell = tuple[str, str, str]  # client, transport, case
TITLES = {"stdio": "stdio", "http": "HTTP"}
# What `interop/frameworks/run` writes into the page; it is kept.
FRAMEWORKS = re.compile(r"\n*<!-- frameworks: begin -->.*<!-- frameworks: end -->\n*", re.DOTALL)
HEAD = """# Clients and frameworks

First coding clients, then [agent frameworks](#agent-frameworks).

## Coding clients

How {clients} get along with an A2A agent through Rialto. `interop/apps` runs it all again and writes this part of the page.

Each client is the published npm package. It talks to a model of ours on loopback, a script that calls the tools which it is offered and repeats what
it is told; what the client says to Rialto is listened to. The agent is `interop/agents/desk.py` on the official Python SDK (A2A 1.0).
Rialto is configured by nothing but what is shown below: on stdio the entry is the one that `rialto install` writes, over HTTP there is a
`rialto serve` and a token in `RIALTO_TOKEN`.

*Exact*: nothing is lost. *Degraded*: less than the agent offers; how is said with each client.
"""
INSTALL = """### Install into a client

`rialto install CLIENT` writes the entry for Rialto into the client's own configuration file. It shows the change first, and asks.

```sh
rialto install claude-code --agent https://agents.example.com/reviewer
rialto install codex --http https://rialto.example.com/mcp --token-env RIALTO_TOKEN
rialto install --check codex     # connects as the client would, and says what to fix
rialto uninstall claude-code
```

| client | file | variables that move it |
|---|---|---|
| `claude-code` | `~/.claude.json` | `CLAUDE_CONFIG_DIR` |
| `claude-desktop` | `~/.config/Claude/claude_desktop_config.json` ¹ | `XDG_CONFIG_HOME` |
| `gemini` | `~/.gemini/settings.json` | `GEMINI_CLI_HOME` |
| `codex` | `~/.codex/config.toml` | `CODEX_HOME` |
| `cursor` | `~/.cursor/mcp.json` | |
| `vscode` | `~/.config/Code/User/mcp.json` ¹ | `VSCODE_PORTABLE`, `VSCODE_APPDATA`, `XDG_CONFIG_HOME` |
| `opencode` | `~/.config/opencode/opencode.jsonc` or `.json` | `OPENCODE_CONFIG`, `OPENCODE_CONFIG_DIR`, `XDG_CONFIG_HOME` |
| `qwen-code` | `~/.qwen/settings.json` | `QWEN_HOME` |
| `cline` | `~/.cline/data/settings/cline_mcp_settings.json` ² | `CLINE_MCP_SETTINGS_PATH`, `CLINE_DATA_DIR`, `CLINE_DIR` |
| `copilot-cli` | `~/.copilot/mcp-config.json` | `COPILOT_HOME` |
| `zed` | `~/.config/zed/settings.json` | `XDG_CONFIG_HOME`, `FLATPAK_XDG_CONFIG_HOME` |
| `windsurf` | `~/.codeium/windsurf/mcp_config.json` | |
| `goose` | `~/.config/goose/config.yaml` | `GOOSE_PATH_ROOT`, `XDG_CONFIG_HOME` |
| `continue` | `~/.continue/config.yaml` | `CONTINUE_GLOBAL_DIR` |

¹ On macOS below `~/Library/Application Support`. ² Or the file of an older VS Code extension, if only that one exists.

- Only the entry changes. Comments, white space and numbers stay. A symlink stays a symlink, and a file keeps its mode and its owner.
- The file before the first installation is kept beside it as `NAME.before-rialto`, and never overwritten. `NAME.rialto-install` records how to undo the change.
- `rialto uninstall` restores the file byte for byte. If the file has changed since, only the entry is removed.
- `--data` and `--config` are written into the entry. `--agent` adds to the agents that the entry has. What you added to the entry stays.
- `--http URL --token-env NAME` has the client connect to a running server. The token itself is not written: the client reads it from the variable `NAME`. Claude
  Desktop has no HTTP servers in its file, and Cline and Zed read no variables for headers; use the entry without `--http` there.
- Codex gets `default_tools_approval_mode = "approve"`, without which `codex exec` refuses every call. Rialto's policies still decide about each call.
- `codex mcp list` says `enabled` of any entry: it neither starts a command nor opens an MCP session. `rialto install --check codex` connects. The tests (`foreign::install`) have
  `codex exec` start the installed entry, on stdio and over HTTP, and its model call an agent.
- A file that cannot be edited safely (YAML in flow style, for example) is left alone, and the text to paste is printed.
- Codex passes only a few variables on to the programs that it starts (`HOME` and `PATH` among them). Keep secrets of agents with `rialto secrets`, not in
  variables, or name the variables in `env_vars` of its entry.
"""
FOOT = """### What the clients taught us

- **Timeouts.** When its own timeout is over, Gemini CLI and, on stdio, Claude Code say so in `notifications/cancelled` (`Request timed out`): the task goes on. Codex
  says `MCP response future dropped`, as it does when its person interrupts it, and Claude Code over HTTP hangs up, which in 2026-07-28 means that the
  call is not wanted: the task is called off. The model learns no task id then, but `get_task` without one lists its latest tasks. Rialto answers a call after 30 s
  (`[calls] timeout_ms`) with the task's id, and all three wait longer than that unless they are told otherwise.
- **The first turn.** `claude -p` and `codex exec` begin without a server that takes a few seconds to list its tools, as `rialto mcp` does when an agent is slow to
  show its card (it greets at once, and lists when all cards are there). `MCP_CONNECTION_NONBLOCKING=0` in the environment of the one and `required = true` in the configuration of the other have them wait.
- **Nobody there.** Without a terminal and without a hook, `claude -p` cancels an agent's question, which calls the task off, and `codex exec` declines it, which
  the agent is told. A model that talks to an agent with `send_message` gets its questions as results, and answers them.
- **Structured content.** Claude Code and Codex show their model the structured content of a result, if there is one, in place of its texts; Codex leaves out its
  pictures then. So results with files have none for these two.
- **Patience.** Gemini CLI stops a model that makes the same call five times in a row, `get_task` included.
- **Approval.** `codex exec` refuses a call that its person would have to approve: `default_tools_approval_mode` above is what lets it through.
"""


def snippet(path: Path, server: Server) -> str:
    """What a client's configuration says of Rialto, as anybody would write it."""
    text = path.read_text()
    if path.suffix == ".json":
        text = json.dumps({"mcpServers": json.loads(text)["mcpServers"]}, indent=2)
        kind = "json"
    else:
        text = text[text.index("[mcp_servers.rialto]") :].strip()
        kind = "toml"
    text = text.replace(str(server.folder / "rialto"), "/usr/local/bin/rialto")
    text = text.replace(server.agent, "https://agents.example.com/desk")
    text = text.replace(server.url or "\0", "http://127.0.0.1:8420/mcp")
    home = path.parts.index("home")
    return f"`~/{'/'.join(path.parts[home + 1 :])}`:\n\n```{kind}\n{text}\n```"


def write(path: Path, text: str) -> None:
    """Replaces the page, but for what is there of frameworks."""
    kept = FRAMEWORKS.search(path.read_text()) if path.exists() else None
    path.write_text(text.rstrip("\n") + "\n" + (f"\n{kept[0].strip()}\n" if kept else ""))


def page(
    clients: list[Client], transports: tuple[str, ...], verdicts: dict[Cell, Verdict], snippets: dict[tuple[str, str], str]
) -> str:
    named = [f"{client.title} {client.version}" for client in clients]
    lines = [HEAD.format(clients=f"{', '.join(named[:-1])} and {named[-1]}")]
    lines += summary(clients, transports, verdicts)
    lines += ["", INSTALL.rstrip()]
    for client in clients:
        lines += ["", f"### {client.title}", ""]
        lines += [f"Version {client.version} of `{client.package}`. {client.about}", ""]
        lines += table(client, transports, verdicts)
        for transport in transports:
            lines += ["", f"{TITLES[transport]}, {snippets[client.key, transport]}"]
        if client.more:
            lines += ["", client.more]
    return "\n".join([*lines, "", FOOT])


def summary(clients: list[Client], transports: tuple[str, ...], verdicts: dict[Cell, Verdict]) -> list[str]:
    columns = [(client, transport) for client in clients for transport in transports]
    titles = [f"{client.title}, {TITLES[transport]}" for client, transport in columns]
    lines = [f"| | {' | '.join(titles)} |", "|---" * (len(columns) + 1) + "|"]
    for case, told in CASES.items():
        grades = [verdicts[client.key, transport, case].grade for client, transport in columns]
        lines.append(f"| {told} | {' | '.join(grades)} |")
    return lines


def table(client: Client, transports: tuple[str, ...], verdicts: dict[Cell, Verdict]) -> list[str]:
    lines = [f"| | {' | '.join(TITLES[transport] for transport in transports)} |", "|---" * (len(transports) + 1) + "|"]
    for case, told in CASES.items():
        cells = [cell(verdicts[client.key, transport, case]) for transport in transports]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    return lines


def cell(verdict: Verdict) -> str:
    note = verdict.note.replace("\n", " ").replace("|", "\\|")
    return f"{verdict.grade}: {note}" if note else verdict.grade
