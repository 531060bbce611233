"""mcp-use: an `MCPAgent` with a LangChain model."""

from driver import KEY, PROMPT, Job, serve
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult
from mcp_use import MCPAgent, MCPClient


async def run(job: Job) -> str:
    if job.transport == "stdio":
        server = {"command": job.command, "args": job.args}
    else:
        server = {"url": job.url, "headers": job.headers}

    async def elicit(*_asked) -> ElicitResult:
        return ElicitResult(action="accept", content=job.answer)

    client = MCPClient({"mcpServers": {"rialto": server}}, elicitation_callback=elicit if job.answer else None)
    # The Responses API takes pictures in tool results; Chat Completions does not.
    model = ChatOpenAI(model="gpt-4.1", base_url=f"{job.model}/v1", api_key=KEY, use_responses_api=True)
    agent = MCPAgent(llm=model, client=client, max_steps=30)
    try:
        return await agent.run(PROMPT)
    finally:
        await client.close_all_sessions()


serve(run)
