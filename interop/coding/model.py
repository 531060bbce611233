"""The model that the clients talk to: ours, scripted, on loopback.

A client's conversation arrives over its maker's API and is read into a `Turn`: which tools it offers, and what came of the calls that the
model made so far. The case's script says what the model does next, and the wire module says it in the API's own form. Nothing is
remembered from request to request but the record, so that a client that asks again gets the same answer.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import wire_anthropic
import wire_chat
import wire_gemini
import wire_openai
from turns import Call, Result, Say, Turn


Script = Callable[[Turn], Call | Say]


class Play:
    """One case's model: its script, and all that it was asked."""

    def __init__(self, script: Script, folder: Path) -> None:
        self.script = script
        self.folder = folder
        self.turns: list[Turn] = []
        self.said: list[Call | Say] = []
        self.paths: list[str] = []
        self.refusals: list[str] = []  # what was answered with status 400
        self._lock = threading.Lock()

    def next(self, turn: Turn) -> Call | Say:
        with self._lock:
            if not turn.tools:  # titles, summaries and the like: not the conversation
                return Say('{"title": "a conversation"}')
            self.turns.append(turn)
            step = self.script(turn)
            if isinstance(step, Call) and step.tool not in turn.tools:
                step = self._sought(step.tool, turn)
            self.said.append(step)
            return step

    @staticmethod
    def _sought(tool: str, turn: Turn) -> Call | Say:
        """Claude Code names most tools only, and offers those that its model looks for."""
        if "ToolSearch" in turn.tools and tool in turn.words and tool not in (one.text for one in turn.results):
            return Call("ToolSearch", {"query": f"select:{tool}", "max_results": 5})
        return Say(f"no tool is offered as {tool}")

    def record(self, path: str, body: bytes) -> None:
        with self._lock:
            self.paths.append(path)
            (self.folder / f"model-{len(self.paths):02}.json").write_bytes(body)

    def results(self) -> list[Result]:
        """Those of the whole conversation."""
        return max((bridged(turn) for turn in self.turns), key=len, default=[])

    def told(self) -> str:
        """All that the model was told, by tools or otherwise."""
        return "\n".join(text for turn in self.turns for text in (turn.words, *(one.text for one in turn.results)))

    def offered(self) -> dict[str, Any]:
        """Every tool that was offered at any time."""
        return {name: schema for turn in self.turns for name, schema in turn.tools.items()}


def bridged(turn: Turn) -> list[Result]:
    """What came of calls, but for those that only looked for a tool."""
    return [one for one in turn.results if one.tool != "ToolSearch"]


class Models:
    """Serves every play at `/<key>` in all four APIs."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.plays))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(self, key: str, play: Play) -> str:
        """The address to give to the client."""
        self.plays[key] = play
        return f"http://127.0.0.1:{self._server.server_port}/{key}"


def answer(play: Play, path: str, body: bytes) -> tuple[int, str, bytes]:
    """Status, media type and body of the answer to one request."""
    path, _, _query = path.partition("?")
    for wire in (wire_anthropic, wire_gemini, wire_chat, wire_openai):
        if (answered := wire.answer(play.next, path, body)) is not None:
            return answered
    return 404, "application/json", json.dumps({"error": {"message": f"{path} is not played"}}).encode()


def _handler(plays: dict[str, Play]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            _, key, rest = (self.path.split("/", 2) + [""])[:3]
            if (play := plays.get(key)) is None:
                return self._send(404, "application/json", b'{"error": {"message": "no such play"}}')
            play.record("/" + rest, body)
            answered = answer(play, "/" + rest, body)
            if answered[0] == 400:
                play.refusals.append(answered[2].decode())
            self._send(*answered)

        do_GET = do_HEAD = do_POST

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_args) -> None:
            pass

    return Handler
