"""An MCP server on a Python SDK of its time: mcp 1.7 (2024-11-05), 1.9 (2025-03-26), 1.12 (2025-06-18), 1.30 (2025-11-25).

    mcp_server_py_1.py PREFIX FILE

It serves stdin and stdout, and tells FILE what it heard. Each tool does one thing that has to cross a bridge; what a version cannot say, its server does not
offer. `mcp_server_py_2.py` is the same for 2026-07-28.
"""

import json

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from offered import LOGIN_URL, PIXEL, PREFIX, REPORT_URL, SOUND, called_off, hear, offer, shown

server = Server(PREFIX)

has = lambda name: hasattr(types, name)  # noqa: E731


def form() -> dict:
    return {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "A colour"}},
        "required": ["answer"],
    }


@server.list_tools()
async def tools() -> list[types.Tool]:
    can = {"media": True, "data": True, "steps": True, "slow": True}
    can["ask"] = has("ElicitRequest")
    can["login"] = has("ElicitRequestURLParams")
    return [
        types.Tool(name=f"{PREFIX}_{name}", description=text, inputSchema=schema)
        for name, text, schema in offer()
        if can.get(name)
    ]


@server.call_tool()
async def call(name: str, arguments: dict):
    context = server.request_context
    what = name.removeprefix(f"{PREFIX}_")
    hear(getattr(context.meta, "traceparent", None))
    return await globals()[f"do_{what}"](context, arguments)


async def do_data(context, arguments):
    value = arguments["value"]
    # Until 2025-03-26 there is no structured content: a server says its JSON in words.
    if "structuredContent" in types.CallToolResult.model_fields:
        return [types.TextContent(type="text", text="see the data")], value
    return [types.TextContent(type="text", text=json.dumps(value))]


async def do_media(context, arguments):
    blocks = [
        types.TextContent(type="text", text="here are the files"),
        types.ImageContent(type="image", data=PIXEL, mimeType="image/png"),
    ]
    if has("AudioContent"):
        blocks.append(types.AudioContent(type="audio", data=SOUND, mimeType="audio/wav"))
    note = types.TextResourceContents(uri="file:///note.txt", mimeType="text/plain", text="a note")
    blocks.append(types.EmbeddedResource(type="resource", resource=note))
    if has("ResourceLink"):
        link = {"uri": REPORT_URL, "name": "report.pdf", "mimeType": "application/pdf"}
        blocks.append(types.ResourceLink(type="resource_link", **link))
    return blocks


async def do_steps(context, arguments):
    token = context.meta and context.meta.progressToken
    for step in (1, 2, 3):
        if token is not None:
            await report(context, token, step)
        await anyio.sleep(0.1)
    return [types.TextContent(type="text", text="done")]


async def report(context, token, step) -> None:
    params = {"progressToken": token, "progress": step, "total": 3}
    if "message" in types.ProgressNotificationParams.model_fields:
        params["message"] = f"step {step}/3"
    told = types.ProgressNotification(
        method="notifications/progress", params=types.ProgressNotificationParams(**params)
    )
    await context.session.send_notification(types.ServerNotification(told))


async def do_slow(context, arguments):
    try:
        await anyio.sleep(arguments.get("seconds", 60))
    except anyio.get_cancelled_exc_class():
        called_off()
        # mcp 1.9 and older end their session with a call that ends by being called off: this one goes on, unheard.
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()
    return [types.TextContent(type="text", text="done at last")]


async def do_ask(context, arguments):
    answer = await context.session.elicit("which colour?", form(), context.request_id)
    return [types.TextContent(type="text", text=shown("chose", answer.action, answer.content))]


async def do_login(context, arguments):
    answer = await context.session.elicit_url(
        f"please sign in at {LOGIN_URL}", LOGIN_URL, "login-1", context.request_id
    )
    return [types.TextContent(type="text", text=shown("signed in", answer.action, None))]


async def main() -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
