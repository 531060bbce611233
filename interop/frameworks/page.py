"""Writes the frameworks' table into docs/CLIENTS.md, between its two markers."""

import re
from pathlib import Path

from cases import EXACT, TITLES, Verdict
from catalog import FRAMEWORKS

BEGIN, END = "<!-- frameworks: begin -->", "<!-- frameworks: end -->"
NAMES = {"stdio": "stdio", "http": "HTTP"}
HEAD = """## Agent frameworks

Agents of {count} frameworks use an A2A agent through Rialto, as a user of each framework would write it: Rialto is named as an MCP server, `rialto mcp
--agent URL` on stdio, or `rialto serve` over HTTP with a bearer token. Nothing else is configured in Rialto, and in a framework only what
the notes say. `interop/frameworks/run` runs it all again and writes this section; a smaller set (marked *) runs in CI.

The model is a script on loopback that speaks the API of OpenAI, Anthropic or Google. It refuses tool names and schemas that the vendor
documents as invalid, with status 400 like the real API, and a run is judged by what the model read. The agent is `interop/agents/desk.py`.

*Exact*: nothing is lost. *Degraded*: the framework carries less than Rialto sends. *Not supported*: the framework has no such thing.
"""


def write(path: Path, verdicts: dict[tuple[str, str, str], Verdict], transports: tuple[str, ...]) -> None:
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    if not rest:
        before, after = text.rstrip("\n") + "\n\n", "\n"
    path.write_text(f"{before}{BEGIN}\n{section(verdicts, transports)}{END}{after}")


def section(verdicts: dict[tuple[str, str, str], Verdict], transports: tuple[str, ...]) -> str:
    lines = [HEAD.format(count=len(FRAMEWORKS)), f"| | {' | '.join(short_title(case) for case in TITLES)} |", "|---" * (len(TITLES) + 1) + "|"]
    for framework in FRAMEWORKS:
        cells = [both(*(verdicts[framework.key, transport, case].grade for transport in transports)) for case in TITLES]
        lines.append(f"| {framework.title}{' *' if framework.in_ci else ''} | {' | '.join(cells)} |")
    lines += ["", "Where stdio and HTTP differ, both are given, in this order. The columns:", ""]
    lines += [f"- **{short_title(case)}**: {title}." for case, title in TITLES.items()]
    lines += ["", "| | packages | model API | tool name | notes |", "|---|---|---|---|---|"]
    for framework in FRAMEWORKS:
        name = verdicts[framework.key, transports[0], "list"].note.partition(";")[0]
        notes = " ".join(filter(None, [framework.about, *notes_of(framework.key, verdicts, transports)]))
        title = f"[{framework.title}](../interop/frameworks/drivers/{framework.driver})"
        lines.append(f"| {title} | {', '.join(framework.versions())} | {framework.api} | {name} | {notes} |")
    return "\n".join(lines) + "\n"


def short_title(case: str) -> str:
    return {"work": "20 s call", "elicitation": "elicitation", "failure": "failing call", "mistake": "wrong arguments", "text": "plain text"}.get(case, case)


def both(stdio: str, http: str) -> str:
    return stdio if stdio == http else f"{stdio}, {http}"


def notes_of(framework: str, verdicts: dict[tuple[str, str, str], Verdict], transports: tuple[str, ...]) -> list[str]:
    """What is said of cells that are not exact; equal notes of both transports once."""
    found = []
    for case in TITLES:
        notes = {transport: verdicts[framework, transport, case] for transport in transports}
        bad = {NAMES[transport]: one.note for transport, one in notes.items() if one.grade not in (EXACT, "not supported")}
        if len(bad) == len(transports) and len(set(bad.values())) == 1:
            bad = {"": next(iter(bad.values()))}
        for where, note in bad.items():
            clean = re.sub(r"^`[^`]*`; ", "", note).replace("\n", " ").replace("|", "\\|")
            found.append(f"{short_title(case)}{f' ({where})' if where else ''}: {clean}.")
    return found
