"""A hand-written A2A 0.1 client: no SDK speaks 0.1 any more.

It reads agent.json as the first public samples did: one `url`, one bearer token,
task ids made by the client, `type` on parts.
"""

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from typing import Any

import a2a_driving as driving


class Refused(Exception):
    def __init__(self, code: int | None, message: str, http: int | None = None) -> None:
        super().__init__(message)
        self.code, self.http = code, http


class Client:
    def __init__(self, args, card) -> None:
        self.token, self.shown = args.token, card

    @classmethod
    async def connect(cls, args):
        def fetch() -> dict[str, Any]:
            with urllib.request.urlopen(f"{args.url}/.well-known/agent.json", timeout=60) as answer:
                return json.load(answer)

        return cls(args, await asyncio.to_thread(fetch))

    def read_card(self) -> dict[str, Any]:
        for required in ("name", "url", "version", "capabilities", "skills"):
            assert required in self.shown, f"the card has no {required}"
        return driving.card(self.shown)

    async def send(self, command):
        return driving.event(await self.ask("tasks/send", params(command)))

    async def get(self, command):
        return driving.task(await self.ask("tasks/get", {"id": command["task"]}))

    async def cancel(self, command):
        return driving.task(await self.ask("tasks/cancel", {"id": command["task"]}))

    async def stream(self, command):
        async for event in self.listen("tasks/sendSubscribe", params(command)):
            yield driving.event(event)

    async def resubscribe(self, command):
        async for event in self.listen("tasks/resubscribe", {"id": command["task"]}):
            yield driving.event(event)

    async def push_set(self, command):
        wanted = {"id": command["task"], "pushNotificationConfig": command["push"]}
        return config(await self.ask("tasks/pushNotification/set", wanted))

    async def push_get(self, command):
        return config(await self.ask("tasks/pushNotification/get", {"id": command["task"]}))

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        def fetch() -> Any:
            with self.post(method, params) as answer:
                return result(json.load(answer))

        return await asyncio.to_thread(fetch)

    async def listen(self, method: str, params: dict[str, Any]):
        answer = await asyncio.to_thread(self.post, method, params)
        try:
            while line := await asyncio.to_thread(answer.readline):
                if line.startswith(b"data:"):
                    yield result(json.loads(line[5:]))
        finally:
            # Another thread may be reading: closing the socket under it ends that, too.
            answer.fp.raw._sock.shutdown(2) if answer.fp else None

    def post(self, method: str, params: dict[str, Any]):
        body = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.shown["url"], json.dumps(body).encode(), headers)
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            try:
                result(json.loads(said))
            except (ValueError, KeyError):
                pass  # not JSON-RPC: it came no further than HTTP
            raise Refused(None, said, error.code) from error


def params(command) -> dict[str, Any]:
    parts = [{"type": next(iter(part))} | part for part in driving.parts_of(command)]
    made = {
        "id": command.get("task") or str(uuid.uuid4()),
        "sessionId": command.get("context") or str(uuid.uuid4()),
        "message": {"role": "user", "parts": parts},
    }
    if metadata := driving.metadata_of(command):
        made["metadata"] = metadata
    if "push" in command:
        made["pushNotification"] = command["push"]
    return made


def result(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if isinstance(error, dict):
        raise Refused(error["code"], error["message"])
    return answer["result"]


def config(made: dict[str, Any]) -> dict[str, Any]:
    own = made["pushNotificationConfig"]
    return {"task": made["id"], "config": None, "url": own["url"], "token": own.get("token")}


def complaint(error: Exception) -> dict[str, Any]:
    return {"code": getattr(error, "code", None), "http": getattr(error, "http", None)}


if __name__ == "__main__":
    args = driving.parse(__doc__)
    driving.drive(lambda: Client.connect(args), complaint)
