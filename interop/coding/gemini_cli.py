"""Gemini CLI: `gemini -p`, or in a terminal."""

import os
import re
from pathlib import Path

from client import HOME, KEY, Client, Session, with_entry, written


class GeminiCli(Client):
    key = "gemini-cli"
    title = "Gemini CLI"
    package = "@google/gemini-cli"
    environment = "gemini_cli"
    about = "It speaks MCP 2025-06-18 and cannot ask its person. `trust` lets its model call without approval."

    def tool(self, name: str) -> str:
        return "mcp_rialto_" + re.sub(r"[^a-zA-Z0-9_.:-]", "_", name)

    def configure(self, session: Session) -> Path:
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }
        path = written(session.home / ".gemini/settings.json", settings)
        if session.server.transport == "stdio":
            session.server.install("gemini", session.home, ".gemini/settings.json")
        else:
            with_entry(path, {"httpUrl": session.server.url, "headers": {"Authorization": "Bearer $RIALTO_TOKEN"}})
        patience = {"timeout": session.patience * 1000} if session.patience else {}
        return with_entry(path, {"trust": True} | patience)

    def start(self, session: Session, prompt: str) -> None:
        script = self.installed("@google/gemini-cli/bundle/gemini.js")
        node = next((path for path in (HOME / "node/node_modules").glob("*/bin/node") if os.access(path, os.X_OK)), "node")
        env = {"GOOGLE_GEMINI_BASE_URL": session.model, "GEMINI_API_KEY": KEY}
        alone = [] if session.in_terminal else ["-p", prompt, "-o", "stream-json"]
        session.start([str(node), str(script), *alone, "--skip-trust", "-m", "gemini-2.5-flash"], env)
