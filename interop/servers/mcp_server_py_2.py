"""An MCP server of 2026-07-28 on the official Python SDK, mcp 2.3.0: the tools of mcp_server_py_1.py, and one that is a task.

    mcp_server_py_2.py PREFIX FILE
"""

from datetime import datetime, timezone
from typing import Any

import anyio
import mcp_types as types
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, MCPServer
from offered import LOGIN_URL, PIXEL, PREFIX, REPORT_URL, SOUND, called_off, hear, offer, shown

FORM = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
about = {name: text for name, text, _ in offer()}


def question(message: str = "which colour?") -> types.ElicitRequest:
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=FORM)
    )


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class Tasks(Extension):
    """`later` as a task of the Tasks extension: it asks, and is done once it was answered."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.answers: dict[str, str | None] = {}

    def methods(self):
        return [
            MethodBinding("tasks/get", TaskParams, self.get),
            MethodBinding("tasks/update", TaskParams, self.update),
            MethodBinding("tasks/cancel", TaskParams, self.cancel),
        ]

    async def intercept_tool_call(self, params, ctx, call_next):
        if params.name != f"{PREFIX}_later":
            return await call_next(ctx)
        hear((ctx.meta or {}).get("traceparent"))
        id = f"later-{len(self.answers)}"
        self.answers[id] = None
        return {"resultType": "task", **self.seen(id, "working")}

    def seen(self, id: str, status: str) -> dict[str, Any]:
        now = datetime.now(timezone.utc).isoformat()
        stamps = {"createdAt": now, "lastUpdatedAt": now}
        return {"taskId": id, "status": status, "ttlMs": 60000, "pollIntervalMs": 100, **stamps}

    async def get(self, ctx, params):
        answer = self.answers[params.task_id]
        if answer is None:
            asked = {"colour": question().model_dump(mode="json", by_alias=True, exclude_none=True)}
            return {**self.seen(params.task_id, "input_required"), "inputRequests": asked}
        result = {"content": [{"type": "text", "text": answer}]}
        return {**self.seen(params.task_id, "completed"), "result": result}

    async def update(self, ctx, params):
        said = (params.input_responses or {})["colour"]
        self.answers[params.task_id] = shown("chose", said["action"], said.get("content"))
        return {}

    async def cancel(self, ctx, params):
        called_off()
        return {}


server = MCPServer(PREFIX, extensions=[Tasks()])


def tool(run):
    """The tool of that name."""
    name = run.__name__
    return server.tool(name=f"{PREFIX}_{name}", description=about[name], structured_output=False)(run)


def hear_of(ctx: Context) -> None:
    hear((ctx.request_context.meta or {}).get("traceparent"))


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


@tool
async def data(value: dict[str, Any], ctx: Context) -> types.CallToolResult:
    hear_of(ctx)
    return types.CallToolResult(content=[text("see the data")], structured_content=value)


@tool
async def media(ctx: Context) -> types.CallToolResult:
    hear_of(ctx)
    note = types.TextResourceContents(uri="file:///note.txt", mime_type="text/plain", text="a note")
    blocks = [
        text("here are the files"),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.AudioContent(data=SOUND, mime_type="audio/wav"),
        types.EmbeddedResource(resource=note),
        types.ResourceLink(uri=REPORT_URL, name="report.pdf", mime_type="application/pdf"),
    ]
    return types.CallToolResult(content=blocks)


@tool
async def steps(ctx: Context) -> str:
    hear_of(ctx)
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}/3")
        await anyio.sleep(0.1)
    return "done"


@tool
async def slow(ctx: Context, seconds: float = 60) -> str:
    hear_of(ctx)
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        called_off()
        raise
    return "done at last"


@tool
async def ask(ctx: Context) -> types.CallToolResult | types.InputRequiredResult:
    hear_of(ctx)
    if not ctx.input_responses:
        return types.InputRequiredResult(input_requests={"colour": question()})
    said = ctx.input_responses["colour"]
    return types.CallToolResult(content=[text(shown("chose", said.action, said.content))])


@tool
async def login(ctx: Context) -> types.CallToolResult | types.InputRequiredResult:
    hear_of(ctx)
    if not ctx.input_responses:
        wanted = types.ElicitRequestURLParams(
            message=f"please sign in at {LOGIN_URL}", url=LOGIN_URL, elicitation_id="login-1"
        )
        request = types.ElicitRequest(params=wanted)
        return types.InputRequiredResult(input_requests={"login": request})
    said = ctx.input_responses["login"]
    return types.CallToolResult(content=[text(shown("signed in", said.action, None))])


@tool
async def later() -> str:
    return "a client without the Tasks extension has it at once"


server.run("stdio")
