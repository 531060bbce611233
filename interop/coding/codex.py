"""Codex: `codex exec` where nobody looks on, in a terminal, or its app server, which is what editors use.

`codex exec` tells nothing of progress, and declines questions by itself.
"""

import json
import re
import subprocess
import threading
from pathlib import Path

from client import KEY, Client, Session
from terminal import DOWN, ENTER

CONFIG = """model = "played"
model_provider = "played"
approval_policy = "{policy}"
check_for_update_on_startup = false

[model_providers.played]
name = "played"
base_url = "{model}/v1"
env_key = "PLAYED_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""
HTTP = """
[mcp_servers.rialto]
url = "{url}"
bearer_token_env_var = "RIALTO_TOKEN"
default_tools_approval_mode = "approve"
"""


class Codex(Client):
    key = "codex"
    title = "Codex"
    package = "@openai/codex"
    environment = "codex"
    about = (
        "It speaks MCP 2025-06-18 and can ask its person, in a terminal and in editors. `default_tools_approval_mode` lets its model call without approval, which `codex exec` needs."
    )
    answers = "a client of its app server answers, as an editor would"
    keys = (DOWN, ENTER)

    def tool(self, name: str) -> str:
        return "mcp__rialto." + re.sub(r"[^a-zA-Z0-9_]", "_", name)

    def configure(self, session: Session) -> Path:
        path = session.home / ".codex/config.toml"
        path.parent.mkdir(parents=True)
        path.write_text(CONFIG.format(model=session.model, policy="on-request" if session.attended else "never"))
        if session.server.transport == "stdio":
            session.server.install("codex", session.home, ".codex/config.toml")
        else:
            path.write_text(path.read_text() + HTTP.format(url=session.server.url))
        more = "required = true\n"  # the rest is as `rialto install` writes it
        if session.patience:
            more += f"tool_timeout_sec = {session.patience}\n"
        path.write_text(path.read_text() + more)
        return path

    def start(self, session: Session, prompt: str) -> None:
        binary = next(path for path in self.installed("@openai").glob("codex-*/vendor/*/bin/codex"))
        env = {"PLAYED_KEY": KEY}
        if session.in_terminal:
            session.start([str(binary), "-c", f'projects."{session.work}".trust_level="trusted"'], env)
            return
        if not session.attended:
            session.start([str(binary), "exec", "--json", "--skip-git-repo-check", prompt], env)
            return
        process = session.start([str(binary), "app-server"], env, subprocess.PIPE)
        threading.Thread(target=Conversation(session, process).hold, args=(prompt,), daemon=True).start()

    def progress(self, session: Session) -> list[str]:
        told = (event for event in session.told() if event.get("method") == "item/mcpToolCall/progress")
        return [event["params"]["message"] for event in told]


class Conversation:
    """One turn with the app server: JSON-RPC, a line each, without `jsonrpc`."""

    def __init__(self, session: Session, process: subprocess.Popen) -> None:
        self.session = session
        self.process = process

    def hold(self, prompt: str) -> None:
        try:
            self._hold(prompt)
        finally:
            self.process.stdin.close()

    def _hold(self, prompt: str) -> None:
        record = (self.session.folder / "stdout").open("ab", buffering=0)
        self._say({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "interop", "version": "1"}}})
        for line in self.process.stdout:
            event = json.loads(line)
            record.write(line)
            if event.get("id") == 1 and "result" in event:
                self._say({"method": "initialized"})
                self._say({"id": 2, "method": "thread/start", "params": {"cwd": str(self.session.work)}})
            elif event.get("id") == 2 and "result" in event:
                said = {"threadId": event["result"]["thread"]["id"], "input": [{"type": "text", "text": prompt}]}
                self._say({"id": 3, "method": "turn/start", "params": said})
            elif event.get("method") == "mcpServer/elicitation/request":
                self._say({"id": event["id"], "result": {"action": "accept", "content": {"colour": "green"}}})
            elif event.get("method") == "turn/completed":
                return

    def _say(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
