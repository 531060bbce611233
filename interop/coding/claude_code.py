"""Claude Code: `claude -p`, or in a terminal."""

import json
import re
from pathlib import Path

from client import KEY, Client, Session, with_entry, written
from terminal import DOWN, ENTER, RIGHT

# What a person would choose. A hook may answer in its place, which is how somebody answers here.
ANSWER = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"colour": "green"}}}
HOOKS = {
    "Elicitation": [
        {"matcher": "rialto", "hooks": [{"type": "command", "command": f"cat >/dev/null; echo '{json.dumps(ANSWER)}'"}]}
    ]
}


class ClaudeCode(Client):
    key = "claude-code"
    title = "Claude Code"
    package = "@anthropic-ai/claude-code"
    environment = "claude_code"
    about = (
        "It speaks MCP 2026-07-28, can ask its person, and in a terminal takes long calls as MCP tasks. Tools are named to its model "
        "first, which then looks for those that it needs (`ENABLE_TOOL_SEARCH=false` offers all at once)."
    )
    answers = "a hook answers in its person's place"
    keys = (RIGHT, DOWN, ENTER, ENTER)
    more = f"""In `~/.claude/settings.json`: tools that need no approval, and a hook that answers agents' questions where no person can (in a
terminal there is a dialogue):

```json
{json.dumps({"permissions": {"allow": ["mcp__rialto"]}, "hooks": HOOKS}, indent=2)}
```"""

    def tool(self, name: str) -> str:
        return "mcp__rialto__" + re.sub(r"[^a-zA-Z0-9_-]", "_", name)

    def configure(self, session: Session) -> Path:
        settings = {"env": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, "permissions": {"allow": ["mcp__rialto"]}}
        if session.attended and not session.in_terminal:
            settings["hooks"] = HOOKS
        written(session.home / ".claude/settings.json", settings)
        # What it would ask a newcomer.
        known = {"hasTrustDialogAccepted": True}
        begun = {"customApiKeyResponses": {"approved": [KEY]}, "projects": {str(session.work): known}}
        path = written(session.home / ".claude.json", {"hasCompletedOnboarding": True, "theme": "dark"} | begun)
        if session.server.transport == "stdio":
            return session.server.install("claude-code", session.home, ".claude.json")
        headers = {"Authorization": "Bearer ${RIALTO_TOKEN}"}
        return with_entry(path, {"type": "http", "url": session.server.url, "headers": headers})

    def start(self, session: Session, prompt: str) -> None:
        binary = next(path for path in self.installed("@anthropic-ai").glob("claude-code-*/claude"))
        env = {"ANTHROPIC_BASE_URL": session.model, "ANTHROPIC_API_KEY": KEY, "DISABLE_AUTOUPDATER": "1"}
        if session.patience:
            env["MCP_TOOL_TIMEOUT"] = str(session.patience * 1000)
        alone = [] if session.in_terminal else ["-p", prompt, "--output-format", "stream-json", "--verbose"]
        session.start([str(binary), *alone], env)
