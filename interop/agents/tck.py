"""The agent behind Rialto when the A2A TCK tests it, on a2a-sdk 1.3.0.

It has one skill and does what the kit's scenarios want, which a message names by how its id
begins. A message of the kit for 1.0 that belongs to no scenario is a task that is completed; the kit for 0.3 has no
scenarios, and wants tasks that it can go on with and call off.
"""

import asyncio
import os

import serving
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

# A task that others come to listen to lasts twice as long as the kit waits for events.
LASTING = 2 * float(os.environ.get("TCK_STREAMING_TIMEOUT", "2"))

FILE = {"filename": "output.txt", "media_type": "text/plain"}
DATA = ParseDict({"key": "value", "count": 42}, Value())

# How a message's id begins -> the steps of its task. Where several fit, the longest counts.
SCENARIOS = {
    "tck-complete-task": [("complete", "Hello from TCK")],
    "tck-artifact-text": [("artifact", Part(text="Generated text content")), ("complete", None)],
    "tck-artifact-file": [("artifact", Part(raw=b"written by the fixture", **FILE)), ("complete", None)],
    "tck-artifact-file-url": [
        ("artifact", Part(url="https://example.com/output.txt", **FILE)),
        ("complete", None),
    ],
    "tck-artifact-data": [("artifact", Part(data=DATA)), ("complete", None)],
    "tck-message-response": [("answer", "Direct message response")],
    "tck-input-required": [("ask", None)],
    "tck-reject-task": [("reject", "rejected")],
    "tck-stream-001": [
        ("work", None),
        ("artifact", Part(text="Stream hello from TCK")),
        ("complete", None),
    ],
    "tck-stream-002": [("complete", None)],
    "tck-stream-003": [
        ("work", None),
        ("artifact", Part(text="Stream task lifecycle")),
        ("complete", None),
    ],
    "tck-stream-ordering-001": [
        ("work", None),
        ("artifact", Part(text="Ordered output")),
        ("complete", None),
    ],
    "tck-stream-artifact-text": [
        ("work", None),
        ("artifact", Part(text="Streamed text content")),
        ("complete", None),
    ],
    "tck-stream-artifact-file": [
        ("work", None),
        ("artifact", Part(raw=b"streamed by the fixture", **FILE)),
        ("complete", None),
    ],
    "tck-stream-artifact-chunked": [
        ("work", None),
        ("chunk", Part(text="chunk-1 ")),
        ("last chunk", Part(text="chunk-2")),
        ("complete", None),
    ],
    "test-resubscribe-message-id": [("work", None), ("wait", LASTING), ("complete", None)],
}

USUAL = [("complete", "Done")]
OPEN = [("ask", "And then?")]


class Executor(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        steps = scenario(context.message.message_id)
        if steps[0][0] == "answer":
            await event_queue.enqueue_event(said(context, steps[0][1]))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for step, what in steps:
            await act(updater, step, what)

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def scenario(message_id: str) -> list:
    fitting = [begin for begin in SCENARIOS if message_id.startswith(begin)]
    if fitting:
        return SCENARIOS[max(fitting, key=len)]
    return USUAL if message_id.startswith("tck-") else OPEN


async def act(updater: TaskUpdater, step: str, what) -> None:
    message = updater.new_agent_message([Part(text=what)]) if isinstance(what, str) else None
    match step:
        case "work":
            await updater.start_work()
        case "wait":
            await asyncio.sleep(what)
        case "ask":
            await updater.requires_input(message)
        case "reject":
            await updater.reject(message)
        case "complete":
            await updater.complete(message)
        case "artifact":
            await updater.add_artifact([what], "result", "result")
        case "chunk":
            await updater.add_artifact([what], "result", "result", append=False, last_chunk=False)
        case "last chunk":
            await updater.add_artifact([what], "result", "result", append=True, last_chunk=True)


def said(context, text: str) -> Message:
    return Message(
        role=Role.ROLE_AGENT,
        message_id=f"reply-to-{context.message.message_id}",
        context_id=context.context_id,
        parts=[Part(text=text)],
    )


def card(url: str) -> AgentCard:
    return AgentCard(
        name="Tck Agent",
        description="Acts out the scenarios of the A2A TCK.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=[
            AgentSkill(
                id="scenarios",
                name="Scenarios",
                description="Does what the kit's scenarios want.",
                tags=["tck"],
            )
        ],
    )


def main() -> None:
    args = serving.parse(__doc__)
    sock, url = serving.bind(args.port)
    described = card(f"{url}/")
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), described)
    routes = create_agent_card_routes(described) + create_jsonrpc_routes(handler, "/")
    serving.serve(Starlette(routes=routes), sock, url)


if __name__ == "__main__":
    main()
