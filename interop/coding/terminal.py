"""A client in a terminal, and somebody who types what there is to do.

What the client shows is kept as it came. `words` takes the moves of the cursor out, which is enough to find a line that was shown.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROWS, COLUMNS = 40, 140
ENTER, DOWN, RIGHT = "\r", "\x1b[B", "\x1b[C"
# What programs ask a terminal, and what one says.
QUESTIONS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}
MOVES = re.compile(rb"\x1b(\[[0-9;?<>=]*[a-zA-Z~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78cM])")


class Terminal:
    """Runs a program, and somebody types."""

    def __init__(self, words: list[str], folder: Path, env: dict[str, str], shown: Path) -> None:
        self._near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        own = {"stdin": far, "stdout": far, "stderr": far, "start_new_session": True, "preexec_fn": _take}
        self.process = subprocess.Popen(words, cwd=folder, env=env, **own)
        os.close(far)
        self._shown = shown.open("wb", buffering=0)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            try:
                data = os.read(self._near, 65536)
            except OSError:  # the program is gone
                return
            for asked, answer in QUESTIONS.items():
                if asked in data:
                    os.write(self._near, answer)
            self._shown.write(data)

    def say(self, prompt: str, is_ready: Callable[[], bool]) -> None:
        """Types the prompt once the client is ready."""
        _wait(is_ready)
        time.sleep(2)  # the prompt is there soon after the tools are, and nothing tells when
        self.press(prompt)
        self.press(ENTER)

    def answer(self, is_asked: Callable[[], bool], keys: tuple[str, ...]) -> None:
        """Presses keys once there is something to answer."""
        _wait(is_asked)
        for key in keys:
            self.press(key)

    def press(self, key: str) -> None:
        time.sleep(1)  # what comes at once is taken for pasted
        os.write(self._near, key.encode())

    def leave(self, is_over: Callable[[], bool]) -> None:
        """Waits for the end, and hangs up."""
        _wait(is_over)
        time.sleep(1)
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def words(shown: Path) -> str:
    raw = re.sub(rb"\x1b\[\d*C", b" ", shown.read_bytes())
    return MOVES.sub(b"", raw).decode(errors="replace")


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not until():
        if time.monotonic() > deadline:
            raise RuntimeError("the client in the terminal did not get that far")
        time.sleep(0.2)


def _take() -> None:
    """Makes the terminal the program's own."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
