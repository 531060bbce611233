"""What passes between a client and its model, in no API's words."""

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """The model calls a tool."""

    tool: str
    arguments: dict[str, Any]


@dataclass
class Say:
    """The model says something, and its turn is over."""

    text: str


@dataclass
class Result:
    """What a client told the model that a call brought."""

    tool: str
    text: str
    images: int = 0


@dataclass
class Turn:
    """One request of a client."""

    tools: dict[str, Any]  # name -> schema of its arguments
    results: list[Result]
    words: str = ""  # all that was written: clients may name tools there that they do not offer yet
    at: float = field(default_factory=time.time)
