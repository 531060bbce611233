"""FastMCP for Python has a client and no agents: the loop with OpenAI's own SDK is what its documentation shows."""

import json

from driver import KEY, PROMPT, Job, serve
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from openai import AsyncOpenAI


async def run(job: Job) -> str:
    async def elicit(*_asked) -> ElicitResult:
        return ElicitResult(action="accept", content=job.answer)

    if job.transport == "stdio":
        transport = StdioTransport(job.command, job.args)
    else:
        transport = StreamableHttpTransport(job.url, headers=job.headers)
    more = {"elicitation_handler": elicit} if job.answer else {}
    async with Client(transport, **more) as client:
        return await converse(client, AsyncOpenAI(base_url=f"{job.model}/v1", api_key=KEY))


async def converse(client: Client, model: AsyncOpenAI) -> str:
    tools = [
        {"type": "function", "function": {"name": tool.name, "description": tool.description or "", "parameters": schema(tool)}}
        for tool in await client.list_tools()
    ]
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        completion = await model.chat.completions.create(model="gpt-4.1", messages=messages, tools=tools)
        said = completion.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            result = await client.call_tool(call.function.name, json.loads(call.function.arguments), raise_on_error=False)
            messages += told(call.id, result.content)


def schema(tool) -> dict:
    return getattr(tool, "inputSchema", None) or tool.input_schema


def told(call: str, content: list) -> list[dict]:
    """A tool's result; its pictures follow as the user's, because the API takes them nowhere else."""
    text = "\n".join(block.text for block in content if block.type == "text")
    pictures = [block for block in content if block.type == "image"]
    messages = [{"role": "tool", "tool_call_id": call, "content": text}]
    if pictures:
        messages.append({"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(one)}} for one in pictures]})
    return messages


def data_url(block) -> str:
    kind = getattr(block, "mimeType", None) or block.mime_type
    return f"data:{kind};base64,{block.data}"


serve(run)
