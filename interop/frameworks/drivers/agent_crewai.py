"""CrewAI: an `Agent` in a `Crew`, with an MCP server in its `mcps`."""

from crewai import LLM, Agent, Crew, Task
from crewai.mcp import MCPServerHTTP, MCPServerStdio
from driver import KEY, PROMPT, Job, serve


def run(job: Job) -> str:
    if job.transport == "stdio":
        server = MCPServerStdio(command=job.command, args=job.args)
    else:
        server = MCPServerHTTP(url=job.url, headers=job.headers)
    model = LLM(model="openai/gpt-4.1", base_url=f"{job.model}/v1", api_key=KEY)
    agent = Agent(role="worker", goal="do the work", backstory="You work with tools.", llm=model, mcps=[server])
    task = Task(description=PROMPT, expected_output="what came of it", agent=agent)
    return Crew(agents=[agent], tasks=[task]).kickoff().raw


serve(run)
