"""A small HTTP server for the agents that no SDK stands behind: JSON answers and SSE."""

import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import serving


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def read_body(self) -> bytes:
        serving.note_trace(self.headers.get("traceparent") or "")
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def answer(self, status: int, body: bytes, media_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status: int, body: Any) -> None:
        self.answer(status, json.dumps(body, ensure_ascii=False).encode())

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-store")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, data: Any) -> None:
        self.wfile.write(f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode())
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address) -> None:
        pass  # a caller that hung up is no news


def serve(handler: type[Handler], sock: socket.socket, url: str) -> None:
    """Runs until the parent goes away."""
    server = Server(sock.getsockname(), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = sock
    server.server_activate()
    serving.end_with_parent()
    serving.ready(url)
    server.serve_forever()
