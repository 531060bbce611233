"""How every foreign agent starts and stops.

It binds 127.0.0.1, prints `READY <url>` as its only line on stdout once it
answers, and lives no longer than its stdin: when the parent closes the pipe or
dies, the agent is gone. SIGTERM ends it too.
"""

import argparse
import contextlib
import os
import signal
import socket
import sys
import threading


def parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    return parser


def parse(description: str, bindings: tuple[str, ...] = ("jsonrpc",)) -> argparse.Namespace:
    known = parser(description)
    known.add_argument("--binding", choices=bindings, default="jsonrpc")
    known.add_argument("--no-streaming", action="store_true", help="advertise streaming=false")
    known.add_argument(
        "--extended", action="store_true", help="one more skill, `extra`, on the extended card (py_1_3, py_0_3)"
    )
    return known.parse_args()


def bind(port: int) -> tuple[socket.socket, str]:
    """A bound socket and its address, known before the card is written."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock, f"http://127.0.0.1:{sock.getsockname()[1]}"


def end_with_parent() -> None:
    def wait_for_the_end() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os._exit(0)

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    threading.Thread(target=wait_for_the_end, daemon=True).start()


def ready(url: str) -> None:
    print(f"READY {url}", flush=True)


async def grpc_server(add_service) -> tuple["grpc.aio.Server", int]:
    """A gRPC server that runs, and its port; `add_service` puts the service into it."""
    import grpc

    class Hearing(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, details):
            note_trace(dict(details.invocation_metadata).get("traceparent", ""))
            return await continuation(details)

    server = grpc.aio.server(interceptors=[Hearing()])
    add_service(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


def note_trace(traceparent: str) -> None:
    """What the skill `heard` tells; a server that has no skills has nobody to tell."""
    if known := sys.modules.get("skills"):
        known.last_trace = traceparent


def hearing(app):
    """The same application; the trace of each request is noted."""

    async def hear(scope, receive, send):
        if scope["type"] == "http" and scope["method"] == "POST":
            headers = dict(scope["headers"])
            note_trace(headers.get(b"traceparent", b"").decode())
        await app(scope, receive, send)

    return hear


def serve(app, sock: socket.socket, url: str, beside=None) -> None:
    """Runs an ASGI application until the parent goes away, and what `beside` starts on the same loop."""
    import uvicorn  # the stdlib agents do not have it

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets=sockets)
            self.beside = await beside() if beside else None
            ready(url)

        @contextlib.contextmanager
        def capture_signals(self):
            yield  # `end_with_parent` has them

    end_with_parent()
    Server(uvicorn.Config(hearing(app), log_level="warning", access_log=False)).run(sockets=[sock])
