"""An MCP server of the official Python SDK: on stdin and stdout, or with --port over HTTP."""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "agents"))

import serving
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("py", instructions="Tools to try things with.")


@server.tool()
def py_sum(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool()
def py_say(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
def py_picture() -> Image:
    """Draws something."""
    return Image(data=b"hi", format="png")


@server.tool()
async def py_steps(ctx: Context) -> str:
    """Tells how far it is."""
    for step in (1, 2):
        await ctx.report_progress(step, 2, f"step {step}")
    return "done"


@server.tool()
def py_boom() -> str:
    """Fails."""
    raise ToolError("no luck today")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, help="serve over HTTP; 0 takes a free one")
    args = parser.parse_args()
    if args.port is None:
        server.run("stdio")
        return
    sock, url = serving.bind(args.port)
    serving.serve(server.streamable_http_app(), sock, url)


main()
