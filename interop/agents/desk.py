"""The agent behind Rialto when coding clients (`interop/apps`) and agent frameworks (`interop/frameworks/run`) call it, on a2a-sdk 1.3.0.

Its skills have schemas, and do what such a client has to handle: structured data, a picture, work that takes time and reports progress, a
question with choices, a failure with a reason. `note` has no schema and takes plain text, like most agents written with the SDK.
"""

import asyncio

import serving
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from a2a.types import Part, TaskState
from described import asked_for, heard, serve
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from skills import PIXEL_PNG

COLOURS = ["red", "green", "blue"]
REASON = "part 7-B is out of stock until Monday"
LINE = {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}, "required": ["sku"]}


def form(**properties) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties)}


# id -> (description, schema)
SKILLS = {
    "order": (
        "Takes an order and confirms it, line by line.",
        form(customer={"type": "string"}, lines={"type": "array", "items": LINE}),
    ),
    "picture": ("Draws a very small picture.", {"type": "object", "properties": {}}),
    "work": (
        "Works for some seconds, and says each second how far it is.",
        form(seconds={"type": "integer", "minimum": 1, "description": "how long"}),
    ),
    "paint": ("Paints something, and asks in which colour.", form(thing={"type": "string"})),
    "repair": ("Repairs a machine, and fails for want of a part.", form(machine={"type": "string"})),
    "note": ("Takes a note in plain text, and repeats it.", None),
    # Longer than the names of tools may be at OpenAI and Google.
    "reconcile_supplier_invoices_with_purchase_orders_of_a_quarter": (
        "Reconciles the invoices of a quarter.",
        form(quarter={"type": "string"}),
    ),
}


class Executor(AgentExecutor):
    def __init__(self) -> None:
        self._painting: dict[str, str] = {}

    async def execute(self, context, event_queue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        told = heard(context)
        if (thing := self._painting.pop(context.task_id, None)) is not None:
            await finish(updater, Part(text=f"the {thing} is {told.get('colour') or told.get('text')} now"))
            return
        skill = asked_for(context)
        if skill == "order":
            await finish(updater, Part(data=ParseDict({"accepted": True, "order": told}, Value())))
        elif skill == "picture":
            await finish(updater, Part(text="a pixel"), Part(raw=PIXEL_PNG, filename="pixel.png", media_type="image/png"))
        elif skill == "work":
            await work(updater, int(told.get("seconds", 3)))
        elif skill == "paint":
            self._painting[context.task_id] = str(told.get("thing"))
            await updater.requires_input(updater.new_agent_message([question(f"Which colour for the {told.get('thing')}?")]))
        elif skill == "repair":
            await updater.failed(updater.new_agent_message([Part(text=REASON)]))
        elif skill.startswith("reconcile"):
            await finish(updater, Part(text=f"{told.get('quarter')} is reconciled"))
        elif skill == "note":
            await finish(updater, Part(text=f"noted: {context.get_user_input()}"))
        else:
            await updater.failed(updater.new_agent_message([Part(text=f"there is no skill {skill!r}: {', '.join(SKILLS)}")]))

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def work(updater: TaskUpdater, seconds: int) -> None:
    for second in range(1, seconds + 1):
        await updater.update_status(
            TaskState.TASK_STATE_WORKING,
            updater.new_agent_message([Part(text=f"second {second} of {seconds}")]),
            metadata={"progress": second, "total": seconds},
        )
        await asyncio.sleep(1)
    await finish(updater, Part(text=f"worked for {seconds} seconds"))


async def finish(updater: TaskUpdater, *parts: Part) -> None:
    await updater.add_artifact(list(parts), "result", "result")
    await updater.complete()


def question(words: str) -> Part:
    schema = form(colour={"type": "string", "enum": COLOURS})
    return Part(data=ParseDict({"name": "colour", "message": words, "requestedSchema": schema}, Value()))


def skills() -> list:
    return [
        {"id": id, "name": id, "description": told, "tags": ["desk"]}
        | ({"inputSchema": schema} if schema else {"inputModes": ["text/plain"]})
        for id, (told, schema) in SKILLS.items()
    ]


def main() -> None:
    args = serving.parser(__doc__).parse_args()
    serve(args.port, Executor(), "Desk", "Takes orders, works and paints.", skills)


if __name__ == "__main__":
    main()
