"""OpenAI Agents SDK: an `Agent` with an MCP server, run by `Runner`."""

from agents import Agent, OpenAIResponsesModel, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from driver import KEY, PROMPT, Job, serve
from openai import AsyncOpenAI


async def run(job: Job) -> str:
    more = {"client_session_timeout_seconds": job.patience} if job.patience else {}
    if job.transport == "stdio":
        server = MCPServerStdio(params={"command": job.command, "args": job.args}, **more)
    else:
        server = MCPServerStreamableHttp(params={"url": job.url, "headers": job.headers}, **more)
    model = OpenAIResponsesModel("gpt-4.1", AsyncOpenAI(base_url=f"{job.model}/v1", api_key=KEY))
    async with server:
        result = await Runner.run(Agent(name="worker", model=model, mcp_servers=[server]), PROMPT)
    return result.final_output


serve(run)
