"""What the drivers of the Python MCP clients share, whatever their SDK's age."""

import json
import os
import threading
import time
from typing import Any


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def failure(error: BaseException) -> dict[str, Any]:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    told = getattr(error, "error", None)
    if hasattr(told, "code"):
        return {"error": plain(told)}
    # the SDK's own complaint about what the server sent
    return {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}


def elicit_with(answer: dict[str, Any] | None, types: Any):
    """A callback that prints what the server asks and gives the answer from --elicit.

    An address is opened, not filled in; a form that asks nothing but yes or no is told yes.
    """
    if answer is None:
        return None

    async def elicit(_context: Any, params: Any) -> Any:
        asked = plain(params)
        say({"elicitation": asked})
        given = dict(answer)
        if asked.get("mode") == "url":
            given.pop("content", None)
        elif given.get("action") == "accept":
            fields = asked["requestedSchema"].get("properties", {})
            if fields and all(field.get("type") == "boolean" for field in fields.values()):
                given["content"] = dict.fromkeys(fields, True)
        return types.ElicitResult.model_validate(given)

    return elicit


def end_with_parent() -> None:
    """A dead parent leaves no client behind, even one that waits for an answer."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
