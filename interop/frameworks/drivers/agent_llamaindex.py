"""LlamaIndex: a `FunctionAgent` with the tools of an `McpToolSpec`."""

from driver import KEY, PROMPT, Job, serve
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def run(job: Job) -> str:
    if job.transport == "stdio":
        client = BasicMCPClient(job.command, args=job.args)
    else:
        client = BasicMCPClient(job.url, headers=job.headers)
    tools = await McpToolSpec(client=client).to_tool_list_async()
    model = OpenAI(model="gpt-4.1", api_base=f"{job.model}/v1", api_key=KEY)
    return str(await FunctionAgent(tools=tools, llm=model).run(PROMPT))


serve(run)
