"""OpenAI's Chat Completions API, which most agent frameworks use."""

import json
from collections.abc import Callable
from typing import Any

from turns import Call, Result, Say, Turn
from vendor_rules import find_openai_fault


def answer(next: Callable[[Turn], Call | Say], path: str, body: bytes) -> tuple[int, str, bytes] | None:
    if not path.endswith("/chat/completions"):
        return None
    asked = json.loads(body)
    if fault := find_fault(asked):
        return 400, "application/json", refusal(fault)
    turn = read(asked)
    said = message(next(turn), len(turn.results))
    if asked.get("stream"):
        return 200, "text/event-stream", streamed(said, asked)
    return 200, "application/json", json.dumps(completion(said, asked)).encode()


def find_fault(asked: dict[str, Any]) -> str | None:
    functions = [tool.get("function", {}) for tool in asked.get("tools") or []]
    if fault := find_openai_fault(functions, "tools[{}].function"):
        return fault
    for index, one in enumerate(asked.get("messages", [])):
        parts = one.get("content")
        if one.get("role") == "tool" and isinstance(parts, list) and any(part.get("type") != "text" for part in parts):
            return f"Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."
    return None


def refusal(fault: str) -> bytes:
    error = {"message": fault, "type": "invalid_request_error", "param": None, "code": "invalid_value"}
    return json.dumps({"error": error}).encode()


def read(asked: dict[str, Any]) -> Turn:
    results, words, called = [], [], {}
    for one in asked.get("messages", []):
        called |= {call["id"]: call["function"]["name"] for call in one.get("tool_calls") or []}
        text, images = contents(one.get("content"))
        if one.get("role") == "tool":
            results.append(Result(called.get(one.get("tool_call_id"), ""), text, images))
            continue
        words.append(text)
        if one.get("role") == "user" and results:
            results[-1].images += images  # a picture follows the result that it belongs to
    tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in asked.get("tools") or []}
    return Turn(tools, results, "\n".join(words))


def contents(content: Any) -> tuple[str, int]:
    """The text of a message, and how many pictures it has."""
    if not isinstance(content, list):
        return content or "", 0
    text = "\n".join(part["text"] for part in content if part.get("type") == "text")
    return text, sum(part.get("type") == "image_url" for part in content)


def message(step: Call | Say, count: int) -> dict[str, Any]:
    if isinstance(step, Say):
        return {"role": "assistant", "content": step.text}
    function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{count}", "type": "function", "function": function}]}


def completion(said: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": reason(said)}
    return envelope(asked, "chat.completion") | {"choices": [choice], "usage": USAGE}


def streamed(said: dict[str, Any], asked: dict[str, Any]) -> bytes:
    delta = said | ({"tool_calls": [{"index": 0, **call} for call in said["tool_calls"]]} if "tool_calls" in said else {})
    head = envelope(asked, "chat.completion.chunk")
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason(said)}]},
        head | {"choices": [], "usage": USAGE},
    ]
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n").encode()


def reason(said: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in said else "stop"


def envelope(asked: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": asked.get("model", "model")}


USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
