"""OpenAI's Responses API, as far as Codex uses it.

Codex offers the tools of one MCP server as a namespace: the model names it beside the tool. Here both are one name, `<namespace>.<tool>`.
"""

import json
from collections.abc import Callable
from typing import Any

from turns import Call, Result, Say, Turn


def answer(next: Callable[[Turn], Call | Say], path: str, body: bytes) -> tuple[int, str, bytes] | None:
    if path.endswith("/models"):
        return 200, "application/json", b'{"models": [], "object": "list", "data": []}'
    if not path.endswith("/responses"):
        return None
    turn = read(json.loads(body))
    count = len(turn.results)
    return 200, "text/event-stream", streamed(item(next(turn), count), count)


def read(asked: dict[str, Any]) -> Turn:
    results, words, called = [], [asked.get("instructions") or ""], {}
    for one in asked.get("input", []):
        if one.get("type") == "function_call":
            called[one["call_id"]] = ".".join(filter(None, (one.get("namespace"), one["name"])))
        elif one.get("type") == "function_call_output":
            results.append(result(called.get(one["call_id"], ""), one.get("output")))
        elif isinstance(one.get("content"), list):
            words += [part.get("text", "") for part in one["content"]]
    tools: dict[str, Any] = {}
    for tool in asked.get("tools") or []:
        if tool.get("type") == "namespace":
            tools |= {f"{tool['name']}.{one['name']}": one.get("parameters") for one in tool.get("tools", [])}
        elif "name" in tool:
            tools[tool["name"]] = tool.get("parameters")
    return Turn(tools, results, "\n".join(words))


def result(tool: str, output: Any) -> Result:
    if not isinstance(output, list):
        return Result(tool, output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))
    text = "\n".join(part["text"] for part in output if "text" in part)
    return Result(tool, text, sum(part.get("type") == "input_image" for part in output))


def item(step: Call | Say, count: int) -> dict[str, Any]:
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {"type": "message", "id": f"msg_{count}", "role": "assistant", "content": content}
    namespace, dot, name = step.tool.rpartition(".")
    call = {
        "type": "function_call",
        "id": f"fc_{count}",
        "call_id": f"call_{count}",
        "name": name,
        "arguments": json.dumps(step.arguments),
    }
    return call | ({"namespace": namespace} if dot else {})


def streamed(said: dict[str, Any], count: int) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    events = [
        {"type": "response.created", "response": {"id": f"resp_{count}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {"type": "response.completed", "response": {"id": f"resp_{count}", "output": [said], "usage": usage}},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
