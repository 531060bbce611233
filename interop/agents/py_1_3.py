"""An A2A 1.0 agent on the official Python SDK, a2a-sdk 1.3.0 (JSON-RPC, REST or gRPC)."""

import serving
import skills
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

NAMES = {"jsonrpc": "Py13 Agent", "rest": "Py13 Rest Agent", "grpc": "Py13 Grpc Agent"}
BINDINGS = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}


class Executor(AgentExecutor):
    def __init__(self) -> None:
        self.skills = skills.Skills()

    async def execute(self, context, event_queue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        begun = context.current_task is not None
        async for event in self.skills.answer(context.task_id, asked(context)):
            if isinstance(event, skills.Reply):
                await event_queue.enqueue_event(said(context, event.text))
                return
            if not begun:
                await event_queue.enqueue_event(new_task_from_user_message(context.message))
                begun = True
            await publish(updater, event)

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def asked(context) -> skills.Asked:
    metadatas = [context.metadata, MessageToDict(context.message.metadata)]
    data = [MessageToDict(p.data) for p in context.message.parts if p.HasField("data")]
    return skills.asked(metadatas, data[0] if data else None, context.get_user_input())


async def publish(updater: TaskUpdater, event) -> None:
    if isinstance(event, skills.Artifact):
        parts = [part(p) for p in event.parts]
        await updater.add_artifact(
            parts, event.name, event.name, append=event.append, last_chunk=event.last
        )
        return
    state = TaskState.Value("TASK_STATE_" + event.state.upper().replace("-", "_"))
    message = event.text and updater.new_agent_message([Part(text=event.text)])
    await updater.update_status(state, message or None)


def part(neutral: dict) -> Part:
    if "text" in neutral:
        return Part(text=neutral["text"])
    if "data" in neutral:
        return Part(data=ParseDict(neutral["data"], Value()))
    named = {"filename": neutral["name"], "media_type": neutral["mime"]}
    if "raw" in neutral:
        return Part(raw=neutral["raw"], **named)
    return Part(url=neutral["url"], **named)


def said(context, text: str) -> Message:
    return Message(
        role=Role.ROLE_AGENT,
        message_id=f"reply-to-{context.message.message_id}",
        context_id=context.context_id,
        parts=[Part(text=text)],
    )


def card(url: str, binding: str, streaming: bool) -> AgentCard:
    return AgentCard(
        name=NAMES[binding],
        description="A foreign agent on a2a-sdk 1.3.0.",
        version="1.3.0",
        supported_interfaces=[
            AgentInterface(
                url=url,
                protocol_binding=BINDINGS[binding],
                protocol_version="1.0",
            )
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=[
            AgentSkill(
                id=id,
                name=skill["name"],
                description=skill["description"],
                tags=["interop"],
                examples=[skill["example"]],
            )
            for id, skill in skills.SKILLS.items()
        ],
    )


def add_grpc(handler, described: AgentCard):
    """Serves gRPC at a port of its own, and says so in the card once it is known."""
    from a2a.server.request_handlers.grpc_handler import GrpcHandler
    from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server

    async def start():
        service = GrpcHandler(handler)
        server, port = await serving.grpc_server(
            lambda server: add_A2AServiceServicer_to_server(service, server)
        )
        described.supported_interfaces[0].url = f"127.0.0.1:{port}"
        return server

    return start


def main() -> None:
    args = serving.parse(__doc__, ("jsonrpc", "rest", "grpc"))
    sock, url = serving.bind(args.port)
    described = card(
        f"{url}/" if args.binding == "jsonrpc" else url, args.binding, not args.no_streaming
    )
    extended = None
    if args.extended:
        described.capabilities.extended_agent_card = True
        extended = AgentCard()
        extended.CopyFrom(described)
        extended.skills.append(
            AgentSkill(id="extra", name="Extra", description="For members.", tags=["interop"])
        )
    handler = DefaultRequestHandler(
        Executor(), InMemoryTaskStore(), described, extended_agent_card=extended
    )
    calls = {
        "jsonrpc": lambda: create_jsonrpc_routes(handler, "/"),
        "rest": lambda: create_rest_routes(handler),
        "grpc": list,
    }[args.binding]()
    app = Starlette(routes=create_agent_card_routes(described) + calls)
    beside = add_grpc(handler, described) if args.binding == "grpc" else None
    serving.serve(app, sock, url, beside)


if __name__ == "__main__":
    main()
