"""Google's Gemini API (generateContent), as far as Gemini CLI and agent frameworks use it."""

import json
from collections.abc import Callable
from typing import Any

from turns import Call, Result, Say, Turn
from vendor_rules import find_gemini_fault


def answer(next: Callable[[Turn], Call | Say], path: str, body: bytes) -> tuple[int, str, bytes] | None:
    _, _, method = path.rpartition(":")
    if method == "countTokens":
        return 200, "application/json", b'{"totalTokens": 100}'
    if method not in ("generateContent", "streamGenerateContent"):
        return None
    asked = json.loads(body)
    if fault := find_gemini_fault(declarations(asked)):
        error = {"error": {"code": 400, "message": fault, "status": "INVALID_ARGUMENT"}}
        return 400, "application/json", json.dumps(error).encode()
    said = json.dumps(written(next(read(asked))))
    if method == "generateContent":
        return 200, "application/json", said.encode()
    return 200, "text/event-stream", f"data: {said}\r\n\r\n".encode()


def read(asked: dict[str, Any]) -> Turn:
    results, words = [], []
    for content in [asked.get("systemInstruction") or {}, *asked.get("contents", [])]:
        for part in content.get("parts", []):
            words.append(part.get("text", ""))
            if "functionResponse" in part:
                results.append(result(part["functionResponse"]))
            elif "inlineData" in part and results:  # follows the response that it belongs to
                results[-1].images += 1
    tools = {one["name"]: schema(one) for one in declarations(asked)}
    return Turn(tools, results, "\n".join(words))


def declarations(asked: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for tool in asked.get("tools") or [] for one in tool.get("functionDeclarations", [])]


def schema(declared: dict[str, Any]) -> Any:
    """Google's JSON takes both spellings of a member."""
    return next((declared[key] for key in ("parametersJsonSchema", "parameters_json_schema", "parameters") if key in declared), None)


def result(response: dict[str, Any]) -> Result:
    told = response.get("response", {})
    text = told.get("output", told.get("error")) if isinstance(told, dict) else told
    images = sum("inlineData" in part for part in response.get("parts") or [])
    return Result(response.get("name", ""), text if isinstance(text, str) else json.dumps(told, ensure_ascii=False), images)


def written(step: Call | Say) -> dict[str, Any]:
    if isinstance(step, Call):
        part = {"functionCall": {"name": step.tool, "args": step.arguments}}
    else:
        part = {"text": step.text}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
    }
