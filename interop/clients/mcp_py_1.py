"""Drives an MCP server with a Python SDK of its time: mcp 1.7 (2024-11-05), 1.9, 1.12 or 1.30 (2025-11-25).

    mcp_py_1.py [--elicit JSON] (--stdio CMD ARGS... | --url URL [--token T])

The arguments, the commands on stdin and the lines on stdout are those of mcp_py.py.
"""

import argparse
import inspect
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.to_thread
import mcp.types as types
from driving import elicit_with, end_with_parent, failure, plain, say
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


class Driver:
    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.calls: dict[Any, tuple[int, anyio.CancelScope]] = {}
        self.tags: dict[str, dict[str, Any]] = {}

    async def obey(self) -> None:
        """Runs the commands until stdin ends and the last call has been answered."""
        async with anyio.create_task_group() as beside:
            while line := await anyio.to_thread.run_sync(sys.stdin.readline):
                command = json.loads(line)
                if "cancel" in command:
                    await self.cancel(command["cancel"])
                elif "id" in command:
                    beside.start_soon(self.run, command)
                    await anyio.lowlevel.checkpoint()
                else:
                    await self.run(command)

    async def run(self, command: dict[str, Any]) -> None:
        tag = {"id": command["id"]} if "id" in command else {}
        with anyio.CancelScope() as scope:
            try:
                said = await self.answer(command, tag, scope)
            except Exception as error:
                said = failure(error)
            say(tag | said)

    async def answer(
        self, command: dict[str, Any], tag: dict[str, Any], scope: anyio.CancelScope
    ) -> dict[str, Any]:
        if "list" in command:
            return {"tools": await self.tools()}
        token = f"token-{self.session._request_id}"
        self.tags[token] = tag
        self.calls[command.get("id")] = (self.session._request_id, scope)
        meta = types.RequestParams.Meta(progressToken=token, **command.get("meta", {}))
        params = types.CallToolRequestParams(
            name=command["call"], arguments=command.get("arguments"), _meta=meta
        )
        request = types.CallToolRequest(method="tools/call", params=params)
        called = await self.session.send_request(types.ClientRequest(request), types.CallToolResult)
        return {"result": plain(called)}

    async def cancel(self, id: Any) -> None:
        """These SDKs have no call for it: the notification is all there is."""
        request, scope = self.calls.pop(id)
        params = types.CancelledNotificationParams(requestId=request)
        told = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(told))
        scope.cancel()
        say({"id": id, "cancelled": True})

    async def tools(self) -> list[dict[str, Any]]:
        tools, cursor = [], None
        while True:
            page = await (self.session.list_tools(cursor) if cursor else self.session.list_tools())
            tools += [plain(tool) for tool in page.tools]
            cursor = page.nextCursor
            if cursor is None:
                return tools

    async def hear(self, message: Any) -> None:
        told = getattr(message, "root", message)
        if isinstance(told, types.ToolListChangedNotification):
            say({"notification": "tools/list_changed"})
        if isinstance(told, types.ProgressNotification):
            seen = told.params.model_dump(mode="json", exclude_none=True)
            tag = self.tags.get(seen.pop("progressToken"), {})
            say(tag | {"progress": seen})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", help="there is one: what the SDK speaks")
    parser.add_argument("--token", help="sent as a bearer token to --url")
    parser.add_argument("--elicit", type=json.loads, help="the JSON answer to every elicitation")
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--url")
    server.add_argument("--stdio", nargs=argparse.REMAINDER)
    return parser.parse_args()


async def connect(args: argparse.Namespace, stack: AsyncExitStack) -> ClientSession:
    if args.stdio:
        command, *rest = args.stdio
        parameters = StdioServerParameters(command=command, args=rest, env=dict(os.environ))
        streams = await stack.enter_async_context(stdio_client(parameters))
    else:
        from mcp.client.streamable_http import streamablehttp_client  # 2024-11-05 has none

        headers = {"authorization": f"Bearer {args.token}"} if args.token else None
        opened = await stack.enter_async_context(streamablehttp_client(args.url, headers=headers))
        streams = opened[:2]
    told: list[Driver] = []

    async def hear(message: Any) -> None:
        if told:
            await told[0].hear(message)

    more = {"message_handler": hear}
    if args.elicit and "elicitation_callback" in inspect.signature(ClientSession).parameters:
        more["elicitation_callback"] = elicit_with(args.elicit, types)
    session = await stack.enter_async_context(ClientSession(*streams, **more))
    greeted = await session.initialize()
    told.append(Driver(session))
    tools = await told[0].tools()
    say({"protocol": greeted.protocolVersion, "server": plain(greeted.serverInfo), "tools": tools})
    return told[0]


async def main() -> None:
    args = parse()
    end_with_parent()
    async with AsyncExitStack() as stack:
        await (await connect(args, stack)).obey()


if __name__ == "__main__":
    try:
        anyio.run(main)
    except Exception as error:
        say(failure(error))
        sys.exit(1)
