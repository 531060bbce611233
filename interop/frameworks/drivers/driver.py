"""How a Python driver is run: one job a line on stdin, one outcome a line on stdout.

A driver is a program that an ordinary user of its framework would write: it names Rialto as an MCP server, makes an agent of the
framework, and runs it. All of that happens in `run`, once for each job, with the framework's defaults. What the framework prints goes
to stderr.
"""

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PROMPT = "Do the work with your tools."
KEY = "not-a-key"  # the model is ours, and checks none


@dataclass
class Job:
    """One agent run."""

    model: str  # base URL of the model's API, without a version
    transport: str
    command: str = ""  # of an MCP server on stdio
    args: list[str] = field(default_factory=list)
    url: str = ""  # of an MCP server over HTTP
    headers: dict[str, str] = field(default_factory=dict)
    patience: int | None = None  # how many seconds to wait for a tool; None: the framework's default
    answer: dict[str, Any] | None = None  # what the user answers when elicitation asks; None: the driver declares no elicitation


def serve(run: Callable[[Job], Any]) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = Job(**json.loads(line))
        try:
            said = run(job)
            outcome = {"answer": str(asyncio.run(said) if inspect.isawaitable(said) else said)}
        except BaseException as error:  # frameworks raise groups, and cancel tasks of their own
            traceback.print_exc()
            outcome = {"error": describe(error)}
        out.write(f"OUTCOME {json.dumps(outcome)}\n")
        out.flush()


def describe(error: BaseException) -> str:
    """The error in one line; a group is described by its first member."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
