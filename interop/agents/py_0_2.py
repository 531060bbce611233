"""An A2A 0.2 agent on the official Python SDK, a2a-sdk 0.2.16 (JSON-RPC only)."""

import serving
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from py_0_x import Executor, card


def main() -> None:
    args = serving.parse(__doc__)
    sock, url = serving.bind(args.port)
    described = card(
        f"{url}/",
        streaming=not args.no_streaming,
        name="Py02 Agent",
        description="A foreign agent on a2a-sdk 0.2.16.",
        version="0.2.16",
    )
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore())
    serving.serve(A2AStarletteApplication(described, handler).build(), sock, url)


if __name__ == "__main__":
    main()
