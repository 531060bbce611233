"""An A2A 0.3 agent on the official Python SDK, a2a-sdk 0.3.26 (JSON-RPC, REST or gRPC)."""

import serving
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentSkill
from py_0_x import Executor, card


NAMES = {"jsonrpc": "Py03 Agent", "rest": "Py03 Rest Agent", "grpc": "Py03 Grpc Agent"}
TRANSPORTS = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}


def add_grpc(handler, described):
    """Serves gRPC at a port of its own, and says so in the card once it is known."""
    from a2a.grpc.a2a_pb2_grpc import add_A2AServiceServicer_to_server
    from a2a.server.request_handlers.grpc_handler import GrpcHandler

    async def start():
        service = GrpcHandler(described, handler)
        server, port = await serving.grpc_server(
            lambda server: add_A2AServiceServicer_to_server(service, server)
        )
        described.url = f"127.0.0.1:{port}"
        return server

    return start


def main() -> None:
    args = serving.parse(__doc__, ("jsonrpc", "rest", "grpc"))
    sock, url = serving.bind(args.port)
    described = card(
        f"{url}/" if args.binding == "jsonrpc" else url,
        streaming=not args.no_streaming,
        name=NAMES[args.binding],
        description="A foreign agent on a2a-sdk 0.3.26.",
        version="0.3.26",
        preferred_transport=TRANSPORTS[args.binding],
    )
    extended = None
    if args.extended:
        described.supports_authenticated_extended_card = True
        extra = AgentSkill(id="extra", name="Extra", description="For members.", tags=["interop"])
        extended = described.model_copy(update={"skills": [*described.skills, extra]})
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore())
    application = A2ARESTFastAPIApplication if args.binding == "rest" else A2AStarletteApplication
    beside = add_grpc(handler, described) if args.binding == "grpc" else None
    app = application(described, handler, extended_agent_card=extended).build()
    serving.serve(app, sock, url, beside)


if __name__ == "__main__":
    main()
