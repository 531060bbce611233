"""An A2A 0.3 agent on the official Python SDK, a2a-sdk 0.3.26 (JSON-RPC or REST)."""

import serving
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from py_0_x import Executor, card


def main() -> None:
    args = serving.parse(__doc__, ("jsonrpc", "rest"))
    sock, url = serving.bind(args.port)
    rest = args.binding == "rest"
    described = card(
        url if rest else f"{url}/",
        streaming=not args.no_streaming,
        name="Py03 Rest Agent" if rest else "Py03 Agent",
        description="A foreign agent on a2a-sdk 0.3.26.",
        version="0.3.26",
        preferred_transport="HTTP+JSON" if rest else "JSONRPC",
    )
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore())
    application = A2ARESTFastAPIApplication if rest else A2AStarletteApplication
    serving.serve(application(described, handler).build(), sock, url)


if __name__ == "__main__":
    main()
