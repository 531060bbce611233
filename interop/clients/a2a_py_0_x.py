"""What the clients of the pydantic generations of the Python SDK share, 0.2 and 0.3."""

import uuid
from typing import Any

import a2a_driving as driving
from a2a.types import DataPart, Message, Part, Role, TextPart


def message(command: dict[str, Any]) -> Message:
    return Message(
        message_id=str(uuid.uuid4()),
        role=Role.user,
        parts=[part(one) for one in driving.parts_of(command)],
        task_id=command.get("task"),
        context_id=command.get("context"),
    )


def part(neutral: dict[str, Any]) -> Part:
    if "text" in neutral:
        return Part(root=TextPart(text=neutral["text"]))
    return Part(root=DataPart(data=neutral["data"]))


def shown(model) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
