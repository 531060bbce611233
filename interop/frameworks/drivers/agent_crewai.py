"""CrewAI: an `Agent` in a `Crew`, with the tools of an `MCPServerAdapter`.

Not with the agent's `mcps`: on Python 3.11 that fails over HTTP with any server, because CrewAI leaves a cancel scope in another task than it
entered it in.
"""

from crewai import LLM, Agent, Crew, Task
from crewai_tools import MCPServerAdapter
from driver import KEY, PROMPT, Job, serve
from mcp import StdioServerParameters


def run(job: Job) -> str:
    if job.transport == "stdio":
        server = StdioServerParameters(command=job.command, args=job.args)
    else:
        server = {"url": job.url, "transport": "streamable-http", "headers": job.headers}
    model = LLM(model="openai/gpt-4.1", base_url=f"{job.model}/v1", api_key=KEY)
    with MCPServerAdapter(server) as tools:
        agent = Agent(role="worker", goal="do the work", backstory="You work with tools.", llm=model, tools=list(tools))
        task = Task(description=PROMPT, expected_output="the result", agent=agent)
        return Crew(agents=[agent], tasks=[task]).kickoff().raw


serve(run)
