"""Anthropic's Messages API, as far as Claude Code and agent frameworks use it."""

import json
from collections.abc import Callable
from typing import Any

from turns import Call, Result, Say, Turn
from vendor_rules import find_anthropic_fault


def answer(next: Callable[[Turn], Call | Say], path: str, body: bytes) -> tuple[int, str, bytes] | None:
    if path.endswith("/v1/messages/count_tokens"):
        return 200, "application/json", b'{"input_tokens": 100}'
    if not path.endswith("/v1/messages"):
        return None
    asked = json.loads(body)
    if fault := find_anthropic_fault(asked.get("tools") or []):
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": fault}}
        return 400, "application/json", json.dumps(error).encode()
    turn = read(asked)
    message = written(next(turn), asked.get("model", "model"), len(turn.results))
    if not asked.get("stream"):
        return 200, "application/json", json.dumps(message).encode()
    return 200, "text/event-stream", streamed(message)


def read(asked: dict[str, Any]) -> Turn:
    results, words, called = [], [], {}
    for message in asked.get("messages", []):
        for block in blocks(message.get("content")):
            if block.get("type") == "tool_use":
                called[block["id"]] = block["name"]
            elif block.get("type") == "tool_result":
                results.append(result(called.get(block["tool_use_id"], ""), block))
            words.append(block.get("text", ""))
    words += [block.get("text", "") for block in blocks(asked.get("system"))]
    tools = {tool["name"]: tool.get("input_schema") for tool in asked.get("tools") or []}
    return Turn(tools, results, "\n".join(words))


def result(tool: str, block: dict[str, Any]) -> Result:
    parts = blocks(block.get("content"))
    text = "\n".join(part.get("text") or part.get("tool_name") or "" for part in parts)
    return Result(tool, text, sum(part.get("type") == "image" for part in parts))


def blocks(content: Any) -> list[dict[str, Any]]:
    """Content is a text or a list of blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def written(step: Call | Say, name: str, count: int) -> dict[str, Any]:
    if isinstance(step, Call):
        block = {"type": "tool_use", "id": f"toolu_{count:04}", "name": step.tool, "input": step.arguments}
        reason = "tool_use"
    else:
        block, reason = {"type": "text", "text": step.text}, "end_turn"
    return {
        "id": f"msg_{count:04}",
        "type": "message",
        "role": "assistant",
        "model": name,
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def streamed(message: dict[str, Any]) -> bytes:
    block = message["content"][0]
    if block["type"] == "tool_use":
        opened, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        opened, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    begun = message | {"content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": opened},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
