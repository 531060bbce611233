"""Drives an A2A client: commands on stdin, what the client saw on stdout, both as JSON lines.

What the SDKs of all generations hand back is said in the same neutral words, so
whoever reads the lines needs to know no dialect. See ../README.md.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

INTERFACE = ("send", "stream", "get", "list", "cancel", "resubscribe")
INTERFACE += ("push_set", "push_get", "push_list", "push_delete", "card")


def parse(description: str, bindings: tuple[str, ...] = ("jsonrpc",)) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", required=True, help="where the card is, without /.well-known")
    parser.add_argument("--token", help="shown as the card asks for it")
    parser.add_argument("--binding", choices=bindings, default="jsonrpc")
    return parser.parse_args()


def channel(card_url: str, target: str, interceptors=None):
    """A gRPC channel. Its address has no scheme, so it is encrypted where the card was.

    The authority is the one of HTTPS: the file SSL_CERT_FILE, which OpenSSL and httpx read themselves.
    """
    import grpc  # only the gRPC binding needs it

    if not card_url.startswith("https://"):
        return grpc.aio.insecure_channel(target, interceptors=interceptors)
    ca = os.environ.get("SSL_CERT_FILE")
    credentials = grpc.ssl_channel_credentials(Path(ca).read_bytes() if ca else None)
    return grpc.aio.secure_channel(target, credentials, interceptors=interceptors)


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)


class Driver:
    """Runs every command beside the others; each line about one carries its id."""

    def __init__(self, client, complaint) -> None:
        self.client = client
        self.complaint = complaint
        self.running: dict[Any, asyncio.Task] = {}

    async def obey(self) -> None:
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            if "drop" in command:
                self.running[command["drop"]].cancel()
            else:
                self.running[command["id"]] = asyncio.create_task(self.run(command))
        await asyncio.gather(*self.running.values())

    async def run(self, command: dict[str, Any]) -> None:
        tag = {"id": command["id"]}
        try:
            say(tag | {"result": await self.answer(command, tag)})
        except asyncio.CancelledError:
            say(tag | {"dropped": True})
        except Exception as error:
            say(tag | failure(error, self.complaint))

    async def answer(self, command: dict[str, Any], tag: dict[str, Any]) -> Any:
        run = getattr(self.client, command["op"], None)
        if command["op"] not in INTERFACE or run is None:
            raise NotImplementedError(f"this client has no {command['op']}")
        if command["op"] not in ("stream", "resubscribe"):
            return await run(command)
        async for event in run(command):
            say(tag | {"event": event})
        return None


def drive(connect, complaint) -> None:
    """Connects, greets with the card, and obeys until stdin ends."""
    end_with_parent()

    async def main() -> None:
        client = await connect()
        say({"card": client.read_card(), "ops": [op for op in INTERFACE if hasattr(client, op)]})
        await Driver(client, complaint).obey()

    try:
        asyncio.run(main())
    except Exception as error:
        say(failure(error, complaint))
        sys.exit(1)


def failure(error: Exception, complaint) -> dict[str, Any]:
    told = {"message": str(error), "class": type(error).__name__}
    return {"error": told | complaint(error)}


def end_with_parent() -> None:
    parent = os.getppid()

    def wait_for_the_end() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()


def parts_of(command: dict[str, Any]) -> list[dict[str, Any]]:
    """What a message says, as neutral parts: text or data."""
    return [{key: command[key]} for key in ("text", "data") if key in command]


def metadata_of(command: dict[str, Any]) -> dict[str, Any]:
    """What goes with a message: the skill it is for, and whatever the command adds."""
    skill = {"skillId": command["skill"]} if "skill" in command else {}
    return skill | command.get("metadata", {})


def card(shown: dict[str, Any]) -> dict[str, Any]:
    """A card's JSON, of any generation."""
    return {
        "name": shown["name"],
        "skills": [skill["id"] for skill in shown.get("skills") or []],
        "streaming": shown["capabilities"].get("streaming", False),
        "push": shown["capabilities"].get("pushNotifications", False),
        "schemes": sorted(shown.get("securitySchemes") or {}),
    }


def event(shown: dict[str, Any]) -> dict[str, Any]:
    """A stream's event, or what a message was answered with; JSON of any generation."""
    kind = shown.get("kind")
    if "task" in shown or kind == "task":
        return {"task": task(shown.get("task", shown))}
    if "message" in shown or kind == "message":
        return {"message": {"text": said(shown.get("message", shown))}}
    if "artifact" in shown or "artifactUpdate" in shown:
        update = shown.get("artifactUpdate", shown)
        return {"artifact": {"parts": parts(update["artifact"])}, "task_id": task_id(update)}
    if "statusUpdate" in shown or kind == "status-update" or "final" in shown:
        update = shown.get("statusUpdate", shown)
        return {"status": status(update["status"]), "task_id": task_id(update)}
    return {"task": task(shown)}  # 0.1 has no kind


def task(shown: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": shown["id"],
        "context": shown.get("contextId") or shown.get("sessionId"),
        **status(shown["status"]),
        "artifacts": [parts(artifact) for artifact in shown.get("artifacts") or []],
    }


def status(shown: dict[str, Any]) -> dict[str, Any]:
    state = shown["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {"state": state, "text": said(shown.get("message") or {})}


def said(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in parts(message))


def parts(shown: dict[str, Any]) -> list[dict[str, Any]]:
    return [part(one) for one in shown.get("parts") or []]


def part(shown: dict[str, Any]) -> dict[str, Any]:
    if "text" in shown:
        return {"text": shown["text"]}
    if "data" in shown:
        return {"data": shown["data"]}
    file = shown.get("file") or {}
    return {
        "file": {
            "name": shown.get("filename") or file.get("name"),
            "mime": shown.get("mediaType") or file.get("mimeType"),
            "bytes": shown.get("raw") or file.get("bytes"),
            "uri": shown.get("url") or file.get("uri"),
        }
    }


def task_id(update: dict[str, Any]) -> str:
    return update.get("taskId") or update["id"]
