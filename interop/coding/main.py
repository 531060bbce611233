"""Has every client do every case on every transport, and tells whether it is as good as it was.

    main.py RIALTO [--client KEY] [--transport stdio|http] [--trial KEY] [--keep FOLDER] [--page FILE]
"""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cases
import page
import terminal
from bridge import Bridge, Server
from cases import FAILED, TRIALS, Seen, Trial, Verdict
from claude_code import ClaudeCode
from client import Client, Session
from codex import Codex
from gemini_cli import GeminiCli
from model import Models, Play, Script

CLIENTS: list[Client] = [ClaudeCode(), GeminiCli(), Codex()]
TRANSPORTS = ("stdio", "http")
EXPECTED = Path(__file__).parent.parent / "apps.expected"
PROMPT = "Do what you were told."
# Sessions at once. They wait more than they work.
AT_ONCE = 6


@dataclass
class Run:
    """What all sessions share."""

    bridge: Bridge
    models: Models
    folder: Path
    snippets: dict[tuple[str, str], str]  # (client, transport) -> what its configuration said of Rialto


class Attempt(Session):
    """A session that can be begun again with another model."""

    run: Run
    key: str

    def again(self, client: Client, script: Script) -> Play:
        """A new process of the client, at the same Rialto or its data."""
        key = f"{self.key}-again"
        next_one = attempt(self.run, client, key, self.server, script)
        next_one.begin(client)
        next_one.wait(60)
        next_one.clean()
        return self.run.models.plays[key]

    def begin(self, client: Client) -> None:
        self.home.mkdir(parents=True)
        self.work.mkdir()
        path = client.configure(self)
        if self.patience is None:
            self.run.snippets.setdefault((client.key, self.server.transport), page.snippet(path, self.server))
        client.start(self, PROMPT)


def attempt(run: Run, client: Client, key: str, server: Server, script: Script) -> Attempt:
    folder = run.folder / key
    folder.mkdir(exist_ok=True)
    made = Attempt(folder, server, run.models.add(key, Play(script, folder)))
    made.run, made.key = run, key
    return made


def try_out(run: Run, client: Client, transport: str, trial: Trial) -> dict[tuple[str, str, str], Verdict]:
    """The verdicts of one session."""
    key = f"{client.key}-{transport}-{trial.key}"
    folder = run.folder / key
    folder.mkdir()
    server = session = None
    try:
        server = run.bridge.server(transport, folder)
        session = attempt(run, client, key, server, trial.script(client))
        session.patience, session.attended, session.in_terminal = trial.patience, trial.attended, trial.in_terminal
        session.begin(client)
        if trial.in_terminal:
            type_in(client, session, run.models.plays[key])
        elif trial.killed:
            until_called(session)
            session.kill()
        else:
            session.wait(120)
        session.clean()
        seen = Seen(client, session, run.models.plays[key], run.bridge)
        verdicts = {case: judge(seen) for case, judge in trial.cases.items()}
    except Exception as trouble:  # a session that breaks is a bad result, not the end of the run
        (folder / "trouble").write_text(traceback.format_exc())
        verdicts = {case: Verdict(FAILED, f"{type(trouble).__name__}: {trouble}") for case in trial.cases}
    finally:
        if session:
            session.clean()
        if server:
            server.stop()
    for case, verdict in verdicts.items():
        print(f"apps: {client.key} {transport} {case}: {verdict.grade}{f' ({verdict.note})' if verdict.note else ''}", flush=True)
    return {(client.key, transport, case): verdict for case, verdict in verdicts.items()}


def type_in(client: Client, session: Session, play: Play) -> None:
    """Somebody waits for the tools, says what to do, answers what is asked, and waits until the model knows what came of it."""
    typist = session.terminal
    typist.say(PROMPT, lambda: any("tools" in one.message.get("result", {}) for one in session.server.heard()))
    if session.attended and client.keys:
        shown = session.folder / "shown"
        typist.answer(lambda: cases.QUESTION.search(terminal.words(shown)) is not None, client.keys)
    typist.leave(lambda: cases.END.search(play.told()) is not None)


def until_called(session: Session) -> None:
    """Waits until a call is well under way."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        notes = [one for one in session.server.heard() if one.message.get("method") == "notifications/progress"]
        if len(notes) >= 3:
            return
        time.sleep(0.2)
    raise RuntimeError("the call did not begin")


def expected() -> dict[tuple[str, str, str], str]:
    """(client, transport, case) -> grade, as it was at least."""
    lines = (line.split(maxsplit=3) for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#"))
    return {(client, transport, case): grade for client, transport, case, grade in lines}


def worse(verdicts: dict[tuple[str, str, str], Verdict]) -> list[str]:
    rank = {grade: at for at, grade in enumerate(cases.grades())}
    found = []
    for cell, grade in expected().items():
        got = verdicts.get(cell)
        if got and rank[got.grade] < rank[grade]:
            found.append(f"{' '.join(cell)} is {got.grade}, and was {grade}: {got.note}")
    return found + [f"{' '.join(cell)} failed: {got.note}" for cell, got in verdicts.items() if cell not in expected() and got.grade == FAILED]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rialto")
    parser.add_argument("--client", choices=[client.key for client in CLIENTS])
    parser.add_argument("--transport", choices=TRANSPORTS)
    parser.add_argument("--trial", choices=[trial.key for trial in TRIALS])
    parser.add_argument("--keep", type=Path, help="where the sessions' files stay")
    parser.add_argument("--page", type=Path, help="where a whole run is written down")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="rialto-apps-"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = Run(Bridge(chosen.rialto), Models(), folder.resolve(), {})
    every = [
        (client, transport, trial)
        # The long ones first: the others fit between them.
        for trial in sorted(TRIALS, key=lambda trial: trial.key not in ("long", "progress", "terminal", "dialogue", "killed", "timeout"))
        for client in CLIENTS
        for transport in TRANSPORTS
        if chosen.client in (None, client.key) and chosen.transport in (None, transport) and chosen.trial in (None, trial.key)
    ]
    verdicts: dict[tuple[str, str, str], Verdict] = {}
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for told in pool.map(lambda one: try_out(run, *one), every):
                verdicts |= told
    finally:
        run.bridge.stop()
    whole = len(every) == len(TRIALS) * len(CLIENTS) * len(TRANSPORTS)
    if whole and chosen.page:
        page.write(chosen.page, page.page(CLIENTS, TRANSPORTS, verdicts, run.snippets))
        print(f"apps: {chosen.page} is written")
    faults = worse(verdicts)
    for fault in faults:
        print(f"apps: {fault}", file=sys.stderr)
    if faults:
        print(f"apps: what the sessions left behind is in {folder}", file=sys.stderr)
    elif not chosen.keep:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
