#!/usr/bin/env python3
"""Calls the one agent of a server again and again, by MCP and by A2A: calls.py URL"""

import json
import sys
import threading
import urllib.request

SERVER = sys.argv[1]
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "order", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
EACH = 40


def post(path, method, params, **headers):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(SERVER + path, data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["result"]


def mcp(method, params, **headers):
    return post("/mcp", method, {**params, "_meta": META}, MCP_Protocol_Version=VERSION, Mcp_Method=method, **headers)


def call(tool):
    arguments = {"text": 'x "quoted" ' * 50}
    for _ in range(EACH):
        mcp("tools/call", {"name": tool, "arguments": arguments}, Mcp_Name=tool)


def main():
    tool = next(tool["name"] for tool in mcp("tools/list", {})["tools"] if "." in tool["name"])
    callers = [threading.Thread(target=call, args=(tool,)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for number in range(EACH):
        message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"data": {"text": "hello"}}]}
        post(f"/a2a/agents/{tool.split('.')[0]}", "SendMessage", {"message": message}, A2A_Version="1.0")


main()
