"""An agent whose card is fine and whose answers are not.

nonsense       200 and `this is not json`
no-envelope    200 and JSON that is no JSON-RPC
http500        HTTP 500 and an HTML page
hang           reads the call and never answers
midstream-cut  the stream breaks off after a working status; the task goes on,
               and is complete `--after` seconds later for whoever asks
"""

import argparse
import json
import threading
import time
from typing import Any

import plain_http
import serving

MODES = ("nonsense", "no-envelope", "http500", "hang", "midstream-cut")
SKILL = {"id": "work", "name": "Work", "description": "Never quite works.", "tags": ["interop"]}


class Dialect:
    """The spellings of 1.0 or 0.3, chosen by the method's name."""

    def __init__(self, method: str) -> None:
        self.modern = "/" not in method

    def task(self, id: str, done: bool) -> dict[str, Any]:
        task: dict[str, Any] = {"id": id, "contextId": "context-1", "status": self.status(done)}
        if done:
            text = {"text": "finished all the same"}
            part = text if self.modern else {"kind": "text", **text}
            task["artifacts"] = [{"artifactId": "result", "parts": [part]}]
        return task if self.modern else {"kind": "task", **task}

    def status(self, done: bool) -> dict[str, Any]:
        state = "completed" if done else "working"
        return {"state": f"TASK_STATE_{state.upper()}" if self.modern else state}

    def working(self, id: str) -> dict[str, Any]:
        update = {"taskId": id, "contextId": "context-1", "status": self.status(False)}
        if self.modern:
            return {"statusUpdate": update}
        return {"kind": "status-update", "final": False, **update}

    def wrap(self, task: dict[str, Any]) -> dict[str, Any]:
        return {"task": task} if self.modern else task


class Handler(plain_http.Handler):
    mode: str
    card: dict[str, Any]
    after: float
    resubscribe: str
    begun: dict[str, float] = {}

    def do_GET(self) -> None:
        if self.path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            self.answer_json(200, self.card)
        else:
            self.misbehave(b"")

    def do_POST(self) -> None:
        self.misbehave(self.read_body())

    def misbehave(self, body: bytes) -> None:
        if self.mode == "nonsense":
            self.answer(200, b"this is not json")
        elif self.mode == "no-envelope":
            self.answer_json(200, {"hello": "world"})
        elif self.mode == "http500":
            self.answer(500, b"<h1>500</h1>", "text/html")
        elif self.mode == "hang":
            threading.Event().wait()
        else:
            self.cut(json.loads(body))

    def cut(self, request: dict[str, Any]) -> None:
        method, params = request["method"], request.get("params", {})
        dialect = Dialect(method)
        if method in ("SendStreamingMessage", "message/stream"):
            self.begin_and_break(request, dialect)
        elif method in ("SendMessage", "message/send"):
            id = self.begin()
            time.sleep(self.after)
            self.result(request, dialect.wrap(self.snapshot(id, dialect)))
        elif params.get("id") not in self.begun:
            self.error(request, -32001, "Task not found")
        elif method in ("GetTask", "tasks/get"):
            self.result(request, self.snapshot(params["id"], dialect))
        elif method in ("SubscribeToTask", "tasks/resubscribe") and self.resubscribe == "follow":
            self.follow(request, params["id"], dialect)
        else:
            self.error(request, -32004, "This operation is not supported")

    def begin(self) -> str:
        id = f"task-{len(self.begun) + 1}"
        self.begun[id] = time.monotonic()
        return id

    def begin_and_break(self, request: dict[str, Any], dialect: Dialect) -> None:
        id = self.begin()
        self.begin_stream()
        for event in (dialect.wrap(dialect.task(id, False)), dialect.working(id)):
            self.send_event({"jsonrpc": "2.0", "id": request.get("id"), "result": event})

    def follow(self, request: dict[str, Any], id: str, dialect: Dialect) -> None:
        self.begin_stream()
        time.sleep(max(0, self.begun[id] + self.after - time.monotonic()))
        task = dialect.wrap(self.snapshot(id, dialect))
        self.send_event({"jsonrpc": "2.0", "id": request.get("id"), "result": task})

    def snapshot(self, id: str, dialect: Dialect) -> dict[str, Any]:
        return dialect.task(id, time.monotonic() >= self.begun[id] + self.after)

    def result(self, request: dict[str, Any], result: Any) -> None:
        self.answer_json(200, {"jsonrpc": "2.0", "id": request.get("id"), "result": result})

    def error(self, request: dict[str, Any], code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self.answer_json(200, {"jsonrpc": "2.0", "id": request.get("id"), "error": error})


def card(mode: str, generation: str, url: str) -> dict[str, Any]:
    minimal = {"name": f"Broken {mode}", "skills": [SKILL]}
    if generation == "minimal":
        return minimal
    streaming = mode == "midstream-cut"
    full = minimal | {
        "description": "A foreign agent that misbehaves.",
        "version": "1.0.0",
        "capabilities": {"streaming": streaming},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
    }
    if generation == "0.3":
        return full | {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return full | {"supportedInterfaces": [interface]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--card", choices=("minimal", "0.3", "1.0"))
    parser.add_argument("--after", type=float, default=1.0)
    parser.add_argument("--resubscribe", choices=("refuse", "follow"), default="refuse")
    args = parser.parse_args()
    sock, url = serving.bind(args.port)
    generation = args.card or ("0.3" if args.mode == "midstream-cut" else "minimal")
    Handler.mode, Handler.after, Handler.resubscribe = args.mode, args.after, args.resubscribe
    Handler.card = card(args.mode, generation, f"{url}/")
    plain_http.serve(Handler, sock, url)


if __name__ == "__main__":
    main()
