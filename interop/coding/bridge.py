"""What is between the clients and the agent: Rialto, once for each session, with its own data.

On stdio the client's own configuration is written by `rialto install`; all that is changed there is the program's path, so that `watch.py`
can listen. Over HTTP there is a `rialto serve` with a token, and a port before it that listens.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import watch

HERE = Path(__file__).parent


@dataclass
class Server:
    """Rialto, as one client is told of it."""

    transport: str
    folder: Path  # of the session: log, data
    agent: str
    rialto: str
    url: str = ""
    address: str = ""  # without the listener before it
    token: str = ""
    process: subprocess.Popen | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "mcp.log"

    def install(self, client: str, home: Path, file: str) -> Path:
        """Has Rialto write its own entry into a client's configuration, and puts the listener into it."""
        words = [self.rialto, "install", client, "--agent", self.agent, "--yes"]
        quiet = {"env": environment(HOME=str(home)), "stdout": subprocess.DEVNULL}
        subprocess.run(words, check=True, cwd=self.folder, **quiet)
        path = home / file
        program = json.dumps(os.path.realpath(self.rialto))
        text = path.read_text()
        assert program in text, f"{path} does not name {program}"
        path.write_text(text.replace(program, json.dumps(str(self.listener()))))
        return path

    def listener(self) -> Path:
        """A program that is `rialto` with somebody who listens. Clients do not hand on all of their environment."""
        script = self.folder / "rialto"
        words = f"'{sys.executable}' -B '{HERE / 'watch.py'}' '{self.log}' '{os.path.realpath(self.rialto)}'"
        script.write_text(f"#!/bin/sh\nRIALTO_DATA='{self.data}' exec {words} \"$@\"\n")
        script.chmod(0o755)
        return script

    def heard(self) -> list[watch.Heard]:
        return watch.heard(self.log)

    def task(self) -> dict[str, Any]:
        """The one task that Rialto has on record, from both sides."""
        # Records of administration have no task.
        ids = {record["event"]["taskId"] for record in self._told("audit")} - {""}
        if len(ids) != 1:
            raise RuntimeError(f"there are {len(ids)} tasks on record")
        return self._told("inspect", ids.pop())

    def _told(self, *words: str) -> Any:
        words = [self.rialto, *words, "--json", "--data", str(self.data)]
        told = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True, cwd=self.folder)
        return json.loads(told.stdout)

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()


class Bridge:
    """The agent, and the program to put before it."""

    def __init__(self, rialto: str) -> None:
        self.rialto = rialto
        run = [str(HERE.parent / "run"), "desk"]
        # It lives no longer than its stdin, which is held open here.
        self._agent = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = self._agent.stdout.readline().split()
        if len(ready) != 2:
            raise SystemExit(f"apps: the agent did not start: run {HERE.parent / 'setup'}")
        self.agent = ready[1]

    def server(self, transport: str, folder: Path) -> Server:
        server = Server(transport, folder, self.agent, self.rialto)
        if transport == "http":
            self._serve(server)
        return server

    def _serve(self, server: Server) -> None:
        add = ["agents", "add", self.agent, "--allow"]
        place = {"cwd": server.folder, "env": environment()}
        subprocess.run([self.rialto, *add, "--data", str(server.data)], check=True, stdout=subprocess.DEVNULL, **place)
        out = server.folder / "serve.out"
        words = [self.rialto, "serve", "--addr", "127.0.0.1:0", "--data", str(server.data)]
        with out.open("w") as told, (server.folder / "serve.log").open("w") as log:
            server.process = subprocess.Popen(words, stdout=told, stderr=log, **place)
        deadline = time.monotonic() + 20
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", out.read_text())):
            if time.monotonic() > deadline or server.process.poll() is not None:
                raise RuntimeError(f"rialto serve did not start: {(server.folder / 'serve.log').read_text()}")
            time.sleep(0.05)
        made = [self.rialto, "tokens", "create", "client", "--data", str(server.data)]
        told = subprocess.run(made, check=True, capture_output=True, text=True, **place)
        server.token = re.search(r"\S{20,}", told.stdout).group()
        server.address = f"127.0.0.1:{found[1]}"
        server.url = f"http://127.0.0.1:{watch.Tap(('127.0.0.1', int(found[1])), server.log).port}/mcp"

    def at_agent(self, task: dict[str, Any]) -> str:
        """How a task stands at the agent itself: `completed`, `canceled`, …"""
        params = {"id": task["wentOut"]["remoteTaskId"]}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params}).encode()
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        with urllib.request.urlopen(urllib.request.Request(self.agent + "/", body, headers)) as answer:
            told = json.load(answer)
        state = told.get("result", {}).get("status", {}).get("state", "unknown")
        return state.removeprefix("TASK_STATE_").lower()

    def stop(self) -> None:
        self._agent.stdin.close()
        self._agent.wait()


def environment(**more: str) -> dict[str, str]:
    """Nothing of whoever runs this: no keys, no proxies, no settings."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"} | more
