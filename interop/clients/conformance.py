"""Rialto as the client that the MCP conformance suite tests: `conformance.py URL`.

The suite starts a server, and this program with its URL. Here that server is one of Rialto's (`[[mcp_servers]]`): `rialto serve` is started in
front of it, and whatever the scenario wants to be called is called at Rialto's own MCP door, by a client that can do next to nothing
itself. What the suite's server sees is Rialto's. RIALTO names the program.

MCP_CONFORMANCE_SCENARIO is the scenario's name, MCP_CONFORMANCE_CONTEXT what it wants to be called with, if it says so.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "conformance-driver", "version": "1"},
}
# A value for an argument that nobody gave one for.
EXAMPLES = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}


class Door:
    """Rialto's MCP door."""

    def __init__(self, url: str):
        self.url = url

    def ask(self, method: str, **params) -> dict:
        """One request; its result, or what went wrong with it."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        for name, value in mirrored(params):
            headers[name] = value
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        try:
            answer = urllib.request.urlopen(request, timeout=25).read()
        except urllib.error.HTTPError as error:
            answer = error.read()
        said = [line[6:] for line in answer.decode().splitlines() if line.startswith("data: ")]
        message = json.loads(said[-1] if said else answer)
        return message.get("result") or message

    def tools(self) -> list[dict]:
        """The tools of the suite's server."""
        listed = self.ask("tools/list").get("tools", [])
        return [tool for tool in listed if "rialto/canonical" in tool.get("_meta", {})]

    def call(self, name: str, arguments: dict) -> dict:
        """Calls a tool. Every question is accepted without filling anything in but what must be."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        while result.get("resultType") == "input_required":
            answers = {key: accepted(request) for key, request in result["inputRequests"].items()}
            more = {"inputResponses": answers, "requestState": result["requestState"]}
            result = self.ask("tools/call", name=name, arguments=arguments, **more)
        print(f"{name}: {json.dumps(result)[:400]}")
        return result


def accepted(request: dict) -> dict:
    form = request["params"].get("requestedSchema", {})
    members = form.get("properties", {})
    return {"action": "accept", "content": {name: example(members[name]) for name in form.get("required", [])}}


def example(schema: dict):
    return EXAMPLES.get(schema.get("type"), "x")


def fitting(schema: dict) -> dict:
    members = schema.get("properties", {})
    return {name: example(members.get(name, {})) for name in schema.get("required", [])}


# What Rialto wants to see in headers, because the tools say so. Filled when they are listed.
HEADERS: dict[str, dict[str, str]] = {}


def mirrored(params: dict):
    import base64

    for argument, header in HEADERS.get(params.get("name", ""), {}).items():
        value = params.get("arguments", {}).get(argument)
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        if re.fullmatch(r"[!-~]([ -~]*[!-~])?", text) is None:
            text = "=?base64?" + base64.b64encode(text.encode()).decode() + "?="
        yield f"Mcp-Param-{header}", text


def learn(tools: list[dict]) -> None:
    for tool in tools:
        members = tool["inputSchema"].get("properties", {})
        HEADERS[tool["name"]] = {
            name: schema["x-mcp-header"] for name, schema in members.items() if "x-mcp-header" in schema
        }


def play(door: Door, scenario: str, context: dict, tools: list[dict]) -> None:
    """Does what a scenario wants to see done."""
    named = {tool["_meta"]["rialto/canonical"].split(".")[-1]: tool for tool in tools}
    if "toolCalls" in context:
        for call in context["toolCalls"]:
            # Rialto refuses arguments that a tool's schema does not allow, and none of these may be null: it is not there.
            given = {name: value for name, value in call["arguments"].items() if value is not None}
            door.call(named[call["name"]]["name"], given)
    elif scenario == "tools_call":
        door.call(named["add_numbers"]["name"], {"a": 5, "b": 3})
    elif scenario == "json-schema-2020-12-preservation":
        seen = named["json_schema_2020_12_tool"]["inputSchema"]
        door.call(named["json_schema_echo"]["name"], {"schema": seen})
    elif scenario != "json-schema-ref-no-deref":
        for tool in tools:
            door.call(tool["name"], fitting(tool["inputSchema"]))


def started(folder: Path, url: str) -> tuple[subprocess.Popen, str]:
    """`rialto serve` in front of the suite's server, and where it listens."""
    config = folder / "rialto.toml"
    config.write_text(f'[[mcp_servers]]\nname = "suite"\nurl = "{url}"\n')
    words = [os.environ["RIALTO"], "--config", config, "serve", "--allow-no-auth", "--addr", "127.0.0.1:0"]
    log = (folder / "log").open("w")
    server = subprocess.Popen([*words, "--data", folder / "data"], stdout=subprocess.PIPE, stderr=log, text=True)
    for line in server.stdout:
        if found := re.search(r" as MCP tools at (\S+/mcp)", line):
            return server, found[1]
    raise SystemExit("rialto did not say where it listens: " + (folder / "log").read_text())


def main() -> None:
    url = sys.argv[1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as folder:
        server, address = started(Path(folder), url)
        try:
            door = Door(address)
            # One scenario has no tools at all, and those about logins never show them to Rialto.
            has_none = scenario == "request-metadata" or scenario.startswith("auth/")
            until = time.monotonic() + (4 if has_none else 15)
            while not (tools := door.tools()) and time.monotonic() < until:
                time.sleep(0.1)
            learn(tools)
            print("tools:", [tool["name"] for tool in tools])
            play(door, scenario, context, tools)
        finally:
            server.terminate()
            server.wait(10)
            print((Path(folder) / "log").read_text(), file=sys.stderr)


if __name__ == "__main__":
    main()
