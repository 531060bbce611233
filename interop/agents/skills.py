"""What every foreign agent can do, told once and in no protocol's words.

An agent script translates a request of its own generation into `Asked`, runs
`Skills.answer`, and translates the neutral events back. The neutral parts are
plain dicts: `{"text"}`, `{"data"}`, `{"raw", "name", "mime"}`,
`{"url", "name", "mime"}`. States are spelt as in A2A 0.3.

Only the standard library is used: each agent lives in its own environment.
`skills.mjs` is the same for the JavaScript agent.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOGIN_URL = "https://login.example.com/start"
REPORT_URL = "https://files.example.com/report.pdf"
PIXEL_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)

SILENCE_WAV = base64.b64decode("UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==")

# The `traceparent` of the last request, which serving.py and plain_http.py note.
last_trace = ""

# What the cards say: id -> {name, description, example, inputSchema?}
SKILLS = json.loads((Path(__file__).parent / "skills.json").read_text())


@dataclass
class Asked:
    """One message to the agent: which skill, and its arguments."""

    skill: str
    data: Any = None  # the first data part, None without one
    text: str = ""  # the text parts, joined


@dataclass
class Status:
    state: str
    text: str | None = None


@dataclass
class Artifact:
    name: str
    parts: list[dict[str, Any]]
    append: bool = False
    last: bool = True


@dataclass
class Reply:
    """A bare message: the whole answer, no task."""

    text: str


class Skills:
    """The behaviours, and the memory of which task waits for which answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}

    async def answer(self, task: str, asked: Asked) -> AsyncIterator[Status | Artifact | Reply]:
        """All events of one message, the closing state last."""
        if waiting := self._waiting.pop(task, None):
            events = _resume(waiting, asked)
        elif behaviour := _BEHAVIOURS.get(asked.skill):
            events = behaviour(asked)
        else:
            events = _unknown(asked)
        async for event in events:
            if isinstance(event, Status) and event.state in ("input-required", "auth-required"):
                self._waiting[task] = asked.skill
            yield event


def asked(metadatas: list[Any], data: Any, text: str) -> Asked:
    """Finds the skill: a metadata's `skillId`, the data's `skill`, the text's first word."""
    for metadata in metadatas:
        if isinstance(metadata, dict) and metadata.get("skillId"):
            return Asked(str(metadata["skillId"]), data, text)
    if isinstance(data, dict) and isinstance(data.get("skill"), str):
        return Asked(data["skill"], data, text)
    word, _, rest = text.strip().partition(" ")
    return Asked(word, data, rest) if word in SKILLS else Asked("", data, text)


async def _echo(asked: Asked):
    part = {"text": asked.text} if asked.data is None else {"data": asked.data}
    yield Artifact("echo", [part])
    yield Status("completed")


async def _say(asked: Asked):
    yield Artifact("greeting", [{"text": f"hello {_argument(asked, 'name', 'world')}"}])
    yield Status("completed")


async def _count(asked: Asked):
    steps = int(_argument(asked, "steps", 3))
    for step in range(1, steps + 1):
        yield Status("working", f"step {step}/{steps}")
        await asyncio.sleep(0.1)
        chunk = str(step) if step == steps else f"{step} "
        yield Artifact("numbers", [{"text": chunk}], append=step > 1, last=step == steps)
    yield Status("completed")


async def _fail(asked: Asked):
    yield Status("failed", "it broke on purpose")


async def _slow(asked: Asked):
    yield Status("working", "this takes a while")
    await asyncio.sleep(float(_argument(asked, "seconds", 3)))
    yield Artifact("slow", [{"text": "done at last"}])
    yield Status("completed")


async def _ask(asked: Asked):
    yield Status("input-required", "which colour?")


async def _files(asked: Asked):
    parts = [
        {"text": "here are the files"},
        {"raw": PIXEL_PNG, "name": "pixel.png", "mime": "image/png"},
        {"url": REPORT_URL, "name": "report.pdf", "mime": "application/pdf"},
        {"data": {"files": 2, "names": ["pixel.png", "report.pdf"]}},
    ]
    yield Artifact("files", parts)
    yield Status("completed")


async def _media(asked: Asked):
    parts = [
        {"raw": SILENCE_WAV, "name": "silence.wav", "mime": "audio/wav"},
        {"raw": b"a note", "name": "note.txt", "mime": "text/plain"},
    ]
    yield Artifact("media", parts)
    yield Status("completed")


async def _heard(asked: Asked):
    yield Artifact("trace", [{"text": last_trace}])
    yield Status("completed")


async def _login(asked: Asked):
    yield Status("auth-required", f"please sign in at {LOGIN_URL}")


async def _reply(asked: Asked):
    yield Reply("just a message")


async def _resume(skill: str, asked: Asked):
    if skill == "ask":
        yield Artifact("colour", [{"text": f"you chose {_said(asked)}"}])
    else:
        yield Artifact("login", [{"text": "signed in"}])
    yield Status("completed")


async def _unknown(asked: Asked):
    named = f"no skill is called {asked.skill}" if asked.skill else "no skill was named"
    yield Status("failed", f"{named}; there are: {', '.join(SKILLS)}")


_BEHAVIOURS = {
    "echo": _echo,
    "say": _say,
    "count": _count,
    "fail": _fail,
    "slow": _slow,
    "ask": _ask,
    "files": _files,
    "login": _login,
    "reply": _reply,
    "media": _media,
    "heard": _heard,
}


def _argument(asked: Asked, key: str, default: Any) -> Any:
    if isinstance(asked.data, dict) and key in asked.data:
        return asked.data[key]
    return asked.text.strip() or default


def _said(asked: Asked) -> str:
    """An answer in words: the text, else the data's first string, else the data."""
    if asked.text:
        return asked.text
    if isinstance(asked.data, dict):
        for value in asked.data.values():
            if isinstance(value, str):
                return value
    return json.dumps(asked.data, ensure_ascii=False)
