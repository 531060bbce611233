"""The frameworks: how each is called, which packages it is, and what its users should know."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS = Path(__file__).parent.parent / "env"


@dataclass(kw_only=True)
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

    @property
    def driver(self) -> str:
        return f"agent_{self.key}.{'mjs' if self.is_node else 'py'}"

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
    Framework(
        key="langchain",
        title="LangChain",
        packages=("langchain", "langchain-mcp-adapters"),
        api=RESPONSES,
        in_ci=True,
        elicits=True,
        about="With `use_responses_api=True`: OpenAI's Chat Completions takes no pictures in tool results.",
    ),
    Framework(
        key="openai_agents",
        title="OpenAI Agents",
        packages=("openai-agents",),
        api=RESPONSES,
        in_ci=True,
        timeout="client_session_timeout_seconds=60",
    ),
    Framework(key="pydantic_ai", title="Pydantic AI", packages=("pydantic-ai-slim",), api=MESSAGES, in_ci=True, elicits=True),
    Framework(
        key="fastmcp",
        title="FastMCP (PyPI)",
        packages=("fastmcp",),
        api=CHAT,
        in_ci=True,
        elicits=True,
        about="A client without agents: the loop is written with OpenAI's SDK.",
    ),
    Framework(key="ai_sdk", title="Vercel AI SDK", packages=("ai", "@ai-sdk/mcp"), api=RESPONSES, in_ci=True, elicits=True),
    Framework(
        key="mcp_use",
        title="mcp-use",
        packages=("mcp-use",),
        api=RESPONSES,
        elicits=True,
        about="With `max_steps=30` (the default of 5 ends a run that makes two calls) and `use_responses_api=True`, like LangChain.",
    ),
    Framework(
        key="autogen",
        title="AutoGen",
        packages=("autogen-agentchat", "autogen-ext"),
        api=CHAT,
        timeout="read_timeout_seconds=60",
        about="With `mcp` 1.30: it cannot be imported with `mcp` 2.",
    ),
    Framework(
        key="crewai",
        title="CrewAI",
        packages=("crewai", "crewai-tools"),
        api=CHAT,
        about="With `MCPServerAdapter`: on Python 3.11 `mcps=[…]` fails over HTTP with any server.",
    ),
    Framework(key="llamaindex", title="LlamaIndex", packages=("llama-index-core", "llama-index-tools-mcp"), api=CHAT),
    Framework(
        key="google_adk",
        title="Google ADK",
        packages=("google-adk",),
        api=GEMINI,
        elicits=True,
        timeout="StdioConnectionParams(timeout=60)",
    ),
    Framework(key="mastra", title="Mastra", packages=("@mastra/core", "@mastra/mcp"), api=RESPONSES, elicits=True),
    Framework(
        key="mcp_client",
        title="mcp-client (npm)",
        packages=("mcp-client",),
        api=CHAT,
        about="By the author of npm's `fastmcp`, which has no client. A client without agents: the loop is written with OpenAI's SDK. "
        "It has no option for headers: the token is added to `fetch`.",
    ),
]
