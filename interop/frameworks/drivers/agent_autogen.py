"""AutoGen: an `AssistantAgent` with an `McpWorkbench`."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams
from driver import KEY, PROMPT, Job, serve


async def run(job: Job) -> str:
    if job.transport == "stdio":
        more = {"read_timeout_seconds": job.patience} if job.patience else {}
        server = StdioServerParams(command=job.command, args=job.args, **more)
    else:
        server = StreamableHttpServerParams(url=job.url, headers=job.headers)
    model = OpenAIChatCompletionClient(model="gpt-4.1", base_url=f"{job.model}/v1", api_key=KEY)
    async with McpWorkbench(server) as workbench:
        agent = AssistantAgent("worker", model_client=model, workbench=workbench, max_tool_iterations=10, reflect_on_tool_use=True)
        result = await agent.run(task=PROMPT)
    return result.messages[-1].content


serve(run)
