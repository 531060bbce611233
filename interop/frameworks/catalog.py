"""The frameworks: how each is called, which packages it is, and what its users should know."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS = Path(__file__).parent.parent / "env"


@dataclass
class Framework:
    key: str
    title: str
    packages: tuple[str, ...]  # whose versions the page names, the framework's MCP part last
    api: str  # the model API that it talks to here
    in_ci: bool = False
    elicits: bool = False  # whether its users can declare elicitation
    timeout: str = ""  # how its users wait longer for a tool than by default
    about: str = ""

    @property
    def environment(self) -> str:
        return f"fw_{self.key}"

    @property
    def is_node(self) -> bool:
        return (ENVIRONMENTS / self.environment).is_dir()

    def versions(self) -> list[str]:
        """`name version` of each package, as pinned."""
        if self.is_node:
            pins = json.loads((ENVIRONMENTS / self.environment / "package.json").read_text())["dependencies"]
        else:
            text = (ENVIRONMENTS / f"{self.environment}.txt").read_text()
            pins = dict(re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)", text))
        return [f"`{name}` {pins[name]}" for name in self.packages]


CHAT, RESPONSES, MESSAGES, GEMINI = "OpenAI Chat Completions", "OpenAI Responses", "Anthropic Messages", "Gemini generateContent"
FRAMEWORKS = [
    Framework("langchain", "LangChain", ("langchain", "langchain-mcp-adapters"), RESPONSES, in_ci=True, elicits=True),
    Framework("openai_agents", "OpenAI Agents", ("openai-agents",), RESPONSES, in_ci=True, timeout="client_session_timeout_seconds=60"),
    Framework("pydantic_ai", "Pydantic AI", ("pydantic-ai-slim",), MESSAGES, in_ci=True, elicits=True),
    Framework("fastmcp", "FastMCP (PyPI)", ("fastmcp",), CHAT, in_ci=True, elicits=True),
    Framework("ai_sdk", "Vercel AI SDK", ("ai", "@ai-sdk/mcp"), RESPONSES, in_ci=True, elicits=True),
    Framework("mcp_use", "mcp-use", ("mcp-use",), RESPONSES, elicits=True),
    Framework("autogen", "AutoGen", ("autogen-agentchat", "autogen-ext"), CHAT, timeout="read_timeout_seconds=60"),
    Framework("crewai", "CrewAI", ("crewai", "crewai-tools"), CHAT),
    Framework("llamaindex", "LlamaIndex", ("llama-index-core", "llama-index-tools-mcp"), CHAT),
    Framework("google_adk", "Google ADK", ("google-adk",), GEMINI, elicits=True, timeout="StdioConnectionParams(timeout=60)"),
    Framework("mastra", "Mastra", ("@mastra/core", "@mastra/mcp"), RESPONSES, elicits=True),
    Framework("mcp_client", "mcp-client (npm)", ("mcp-client",), CHAT),
]
