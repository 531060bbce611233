"""Rules for tool definitions that the model vendors document, and enforce with status 400.

A client that offers a tool outside these rules gets no answer from the real model, so it gets none from ours.
"""

import re
from typing import Any

OPENAI_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ANTHROPIC_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
GEMINI_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$")
MAX_OPENAI_TOOLS = 128
# Keywords that neither OpenAI nor Anthropic takes at the root of a tool's schema.
ROOT_KEYWORDS = ("oneOf", "anyOf", "allOf", "enum", "not")


def find_openai_fault(tools: list[dict[str, Any]], place: str) -> str | None:
    """The error text of the first tool that OpenAI would refuse. `place` is the path of a tool's members, with {} for its index."""
    if len(tools) > MAX_OPENAI_TOOLS:
        return f"Invalid 'tools': array too long. Expected an array with maximum length {MAX_OPENAI_TOOLS}, but got {len(tools)} instead."
    for index, tool in enumerate(tools):
        path, name = place.format(index), tool.get("name", "")
        if not OPENAI_NAME.match(name):
            return f"Invalid '{path}.name': string does not match pattern. Expected a string that matches the pattern '{OPENAI_NAME.pattern}'. Got '{name}'."
        if (fault := _schema_fault(tool.get("parameters"))) or (fault := tool.get("strict") and _strict_fault(tool["parameters"])):
            return f"Invalid schema for function '{name}': {fault}"
    return None


def find_anthropic_fault(tools: list[dict[str, Any]]) -> str | None:
    for index, tool in enumerate(tools):
        if tool.get("type", "custom") != "custom":
            continue  # a tool of Anthropic's own
        if not ANTHROPIC_NAME.match(tool.get("name", "")):
            return f"tools.{index}.custom.name: String should match pattern '{ANTHROPIC_NAME.pattern}'"
        if tool.get("input_schema", {}).get("type") != "object":
            return f"tools.{index}.custom.input_schema.type: Field required"
        if any(word in tool["input_schema"] for word in ("oneOf", "anyOf", "allOf")):
            return f"tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
    return None


def find_gemini_fault(declared: list[dict[str, Any]]) -> str | None:
    for index, one in enumerate(declared):
        if not GEMINI_NAME.match(one.get("name", "")):
            return (
                f"* GenerateContentRequest.tools[0].function_declarations[{index}].name: Invalid function name. Must start with a letter or an "
                "underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
            )
    return None


def _schema_fault(schema: Any) -> str | None:
    if schema is None:
        return None  # a function without parameters
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type") if isinstance(schema, dict) else schema
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if any(word in schema for word in ROOT_KEYWORDS):
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    return _items_fault(schema, ())


def _items_fault(schema: Any, path: tuple[str, ...]) -> str | None:
    """An array without `items` is refused, wherever it is."""
    if isinstance(schema, list):
        return next((fault for one in schema if (fault := _items_fault(one, path))), None)
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "array" and "items" not in schema:
        return f"In context={path}, array schema missing items."
    deeper = [(key, one) for key, one in schema.get("properties", {}).items()]
    deeper += [(key, schema[key]) for key in ("items", "anyOf", "oneOf", "allOf") if key in schema]
    return next((fault for key, one in deeper if (fault := _items_fault(one, (*path, key)))), None)


def _strict_fault(schema: Any, path: tuple[str, ...] = ()) -> str | None:
    """With `strict`, every object is closed and requires all of its members."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={path}, 'additionalProperties' is required to be supplied and to be false."
        if missing := set(schema.get("properties", {})) - set(schema.get("required", [])):
            return f"In context={path}, 'required' is required to be supplied and to be an array including every key in properties. Missing '{min(missing)}'."
    deeper = [*schema.get("properties", {}).items(), *([("items", schema["items"])] if "items" in schema else [])]
    return next((fault for key, one in deeper if (fault := _strict_fault(one, (*path, key)))), None)
