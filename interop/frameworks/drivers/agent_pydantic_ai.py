"""Pydantic AI: an `Agent` with an `MCPToolset`."""

from anthropic import AsyncAnthropic
from driver import KEY, PROMPT, Job, serve
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider


async def run(job: Job) -> str:
    async def elicit(*_asked) -> ElicitResult:
        return ElicitResult(action="accept", content=job.answer)

    more = {"elicitation_handler": elicit} if job.answer else {}
    if job.transport == "stdio":
        tools = MCPToolset(StdioTransport(job.command, job.args), **more)
    else:
        tools = MCPToolset(job.url, headers=job.headers, **more)
    provider = AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=job.model, api_key=KEY))
    agent = Agent(AnthropicModel("claude-sonnet-4-5", provider=provider), toolsets=[tools])
    result = await agent.run(PROMPT)
    return result.output


serve(run)
