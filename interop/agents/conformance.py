"""The agent behind Rialto when the MCP conformance suite tests it, on a2a-sdk 1.3.0.

Its skills have the names that the suite wants its tools to have, and do in A2A what the suite wants those tools to do in MCP:
parts, statuses with numbers, failures, questions with schemas, long tasks. `--refresh` is a command that has Rialto read the
card again; the skill that changes the card runs it.
"""

import asyncio
import json
import shlex
import subprocess

import serving
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Role, TaskState
from described import asked_for, heard, serve
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from skills import PIXEL_PNG

SILENT_WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\0\0\0\0"


def text_member(**more) -> dict:
    return {"type": "string", **more}


def form(properties: dict, required: list[str] | None = None) -> dict:
    return {"type": "object", "properties": properties, "required": required or list(properties)}


NAME = form({"name": text_member()})
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]

DEFAULTS = form(
    {
        "name": text_member(default="John Doe"),
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": text_member(enum=["active", "inactive", "pending"], default="active"),
        "verified": {"type": "boolean", "default": True},
    },
    [],
)
CHOICES = form(
    {
        "untitledSingle": text_member(enum=OPTIONS),
        "titledSingle": text_member(oneOf=TITLED),
        "legacyEnum": text_member(enum=["opt1", "opt2", "opt3"], enumNames=["One", "Two", "Three"]),
        "untitledMulti": {"type": "array", "items": text_member(enum=OPTIONS)},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    [],
)
# Every kind of keyword that a list of tools must not lose.
RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": text_member()}}},
    "properties": {
        "name": text_member(),
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": text_member(enum=["phone", "email"]),
        "phone": text_member(),
        "email": text_member(),
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


# === what a skill does: steps, each (kind, argument) ===


def say(*parts) -> tuple:
    return ("artifact", list(parts))


def text(words: str) -> Part:
    return Part(text=words)


def file(content: bytes, name: str, kind: str) -> Part:
    return Part(raw=content, filename=name, media_type=kind)


def ask(schema: dict, words: str, name: str) -> tuple:
    return ("ask", [(schema, words, name)])


IMAGE = file(PIXEL_PNG, "pixel.png", "image/png")


def simple(words: str):
    return lambda told: [say(text(words))]


def progress(_told):
    steps = []
    for at in (0, 50, 100):
        steps += [("work", {"progress": at, "total": 100}), ("sleep", 0.05)]
    return [*steps, say(text("done"))]


def slow(told):
    seconds = float(told.get("seconds", 0))
    return [("work", None), ("sleep", seconds), say(text(f"computed {told.get('label', '')}"))]


def elicit(schema: dict, words: str, name: str = "answer", then: str = "Elicitation completed: action=accept, content="):
    """Asks once, and tells what it heard."""
    return [
        lambda told: [ask(schema, told.get("message", words), name)],
        lambda told: [say(text(then + json.dumps(told)))],
    ]


# id -> (description, one list of steps for each message, schema, tags)
SKILLS = {
    "test_simple_text": simple("This is a simple text response for testing."),
    "test_image_content": lambda told: [say(IMAGE)],
    "test_audio_content": lambda told: [say(file(SILENT_WAV, "silence.wav", "audio/wav"))],
    "test_embedded_resource": lambda told: [say(file(b"This is an embedded resource content.", "note.txt", "text/plain"))],
    "test_multiple_content_types": lambda told: [
        say(text("Multiple content types test:"), IMAGE, file(b'{"test":"data","value":123}', "data.json", "application/json"))
    ],
    "test_error_handling": lambda told: [("fail", "This tool intentionally returns an error for testing")],
    "test_tool_with_progress": progress,
    "test_elicitation": elicit(
        form({"username": text_member(description="User's response"), "email": text_member(description="User's email address")}),
        "Who are you?",
    ),
    "test_elicitation_sep1034_defaults": elicit(DEFAULTS, "Check these values"),
    "test_elicitation_sep1330_enums": elicit(CHOICES, "Choose"),
    "json_schema_2020_12_tool": simple("it is valid"),
    "test_custom_header": lambda told: [say(text(f"in {told.get('region')}"))],
    "test_logging_tool": simple("nothing was logged"),
    "test_streaming_elicitation": elicit(NAME, "What is your name?", "user_name"),
    "test_trigger_tool_change": lambda told: [("change", None), say(text("changed"))],
    "test_input_required_result_elicitation": elicit(NAME, "What is your name?", "user_name", "Hello, "),
    "test_input_required_result_request_state": elicit(form({"ok": {"type": "boolean"}}), "Please confirm", "confirm", "state-ok "),
    "test_input_required_result_tampered_state": elicit(form({"ok": {"type": "boolean"}}), "Please confirm", "confirm"),
    "test_input_required_result_multi_round": [
        lambda told: [ask(NAME, "Step 1: What is your name?", "step1")],
        lambda told: [ask(form({"color": text_member()}), "Step 2: What is your favorite color?", "step2")],
        lambda told: [say(text(f"chosen: {told}"))],
    ],
    "greet": lambda told: [say(text(f"Hello, {told.get('name', 'nobody')}!"))],
    "slow_compute": slow,
    "failing_job": lambda told: [("work", None), ("sleep", 1), ("fail", "the job failed")],
    "protocol_error_job": lambda told: [("work", None), ("sleep", 1), ("break", None)],
    "confirm_delete": elicit(form({"confirm": {"type": "boolean"}}), "Really delete?", "confirm"),
    "multi_input": [
        lambda told: [("ask", [(NAME, "What is your name?", "who"), (form({"confirm": {"type": "boolean"}}), "Sure?", "sure")])],
        lambda told: [say(text("all is answered"))],
    ],
    "test_tool_with_task": [
        lambda told: [ask(NAME, "What is your name?", "user_name")],
        lambda told: [("work", None), ("sleep", 1.5), say(text(f"Hello, {told.get('name')}!"))],
    ],
}
INPUTS = {
    "json_schema_2020_12_tool": RICH,
    "test_elicitation": form({"message": text_member()}),
    "greet": form({"name": text_member()}),
    "test_custom_header": form({"region": text_member(**{"x-mcp-header": "Region"})}),
}
# Those that the suite wants to see as tasks from the first question on.
LONG = ("confirm_delete", "multi_input")


class Executor(AgentExecutor):
    def __init__(self, refresh: str | None) -> None:
        self.refresh = refresh
        self.changes = 0
        self._waiting: dict[str, tuple[str, int]] = {}

    async def execute(self, context, event_queue) -> None:
        skill, round = self._waiting.pop(context.task_id, (asked_for(context), 0))
        rounds = SKILLS.get(skill, simple(f"no skill is called {skill}"))
        rounds = rounds if isinstance(rounds, list) else [rounds]
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        for kind, argument in rounds[round](heard(context)):
            if kind == "ask":
                self._waiting[context.task_id] = (skill, round + 1)
            if await self.step(updater, kind, argument):
                return
        await updater.complete()

    async def step(self, updater: TaskUpdater, kind: str, argument) -> bool:
        """Whether it was the last one."""
        if kind == "artifact":
            await updater.add_artifact(argument, "result", "result")
        elif kind == "work":
            metadata = ParseDict(argument, Struct()) if argument else None
            await updater.update_status(TaskState.TASK_STATE_WORKING, metadata=argument and MessageToDict(metadata))
        elif kind == "sleep":
            await asyncio.sleep(argument)
        elif kind == "change":
            self.changes += 1
            if self.refresh:
                await asyncio.to_thread(subprocess.run, shlex.split(self.refresh), stdout=subprocess.DEVNULL, check=True)
        elif kind == "fail":
            await updater.failed(updater.new_agent_message([text(argument)]))
            return True
        elif kind == "break":
            raise RuntimeError("it broke down")
        else:
            await updater.requires_input(updater.new_agent_message([question(*one) for one in argument]))
            return True
        return False

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def question(schema: dict, words: str, name: str) -> Part:
    return Part(data=ParseDict({"name": name, "message": words, "requestedSchema": schema}, Value()))


def skills(executor: Executor) -> list:
    told = []
    for id in [*SKILLS, *(f"change_{n + 1}" for n in range(executor.changes))]:
        skill = {"id": id, "name": id, "description": f"Does what {id} is to do.", "tags": ["conformance"]}
        if id in LONG:
            skill["tags"].append("long-running")
        if id in INPUTS:
            skill["inputSchema"] = INPUTS[id]
        told.append(skill)
    return told


def main() -> None:
    parser = serving.parser(__doc__)
    parser.add_argument("--refresh", help="has Rialto read the card again")
    parser.add_argument("--list", action="store_true", help="print the ids of the skills, and end")
    args = parser.parse_args()
    if args.list:
        print("\n".join(SKILLS))
        return
    executor = Executor(args.refresh)
    description = "What the MCP conformance suite wants to see, done by an A2A agent."
    serve(args.port, executor, "Conformance", description, lambda: skills(executor))


if __name__ == "__main__":
    main()
