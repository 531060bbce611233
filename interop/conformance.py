"""Writes down what came of the MCP conformance suite: docs/CONFORMANCE.md, from the suite's reports.

    conformance.py REPORTS PAGE

REPORTS is a folder with one folder for each version of the protocol. The reasons stand in conformance-<version>.yml.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ("2025-11-25", "2026-07-28")
HEAD = """# MCP conformance

What came of the [MCP conformance suite](https://www.npmjs.com/package/@modelcontextprotocol/conformance), version {suite}, against
`rialto serve`. Behind it is one A2A agent on the official Python SDK (`interop/agents/conformance.py`), whose skills have the names of
the suite's fixtures and do in A2A what the suite wants to see in MCP. `interop/conformance` runs it all again, and writes this page.

The configuration is the default but for names (`[mcp.tool_aliases]`), failures as results (`tool_errors = "result"`), web pages of this machine
that may call (`allowed_origins`), and half a second until a call becomes a task (`task_after_ms = 500`).

A scenario is a set of checks; a warning is about something that a server SHOULD do. (`server-sse-polling` warns that streams do not begin with an
empty event: clients before 2025-11-25 read it as JSON and give up, so none is sent.)
"""


def reasons(version: str) -> dict[str, str]:
    """Scenario -> why it is expected to fail: the comment above it."""
    why, found = "", {}
    for line in (HERE / f"conformance-{version}.yml").read_text().splitlines():
        if line.startswith("  # "):
            why = line[4:]
        elif line.startswith("  - "):
            found[line[4:].strip()] = why
    return found


def scenarios(report: Path) -> list[tuple[str, dict[str, int]]]:
    """Each scenario in the order it ran, and how many of its checks came out how."""
    found = []
    for folder in report.iterdir():
        name, at = re.fullmatch(r"server-(.+)-(\d{4}-\d\d-\d\dT[\d-]+Z)", folder.name).groups()
        counts: dict[str, int] = {}
        for check in json.loads((folder / "checks.json").read_text()):
            counts[check["status"]] = counts.get(check["status"], 0) + 1
        found.append((at, name, counts))
    return [(name, counts) for _, name, counts in sorted(found)]


def page(reports: Path, suite: str) -> str:
    lines = [HEAD.format(suite=suite)]
    for version in VERSIONS:
        told, why = scenarios(reports / version), reasons(version)
        total = {word: sum(counts.get(word, 0) for _, counts in told) for word in ("SUCCESS", "FAILURE")}
        held = sum(not counts.get("FAILURE") for _, counts in told)
        lines += [
            f"## {version}",
            "",
            f"{held} of {len(told)} scenarios pass ({total['SUCCESS']} checks, {total['FAILURE']} fail in the others).",
            "",
            "| scenario | passed | failed | warnings | |",
            "|---|---|---|---|---|",
        ]
        for name, counts in told:
            numbers = (counts.get(word, 0) or "" for word in ("SUCCESS", "FAILURE", "WARNING"))
            lines.append(f"| {name} | {' | '.join(map(str, numbers))} | {why.get(name, '')} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    reports, target = map(Path, sys.argv[1:3])
    package = json.loads((HERE / "env/conformance/package.json").read_text())
    suite = package["dependencies"]["@modelcontextprotocol/conformance"]
    target.write_text(page(reports, suite))
    print(f"conformance: {target} is written")


if __name__ == "__main__":
    main()
