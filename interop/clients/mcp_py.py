"""Drives an MCP server with the official Python SDK and says what it saw, as JSON lines.

    mcp_py.py [--mode auto|legacy] (--stdio CMD ARGS... | --url URL [--token T])

It connects, prints `{"protocol", "server", "tools"}`, and then obeys its
stdin, one JSON object a line; README.md lists the commands and the answers.
"""

import argparse
import json
import os
import sys
import threading
import time
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError


class Driver:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls: dict[Any, anyio.CancelScope] = {}

    async def obey(self) -> None:
        """Runs the commands until stdin ends and the last call has been answered."""
        async with anyio.create_task_group() as beside:
            while line := await anyio.to_thread.run_sync(sys.stdin.readline):
                if not line.strip():
                    continue
                command = json.loads(line)
                if "cancel" in command:
                    self.calls[command["cancel"]].cancel()
                elif "id" in command:
                    beside.start_soon(self.run, command)
                    await anyio.lowlevel.checkpoint()
                else:
                    await self.run(command)

    async def run(self, command: dict[str, Any]) -> None:
        tag = {"id": command["id"]} if "id" in command else {}
        with anyio.CancelScope() as scope:
            self.calls[command.get("id")] = scope
            say(tag | await self.answer(command, tag))
        if scope.cancelled_caught:
            say(tag | {"cancelled": True})

    async def answer(self, command: dict[str, Any], tag: dict[str, Any]) -> dict[str, Any]:
        async def progress(progress: float, total: float | None, message: str | None) -> None:
            told = {"progress": progress, "total": total, "message": message}
            say(tag | {"progress": {k: v for k, v in told.items() if v is not None}})

        try:
            if "list" in command:
                return {"tools": await self.tools()}
            called = await self.client.call_tool(
                command["call"], command.get("arguments"), progress_callback=progress
            )
            return {"result": plain(called)}
        except Exception as error:
            return failure(error)

    async def tools(self) -> list[dict[str, Any]]:
        tools, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += [plain(tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return tools

    async def listen(self, listening: anyio.Event) -> None:
        """Asks a modern server for changes; both eras' changes then reach `hear`."""
        tools = self.client.server_capabilities.tools
        try:
            if self.client.protocol_version < "2026-07-28" or not (tools and tools.list_changed):
                return
            async with self.client.listen(tools_list_changed=True) as subscription:
                listening.set()
                async for _ in subscription:
                    pass
        except Exception as error:
            print(f"the subscription ended: {error}", file=sys.stderr)
        finally:
            listening.set()


async def hear(message: Any) -> None:
    if isinstance(message, types.ToolListChangedNotification):
        say({"notification": "tools/list_changed"})


def elicit_with(answer: dict[str, Any] | None):
    """A callback that prints what the server asks and gives the answer from --elicit."""
    if answer is None:
        return None

    async def elicit(_context: Any, params: Any) -> types.ElicitResult:
        say({"elicitation": plain(params)})
        return types.ElicitResult.model_validate(answer)

    return elicit


def failure(error: BaseException) -> dict[str, Any]:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return {"error": plain(error.error)}
    # the SDK's own complaint about what the server sent
    return {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)


def end_with_parent() -> None:
    """A dead parent leaves no client behind, even one that waits for an answer."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="auto", help="auto, legacy or a protocol version")
    parser.add_argument("--token", help="sent as a bearer token to --url")
    parser.add_argument("--elicit", type=json.loads, help="the JSON answer to every elicitation")
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--url")
    server.add_argument("--stdio", nargs=argparse.REMAINDER)
    return parser.parse_args()


async def main() -> None:
    args = parse()
    end_with_parent()
    async with AsyncExitStack() as stack:
        if args.stdio:
            command, *rest = args.stdio
            server = StdioServerParameters(command=command, args=rest, env=dict(os.environ))
        else:
            headers = {"authorization": f"Bearer {args.token}"} if args.token else None
            http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
            server = streamable_http_client(args.url, http_client=http)
        client = await stack.enter_async_context(
            Client(
                server,
                mode=args.mode,
                message_handler=hear,
                elicitation_callback=elicit_with(args.elicit),
            )
        )
        driver = Driver(client)
        about = client.server_info
        say(
            {
                "protocol": client.protocol_version,
                "server": about and plain(about),
                "tools": await driver.tools(),
            }
        )
        async with anyio.create_task_group() as background:
            listening = anyio.Event()
            background.start_soon(driver.listen, listening)
            await listening.wait()
            await driver.obey()
            background.cancel_scope.cancel()


if __name__ == "__main__":
    try:
        anyio.run(main)
    except Exception as error:
        say(failure(error))
        sys.exit(1)
