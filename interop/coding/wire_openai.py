"""OpenAI's Responses API, as far as Codex and agent frameworks use it.

Codex offers the tools of one MCP server as a namespace: the model names it beside the tool. Here both are one name, `<namespace>.<tool>`.
"""

import json
from collections.abc import Callable
from typing import Any

from turns import Call, Result, Say, Turn
from vendor_rules import find_openai_fault
from wire_chat import refusal


def answer(next: Callable[[Turn], Call | Say], path: str, body: bytes) -> tuple[int, str, bytes] | None:
    if path.endswith("/models"):
        return 200, "application/json", b'{"models": [], "object": "list", "data": []}'
    if not path.endswith("/responses"):
        return None
    asked = json.loads(body)
    functions = [tool for tool in asked.get("tools") or [] if tool.get("type") == "function"]
    if fault := find_openai_fault(functions, "tools[{}]"):
        return 400, "application/json", refusal(fault)
    turn = read(asked)
    count = len(turn.results)
    said = response(item(next(turn), count), count, asked)
    if asked.get("stream"):
        return 200, "text/event-stream", streamed(said)
    return 200, "application/json", json.dumps(said).encode()


def read(asked: dict[str, Any]) -> Turn:
    results, words, called = [], [asked.get("instructions") or ""], {}
    given = asked.get("input", [])
    for one in [{"content": [{"text": given}]}] if isinstance(given, str) else given:
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
        return {"type": "message", "id": f"msg_{count}", "status": "completed", "role": "assistant", "content": content}
    namespace, dot, name = step.tool.rpartition(".")
    call = {
        "type": "function_call",
        "id": f"fc_{count}",
        "call_id": f"call_{count}",
        "status": "completed",
        "name": name,
        "arguments": json.dumps(step.arguments),
    }
    return call | ({"namespace": namespace} if dot else {})


def response(said: dict[str, Any], count: int, asked: dict[str, Any]) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{count}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": asked.get("model", "model"),
        "output": [said],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110} | details,
    }


def streamed(whole: dict[str, Any]) -> bytes:
    events = [
        {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
        {"type": "response.completed", "response": whole},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
