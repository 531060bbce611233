"""An MCP server on a Python SDK of its time: mcp 1.7 (2024-11-05), 1.9 (2025-03-26), 1.12 (2025-06-18), 1.30 (2025-11-25).

    mcp_server_py_1.py PREFIX FILE [--port N]

It serves stdin and stdout or, with --port, the HTTP+SSE transport at /sse, and tells FILE what it heard. Each tool does one thing that has to cross a bridge; what a version cannot say, its server does not
offer. `mcp_server_py_2.py` is the same for 2026-07-28.
"""

import json
import os
import sys

import anyio
import mcp.types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from offered import LOGIN_URL, PIXEL, PREFIX, REPORT_URL, SOUND, called_off, hear, offer, shown

server = Server(PREFIX)

# Tools that a call of `grow` has added; only a server over HTTP+SSE has that tool.
grown: list[str] = []

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
    listed = [each for each in offer() if can.get(each[0])]
    if port() is not None:
        nothing = {"type": "object"}
        listed += [(name, "A tool of this transport's.", nothing) for name in ("grow", *grown)]
    return [
        types.Tool(name=f"{PREFIX}_{name}", description=text, inputSchema=schema)
        for name, text, schema in listed
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


async def do_grow(context, arguments):
    grown.append("grown")
    await context.session.send_tool_list_changed()
    return [types.TextContent(type="text", text="there is one more")]


async def do_grown(context, arguments):
    return [types.TextContent(type="text", text="the new one")]


def port() -> int | None:
    return int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else None


async def run(reading, writing) -> None:
    changing = NotificationOptions(tools_changed=port() is not None)
    await server.run(reading, writing, server.create_initialization_options(changing))


async def over_stdio() -> None:
    async with stdio_server() as (reading, writing):
        await run(reading, writing)


def over_sse(port: int) -> None:
    """As the SDK's own documentation has it; nothing but HTTP+SSE is served."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "agents"))
    import serving
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def handle(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
            await run(reading, writing)
        return Response()

    routes = [Route("/sse", handle, methods=["GET"]), Mount("/messages/", transport.handle_post_message)]
    sock, url = serving.bind(port)
    serving.serve(Starlette(routes=routes), sock, url)


if (at := port()) is None:
    anyio.run(over_stdio)
else:
    over_sse(at)
