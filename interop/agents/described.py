"""What agents on a2a-sdk 1.3.0 share whose skills have schemas: for these the SDK's own types have no member."""

import serving
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


def heard(context) -> dict:
    """The data of the message; its text, if it has none."""
    for part in context.message.parts:
        if part.HasField("data"):
            data = MessageToDict(part.data)
            return data if isinstance(data, dict) else {"data": data}
    return {"text": context.get_user_input()}


def asked_for(context) -> str:
    """The skill that the message is for; empty, if it names none."""
    for metadata in (context.metadata, MessageToDict(context.message.metadata)):
        if metadata and metadata.get("skillId"):
            return str(metadata["skillId"])
    return str(heard(context).get("skill", ""))


def serve(port: int, executor, name: str, description: str, skills) -> None:
    """Serves an agent for ever. `skills` is asked for the card's skills each time the card is read."""
    sock, url = serving.bind(port)
    card = AgentCard(
        name=name,
        description=description,
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
    )
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)

    async def show(_request) -> JSONResponse:
        return JSONResponse(MessageToDict(card) | {"skills": skills()})

    routes = [Route("/.well-known/agent-card.json", show), *create_jsonrpc_routes(handler, "/")]
    serving.serve(Starlette(routes=routes), sock, url)
