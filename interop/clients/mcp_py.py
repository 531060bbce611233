"""Drives an MCP server with the official Python SDK and says what it saw, as JSON lines.

    mcp_py.py [--mode auto|legacy] (--stdio CMD ARGS... | --url URL [--token T])

It connects, prints `{"protocol", "server", "tools"}`, and then obeys its
stdin, one JSON object a line; README.md lists the commands and the answers.
"""

import argparse
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any, Literal

import anyio
import anyio.to_thread
import mcp_types as types
from driving import elicit_with, end_with_parent, failure, plain, say
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


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
                command["call"],
                command.get("arguments"),
                progress_callback=progress,
                meta=command.get("meta"),
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


class Handle(types.Result):
    """A call that became a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskRequest(types.Request[dict[str, Any], str]):
    """`tasks/get`, which the SDK does not know."""

    name_param = "taskId"

    method: str
    params: dict[str, Any]


class Tasks(ClientExtension):
    """The Tasks extension: says that there is a handle, and asks for the task until it is over."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self):
        return [ResultClaim(result_type="task", model=Handle, resolve=self.settle)]

    async def settle(self, handle: Handle, context: ClaimContext) -> types.CallToolResult:
        say({"task": plain(handle)})
        try:
            while True:
                seen = await self.ask(context, "tasks/get", handle, Seen)
                if seen.status == "completed":
                    return types.CallToolResult.model_validate(seen.result)
                if seen.status != "working":
                    raise RuntimeError(f"the task is {seen.status}: {plain(seen)}")
                await anyio.sleep(0.1)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.ask(context, "tasks/cancel", handle, types.Result)
            raise

    async def ask(self, context: ClaimContext, method: str, handle: Handle, answer: type) -> Any:
        request = TaskRequest(method=method, params={"taskId": handle.task_id})
        return await context.session.send_request(request, answer)


class Seen(types.Result):
    model_config = {"extra": "allow"}

    status: str
    result: dict[str, Any] | None = None


async def hear(message: Any) -> None:
    if isinstance(message, types.ToolListChangedNotification):
        say({"notification": "tools/list_changed"})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="auto", help="auto, legacy or a protocol version")
    parser.add_argument("--token", help="sent as a bearer token to --url")
    parser.add_argument("--tasks", action="store_true", help="declare the Tasks extension")
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
                elicitation_callback=elicit_with(args.elicit, types),
                extensions=[Tasks()] if args.tasks else None,
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
