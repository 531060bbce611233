"""LangChain: `create_agent` with the tools of langchain-mcp-adapters."""

from driver import KEY, PROMPT, Job, serve
from langchain.agents import create_agent
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult


async def run(job: Job) -> str:
    if job.transport == "stdio":
        server = {"transport": "stdio", "command": job.command, "args": job.args}
    else:
        server = {"transport": "streamable_http", "url": job.url, "headers": job.headers}

    async def elicit(*_asked) -> ElicitResult:
        return ElicitResult(action="accept", content=job.answer)

    callbacks = Callbacks(on_elicitation=elicit) if job.answer else None
    client = MultiServerMCPClient({"rialto": server}, callbacks=callbacks)
    # The Responses API takes pictures in tool results; Chat Completions does not.
    model = ChatOpenAI(model="gpt-4.1", base_url=f"{job.model}/v1", api_key=KEY, use_responses_api=True)
    agent = create_agent(model, await client.get_tools())
    state = await agent.ainvoke({"messages": [{"role": "user", "content": PROMPT}]})
    return state["messages"][-1].text


serve(run)
