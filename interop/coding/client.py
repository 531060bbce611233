"""What all clients have in common: how one is started, waited for and killed."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge import Server, environment
from terminal import Terminal

HOME = Path(os.environ["RIALTO_INTEROP_HOME"])
ENVIRONMENTS = Path(__file__).parent.parent / "env"
# Nobody checks it: the model is ours.
KEY = "not-a-key"


@dataclass
class Session:
    """One client process with its own home, its own Rialto and its own model."""

    folder: Path
    server: Server
    model: str  # the address of its model
    patience: int | None = None  # the client's own timeout for a tool, in seconds
    attended: bool = False  # whether somebody looks on, and answers questions
    in_terminal: bool = False
    process: subprocess.Popen | None = None
    terminal: Terminal | None = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def start(self, words: list[str], env: dict[str, str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen:
        env = environment(HOME=str(self.home), RIALTO_TOKEN=self.server.token, **env)
        if self.in_terminal:
            self.terminal = Terminal(words, self.work, env | {"COLORTERM": "truecolor"}, self.folder / "shown")
            self.process = self.terminal.process
            return self.process
        with (self.folder / "stdout").open("ab") as out, (self.folder / "stderr").open("ab") as err:
            stdout = subprocess.PIPE if stdin == subprocess.PIPE else out
            # A group of its own, so that what it leaves behind can be ended too.
            self.process = subprocess.Popen(
                words, cwd=self.work, env=env, stdin=stdin, stdout=stdout, stderr=err, start_new_session=True
            )
        return self.process

    def wait(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the client did not end within {seconds} s") from None

    def kill(self) -> None:
        """As a crash would: nothing is said, everything is closed."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def clean(self) -> None:
        """Ends what the client left behind."""
        if self.process:
            deadline = time.monotonic() + 8  # Rialto ends by itself when its client is gone
            while _lives(self.process.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.poll()

    def told(self) -> list[dict[str, Any]]:
        """The JSON lines on stdout."""
        path = self.folder / "stdout"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class Client:
    """A client: how it is configured and started, and what it calls things."""

    key = ""
    title = ""
    package = ""
    environment = ""  # the folder in env/
    about = ""  # what its users should know, for the page
    answers = ""  # who answers questions here, without a terminal
    keys: tuple[str, ...] = ()  # how `green` is chosen in its dialogue
    more = ""  # more of its configuration that was used, for the page

    @property
    def version(self) -> str:
        pins = json.loads((ENVIRONMENTS / self.environment / "package.json").read_text())
        return pins["dependencies"][self.package]

    def installed(self, path: str) -> Path:
        return HOME / self.environment / "node_modules" / path

    def tool(self, name: str) -> str:
        """What the model calls the tool that Rialto lists as `name`."""
        raise NotImplementedError

    def configure(self, session: Session) -> Path:
        """Writes the client's configuration; the file that names Rialto."""
        raise NotImplementedError

    def start(self, session: Session, prompt: str) -> None:
        """Starts it with something to do; it ends when that is done. In a terminal it waits for somebody to type."""
        raise NotImplementedError

    def progress(self, session: Session) -> list[str]:
        """What it told its user of the progress of a call, as far as that is seen here."""
        return []


def written(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def with_entry(path: Path, entry: dict[str, Any]) -> Path:
    """Adds to the entry for Rialto in a JSON file, and makes it if there is none."""
    whole = json.loads(path.read_text())
    known = whole.setdefault("mcpServers", {}).setdefault("rialto", {})
    known.update(entry)
    return written(path, whole)
