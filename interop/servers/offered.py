"""What the MCP servers of all versions offer, told once."""

import base64
import json
import sys
import wave
from io import BytesIO
from pathlib import Path

LOGIN_URL = "https://login.example.com/start"
REPORT_URL = "https://files.example.com/report.pdf"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def _sound() -> str:
    kept = BytesIO()
    with wave.open(kept, "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(b"\x80" * 8)
    return base64.b64encode(kept.getvalue()).decode()


SOUND = _sound()


# What is told of the calls: in a file, because some of these SDKs do not survive a call that is called off.
PREFIX, HEARD = sys.argv[1], Path(sys.argv[2])


def hear(trace: str | None) -> None:
    """A call came, with this trace."""
    _note({"trace": trace})


def called_off() -> None:
    """A call was called off."""
    _note({"cancelled": _heard().get("cancelled", 0) + 1})


def _heard() -> dict:
    return json.loads(HEARD.read_text()) if HEARD.exists() else {}


def _note(news: dict) -> None:
    HEARD.write_text(json.dumps(_heard() | news))


def offer() -> list[tuple[str, str, dict]]:
    """Each tool: name, description, schema of its arguments."""
    nothing = {"type": "object"}
    value = {"type": "object", "properties": {"value": {"type": "object"}}, "required": ["value"]}
    seconds = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    return [
        ("data", "Gives its value back as structured content.", value),
        ("media", "Gives text, a picture, a sound, a file and a link.", nothing),
        ("steps", "Tells how far it is, three times.", nothing),
        ("slow", "Works for `seconds`.", seconds),
        ("ask", "Asks its caller for a colour.", nothing),
        ("login", "Wants its caller to open an address.", nothing),
        ("later", "Is a task: asks for a colour, then is done.", nothing),
    ]


def shown(verb: str, action: str, content: dict | None) -> str:
    if action != "accept":
        return f"they said {action}"
    return f"{verb} {content['answer']}" if content else verb
