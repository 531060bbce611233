"""Runs an agent of every framework with Rialto as its MCP server, and reports whether each is as good as it was.

    main.py RIALTO [--framework KEY]... [--ci] [--transport stdio|http] [--case KEY] [--keep FOLDER] [--page FILE]
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "coding"))  # the model and the bridge; this folder comes first

import cases  # noqa: E402
import page  # noqa: E402
import watch  # noqa: E402
from bridge import Bridge, Server, environment  # noqa: E402
from cases import CASES, DEGRADED, EXACT, UNSUPPORTED, Case, Verdict  # noqa: E402
from catalog import FRAMEWORKS, Framework  # noqa: E402
from model import Models, Play  # noqa: E402

TRANSPORTS = ("stdio", "http")
EXPECTED = HERE / "expected"
HOME = Path(os.environ["RIALTO_INTEROP_HOME"])
RUN_SECONDS = 90
PATIENCE_SECONDS = 60
AT_ONCE = 6  # drivers; they wait more than they work
# No framework reports to its maker, and a proxy that does not exist stops what would leave this machine.
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "MASTRA_TELEMETRY_DISABLED": "1",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}

Cell = tuple[str, str, str]  # framework, transport, case


@dataclass
class Driver:
    """A process of one framework, which runs jobs one after the other."""

    framework: Framework
    folder: Path
    process: subprocess.Popen | None = None
    outcomes: queue.Queue = field(default_factory=queue.Queue)

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        if self.process is None:
            self._start()
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        try:
            outcome = self.outcomes.get(timeout=RUN_SECONDS)
        except queue.Empty:
            outcome = {"error": f"no end within {RUN_SECONDS} s"}
        if outcome is None:
            outcome = {"error": f"the process ended with {self.process.wait()}"}
        if "answer" not in outcome:
            self.stop()  # what a broken run left behind is not the next one's
        return outcome

    def _start(self) -> None:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        named = {"RIALTO_INTEROP_HOME": str(HOME), "FRAMEWORK_ENV": self.framework.environment, "HOME": str(home)}
        with (self.folder / "stderr").open("a") as errors:
            self.process = subprocess.Popen(
                [*interpreter(self.framework), str(HERE / "drivers" / self.framework.driver)],
                cwd=self.folder, env=environment(**QUIET, **named), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, start_new_session=True,
            )  # fmt: skip
        self.outcomes = queue.Queue()
        threading.Thread(target=collect, args=(self.process.stdout, self.outcomes), daemon=True).start()

    def stop(self) -> None:
        """Ends the process and all that it started."""
        if self.process is None:
            return
        try:
            self.process.stdin.close()
            self.process.wait(3)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.kill()
        self.process.wait()
        self.process = None

    def kill(self) -> None:
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def collect(stdout, outcomes: queue.Queue) -> None:
    for line in stdout:
        if line.startswith("OUTCOME "):
            outcomes.put(json.loads(line.removeprefix("OUTCOME ")))
    outcomes.put(None)


def interpreter(framework: Framework) -> list[str]:
    if framework.is_node:
        return [str(HERE.parent / "run"), "node"]
    return [str(HOME / framework.environment / "bin/python"), "-B"]


@dataclass
class Session:
    """One framework on one transport: a driver, and the Rialto that it is given."""

    bridge: Bridge
    models: Models
    framework: Framework
    transport: str
    folder: Path
    driver: Driver | None = None
    server: Server | None = None

    def run(self, chosen: list[Case]) -> dict[Cell, Verdict]:
        self.folder.mkdir(parents=True)
        verdicts = {}
        self.driver = Driver(self.framework, self.folder)
        self.server = self.bridge.server(self.transport, self.folder)
        try:
            for case in chosen:
                for key, verdict in self._run_case(case).items():
                    verdicts[self.framework.key, self.transport, key] = verdict
                    note = f" ({verdict.note})" if verdict.note else ""
                    # One write: `print` writes the end of the line by itself, and another thread's line may come in between.
                    sys.stdout.write(f"frameworks: {self.framework.key} {self.transport} {key}: {verdict.grade}{note}\n")
                    sys.stdout.flush()
        finally:
            self.stop()
        return verdicts

    def stop(self) -> None:
        if self.driver:
            self.driver.stop()
        if self.server:
            self.server.stop()

    def kill(self) -> None:
        if self.driver:
            self.driver.kill()
        if self.server and self.server.process:
            self.server.process.terminate()

    def _run_case(self, case: Case) -> dict[str, Verdict]:
        if case.elicits and not self.framework.elicits:
            return {case.key: Verdict(UNSUPPORTED, "its users cannot declare elicitation")}
        options = {"answer": {"colour": "green"}} if case.elicits else {}
        run = self._run_agent(case, case.key, options)
        verdicts = {"list": cases.judge_list(run)} if case is CASES[0] else {}
        verdict = case.judge(run)
        if case.waits and verdict.grade != EXACT and self.framework.timeout:
            again = case.judge(self._run_agent(case, f"{case.key}-patient", {"patience": PATIENCE_SECONDS}))
            if again.grade == EXACT:
                verdict = Verdict(DEGRADED, f"{verdict.note}; exact with `{self.framework.timeout}`")
        return verdicts | {case.key: verdict}

    def _run_agent(self, case: Case, name: str, options: dict[str, Any]) -> cases.Run:
        folder = self.folder / name
        folder.mkdir()
        play, wire = Play(case.script, folder), folder / "mcp.log"
        job = {"model": self.models.add(f"{self.framework.key}-{self.transport}-{name}", play), "transport": self.transport}
        outcome = self.driver.run(job | options | self._target(folder, wire))
        (folder / "outcome.json").write_text(json.dumps(outcome, indent=2))
        return cases.Run(play, outcome, any(is_question(one.message) for one in watch.heard(wire)))

    def _target(self, folder: Path, wire: Path) -> dict[str, Any]:
        """Rialto, as a framework's configuration names it; the log is the run's own."""
        if self.transport == "stdio":
            own = Server("stdio", folder, self.server.agent, self.server.rialto)
            return {"command": str(own.listener()), "args": ["mcp", "--agent", self.server.agent]}
        port = int(self.server.address.rpartition(":")[2])
        url = f"http://127.0.0.1:{watch.Tap(('127.0.0.1', port), wire).port}/mcp"
        return {"url": url, "headers": {"Authorization": f"Bearer {self.server.token}"}}


def is_question(message: dict[str, Any]) -> bool:
    """Whether it asks the person: a request until MCP 2025-11-25, a result since 2026-07-28."""
    result = message.get("result")
    return message.get("method") == "elicitation/create" or isinstance(result, dict) and result.get("resultType") == "input_required"


def end_on_signal(sessions: list[Session]) -> None:
    """Leaves no process behind when this one is told to end."""

    def end(*_signal) -> None:
        for session in sessions:
            session.kill()
        os._exit(1)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def expected() -> dict[Cell, str]:
    """The grade that each cell had at least."""
    lines = (line.split(maxsplit=3) for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#"))
    return {(framework, transport, case): grade for framework, transport, case, grade in lines}


def find_regressions(verdicts: dict[Cell, Verdict]) -> list[str]:
    rank = {grade: at for at, grade in enumerate(cases.GRADES)}
    known = expected()
    return [
        f"{' '.join(cell)} is {got.grade}, and was {known.get(cell, 'not recorded')}: {got.note}"
        for cell, got in verdicts.items()
        if rank[got.grade] < rank[known.get(cell, UNSUPPORTED)]
    ]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rialto")
    parser.add_argument("--framework", action="append", choices=[one.key for one in FRAMEWORKS])
    parser.add_argument("--ci", action="store_true", help="the smaller set that CI runs")
    parser.add_argument("--transport", choices=TRANSPORTS)
    parser.add_argument("--case", choices=[case.key for case in CASES])
    parser.add_argument("--keep", type=Path, help="folder that keeps the files of all runs")
    parser.add_argument("--page", type=Path, help="page whose table a whole run replaces")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    folder = (chosen.keep or Path(tempfile.mkdtemp(prefix="rialto-frameworks-"))).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    frameworks = [one for one in FRAMEWORKS if (not chosen.ci or one.in_ci) and (not chosen.framework or one.key in chosen.framework)]
    if missing := [one.key for one in frameworks if not (HOME / one.environment / ".pins").exists()]:
        sys.exit(f"frameworks: not installed: {', '.join(missing)}. Install them: interop/setup --frameworks")
    picked = [case for case in CASES if chosen.case in (None, case.key)]
    bridge, models = Bridge(chosen.rialto), Models()
    sessions = [
        Session(bridge, models, framework, transport, folder / f"{framework.key}-{transport}")
        for framework in frameworks
        for transport in TRANSPORTS
        if chosen.transport in (None, transport)
    ]
    end_on_signal(sessions)
    verdicts: dict[Cell, Verdict] = {}
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for told in pool.map(lambda session: session.run(picked), sessions):
                verdicts |= told
    finally:
        bridge.stop()
    if chosen.page and len(verdicts) == len(FRAMEWORKS) * len(TRANSPORTS) * len(cases.TITLES):
        page.write(chosen.page, verdicts, TRANSPORTS)
        print(f"frameworks: {chosen.page} is written")
    faults = find_regressions(verdicts)
    for fault in faults:
        print(f"frameworks: {fault}", file=sys.stderr)
    if faults:
        print(f"frameworks: the files of all runs are in {folder}", file=sys.stderr)
    elif not chosen.keep:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
