"""A hand-written A2A 0.1 agent: no SDK speaks 0.1 any more.

`tasks/send`, `tasks/sendSubscribe`, `tasks/resubscribe`, `tasks/get` and
`tasks/cancel`, the card at /.well-known/agent.json. The shapes are those of
the first public samples: task ids made by the client, `type` on parts,
timestamps without a zone, HTTP 400 for a request that is not understood.
"""

import asyncio
import base64
import json
import threading
from datetime import datetime
from typing import Any

import plain_http
import serving
import skills

CLOSING = ("completed", "failed", "canceled", "input-required")


class Task:
    """One task, its events so far, and whoever waits for the next one."""

    def __init__(self, id: str, session: str | None) -> None:
        self.shown: dict[str, Any] = {"id": id, "sessionId": session, "status": status("submitted")}
        self.events: list[dict[str, Any]] = []
        self.running: Any = None
        self.changed = threading.Condition()

    def publish(self, event: dict[str, Any]) -> None:
        with self.changed:
            self._apply(event)
            self.events.append({"id": self.shown["id"], **event})
            self.changed.notify_all()

    def _apply(self, event: dict[str, Any]) -> None:
        if "status" in event:
            self.shown["status"] = event["status"]
            return
        chunk = event["artifact"]
        artifacts = self.shown.setdefault("artifacts", [])
        if chunk.get("append") and artifacts:
            artifacts[-1]["parts"] += chunk["parts"]
        else:
            kept = {key: chunk[key] for key in ("name", "parts", "index")}
            artifacts.append({**kept, "parts": list(chunk["parts"])})

    def follow(self, seen: int):
        """The events after the first `seen` ones, until a closing state."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.events) > seen)
                event = self.events[seen]
            yield event
            if event.get("final"):
                return
            seen += 1


class Agent:
    def __init__(self, card: dict[str, Any]) -> None:
        self.card = card
        self.skills = skills.Skills()
        self.tasks: dict[str, Task] = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def begin(self, params: dict[str, Any]) -> tuple[Task, int]:
        """Starts or continues a task; the number is where its new events begin."""
        task = self.tasks.setdefault(params["id"], Task(params["id"], params.get("sessionId")))
        seen = len(task.events)
        work = self._work(task, asked(params))
        task.running = asyncio.run_coroutine_threadsafe(work, self.loop)
        return task, seen

    async def _work(self, task: Task, asked: skills.Asked) -> None:
        async for event in self.skills.answer(task.shown["id"], asked):
            task.publish(translate(event))

    def cancel(self, task: Task) -> bool:
        if task.shown["status"]["state"] in ("completed", "failed", "canceled"):
            return False
        task.running.cancel()
        task.publish({"status": status("canceled"), "final": True})
        return True


class Handler(plain_http.Handler):
    agent: Agent

    def do_GET(self) -> None:
        if self.path == "/.well-known/agent.json":
            self.answer_json(200, self.agent.card)
        else:
            self.answer_json(404, {"error": "not found"})

    def do_POST(self) -> None:
        try:
            request = json.loads(self.read_body())
            method, params = request["method"], request["params"]
            run = METHODS[method]
            params["id"]
        except (ValueError, KeyError, TypeError):
            error = (-32600, "Request payload validation error")
            self.answer_json(400, envelope(None, error=error))
            return
        run(self, request.get("id"), params)

    def send(self, id: Any, params: dict[str, Any]) -> None:
        task, seen = self.agent.begin(params)
        for _ in task.follow(seen):
            pass
        self.answer_json(200, envelope(id, task.shown))

    def send_subscribe(self, id: Any, params: dict[str, Any]) -> None:
        if not self.agent.card["capabilities"]["streaming"]:
            self.fail(id, -32004, "This operation is not supported")
            return
        self.stream(id, *self.agent.begin(params))

    def resubscribe(self, id: Any, params: dict[str, Any]) -> None:
        if task := self.find(id, params):
            self.stream(id, task, max(len(task.events) - 1, 0))

    def stream(self, id: Any, task: Task, seen: int) -> None:
        self.begin_stream()
        for event in task.follow(seen):
            self.send_event(envelope(id, event))

    def get(self, id: Any, params: dict[str, Any]) -> None:
        if task := self.find(id, params):
            self.answer_json(200, envelope(id, task.shown))

    def cancel(self, id: Any, params: dict[str, Any]) -> None:
        task = self.find(id, params)
        if task and self.agent.cancel(task):
            self.answer_json(200, envelope(id, task.shown))
        elif task:
            self.fail(id, -32002, "Task cannot be canceled")

    def find(self, id: Any, params: dict[str, Any]) -> Task | None:
        task = self.agent.tasks.get(params["id"])
        if not task:
            self.fail(id, -32001, "Task not found")
        return task

    def fail(self, id: Any, code: int, message: str) -> None:
        self.answer_json(200, envelope(id, error=(code, message)))


METHODS = {
    "tasks/send": Handler.send,
    "tasks/sendSubscribe": Handler.send_subscribe,
    "tasks/resubscribe": Handler.resubscribe,
    "tasks/get": Handler.get,
    "tasks/cancel": Handler.cancel,
}


def envelope(id: Any, result: Any = None, error: tuple[int, str] | None = None) -> dict[str, Any]:
    if error:
        return {"jsonrpc": "2.0", "id": id, "error": {"code": error[0], "message": error[1]}}
    return {"jsonrpc": "2.0", "id": id, "result": result}


def asked(params: dict[str, Any]) -> skills.Asked:
    message = params["message"]
    parts = message["parts"]
    data = [p["data"] for p in parts if p.get("type") == "data"]
    text = "\n".join(p["text"] for p in parts if p.get("type") == "text")
    metadatas = [message.get("skill"), params.get("metadata"), message.get("metadata")]
    return skills.asked(metadatas, data[0] if data else None, text)


def translate(event: skills.Status | skills.Artifact | skills.Reply) -> dict[str, Any]:
    if isinstance(event, skills.Artifact):
        return {
            "artifact": {
                "name": event.name,
                "parts": [part(p) for p in event.parts],
                "index": 0,
                "append": event.append,
                "lastChunk": event.last,
            }
        }
    if isinstance(event, skills.Reply):  # 0.1 answers with tasks only
        event = skills.Status("completed", event.text)
    # 0.1 has no auth-required
    state = "input-required" if event.state == "auth-required" else event.state
    return {"status": status(state, event.text), "final": state in CLOSING}


def status(state: str, text: str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {"state": state, "timestamp": datetime.now().isoformat()}
    if text:
        shown["message"] = {"role": "agent", "parts": [part({"text": text})]}
    return shown


def part(neutral: dict[str, Any]) -> dict[str, Any]:
    if "text" in neutral:
        return {"type": "text", "text": neutral["text"]}
    if "data" in neutral:
        return {"type": "data", "data": neutral["data"]}
    file = {"name": neutral["name"], "mimeType": neutral["mime"]}
    if "raw" in neutral:
        file["bytes"] = base64.b64encode(neutral["raw"]).decode()
        return {"type": "file", "file": file}
    return {"type": "file", "file": {**file, "uri": neutral["url"]}}


def card(url: str, streaming: bool) -> dict[str, Any]:
    def skill(id: str, told: dict[str, Any]) -> dict[str, Any]:
        shown = {"id": id, "name": told["name"], "description": told["description"]}
        shown |= {"tags": ["interop"], "examples": [told["example"]]}
        return shown | ({"inputSchema": told["inputSchema"]} if "inputSchema" in told else {})

    return {
        "name": "Plain01 Agent",
        "description": "A foreign agent of A2A 0.1, written by hand.",
        "url": url,
        "version": "0.1.0",
        "capabilities": {
            "streaming": streaming,
            "pushNotifications": False,
            "stateTransitionHistory": False,
        },
        "authentication": None,
        "defaultInputModes": ["text", "data"],
        "defaultOutputModes": ["text", "data"],
        "skills": [skill(id, told) for id, told in skills.SKILLS.items()],
    }


def main() -> None:
    args = serving.parse(__doc__)
    sock, url = serving.bind(args.port)
    Handler.agent = Agent(card(f"{url}/", not args.no_streaming))
    plain_http.serve(Handler, sock, url)


if __name__ == "__main__":
    main()
