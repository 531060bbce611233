"""Listens to what a client and Rialto say to each other, and changes nothing of it.

Between a client and `rialto mcp` this file is a program, `watch.py LOG COMMAND…`: the client starts it in place of the command. Before
`rialto serve` it is a `Tap`: a port of its own whose bytes it passes on, so that whoever hangs up is felt on the other side at once.
Both keep the raw bytes, each piece with its time; `heard` finds the messages in them.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Heard:
    """One JSON-RPC message."""

    at: float
    by_client: bool
    message: dict[str, Any]


class Log:
    """Appends pieces: a line with time, stream, direction and size, then the bytes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def add(self, stream: int, direction: str, data: bytes) -> None:
        with self._lock:
            self._file.write(b"%.3f %d %s %d\n" % (time.time(), stream, direction.encode(), len(data)) + data)


def heard(path: Path) -> list[Heard]:
    """Every message in a log, in the order of their beginnings."""
    streams: dict[tuple[int, bytes], list[tuple[float, bytes]]] = defaultdict(list)
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        when, stream, direction, size = data[at:end].split()
        at = end + 1 + int(size)
        streams[int(stream), direction].append((float(when), data[end + 1 : at]))
    found = [one for (_, direction), pieces in streams.items() for one in _messages(pieces, direction == b"client")]
    return sorted(found, key=lambda one: one.at)


def _messages(pieces: list[tuple[float, bytes]], by_client: bool):
    """The JSON objects of a stream that are messages; HTTP's heads and the sizes of its chunks are passed over."""
    whole, starts = b"", []
    for when, piece in pieces:
        starts.append((len(whole), when))
        whole += piece
    decoder = json.JSONDecoder()
    for begin in re.finditer(rb"(?m)^(?:data: ?)?(?=\{)", whole):
        rest = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", whole[begin.end() :])
        try:
            message, _ = decoder.raw_decode(rest.decode(errors="replace"))
        except ValueError:
            continue
        if isinstance(message, dict) and "jsonrpc" in message:
            yield Heard(max(when for start, when in starts if start <= begin.end()), by_client, message)


class Tap:
    """A port before another one."""

    def __init__(self, target: tuple[str, int], log: Path) -> None:
        self._target = target
        self._log = Log(log)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        count = 0
        while True:
            near, _ = self._server.accept()
            count += 1
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            for pair in ((near, far, "client"), (far, near, "rialto")):
                threading.Thread(target=self._pass_on, args=(count, *pair), daemon=True).start()

    def _pass_on(self, stream: int, source: socket.socket, target: socket.socket, direction: str) -> None:
        try:
            while data := source.recv(65536):
                self._log.add(stream, direction, data)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main() -> None:
    log = Log(Path(sys.argv[1]))
    stream = os.getpid()  # a client may start its server twice
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: child.send_signal(number))

    def inwards() -> None:
        while data := os.read(0, 65536):
            log.add(stream, "client", data)
            child.stdin.write(data)
        child.stdin.close()

    threading.Thread(target=inwards, daemon=True).start()
    while data := os.read(child.stdout.fileno(), 65536):
        log.add(stream, "rialto", data)
        try:
            os.write(1, data)
        except BrokenPipeError:  # the client is gone: the rest is listened to all the same
            pass
    os._exit(child.wait() & 0xFF)


if __name__ == "__main__":
    main()
