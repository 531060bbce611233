"""Writes down what came of the MCP conformance suite: docs/CONFORMANCE.md, from the suite's reports.

    conformance.py REPORTS PAGE
    conformance.py --judge REPORTS VERSION    whether Rialto as a client came out as expected

REPORTS is a folder with two folders for each version of the protocol: one of the server, and one of the client. The reasons stand in
conformance-<version>.yml.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ("2025-11-25", "2026-07-28")
HEAD = """# MCP conformance

What came of the [MCP conformance suite](https://www.npmjs.com/package/@modelcontextprotocol/conformance), version {suite}.
`interop/conformance` runs it all again, and writes this page. A scenario is a set of checks; a warning is about something that SHOULD be so.

**As a server** `rialto serve` has one A2A agent behind it, on the official Python SDK (`interop/agents/conformance.py`), whose skills have the
names of the suite's fixtures and do in A2A what the suite wants to see in MCP.
The configuration is the default but for names (`[mcp.tool_aliases]`), web pages of this machine
that may call (`allowed_origins`), and half a second until a call becomes a task (`task_after_ms = 500`).
(`server-sse-polling` warns that streams do not begin with an empty event: clients before 2025-11-25 read it as JSON and give up, so none is sent.)

**As a client** `rialto serve` has the suite's own server behind it (`[[mcp_servers]]`), and what the scenario wants to be called is called at Rialto's
MCP door by a client that does next to nothing itself (`interop/clients/conformance.py`). The configuration is the default.
"""


def reasons(version: str, side: str) -> dict[str, str]:
    """Scenario -> why it is expected to fail: the comment above it."""
    why, found, here = "", {}, ""
    for line in (HERE / f"conformance-{version}.yml").read_text().splitlines():
        if not line.startswith((" ", "#")):
            here = line.rstrip(":")
        elif line.startswith("  # "):
            why = line[4:]
        elif line.startswith("  - ") and here == side:
            found[line[4:].strip()] = why
    return found


def scenarios(report: Path) -> list[tuple[str, dict[str, int]]]:
    """Each scenario in the order it ran, and how many of its checks came out how."""
    found = []
    for checks in report.rglob("checks.json"):
        folder = str(checks.parent.relative_to(report))
        name, at = re.fullmatch(r"(?:server-)?(.+)-(\d{4}-\d\d-\d\dT[\d-]+Z)", folder).groups()
        counts: dict[str, int] = {}
        for check in json.loads(checks.read_text()):
            counts[check["status"]] = counts.get(check["status"], 0) + 1
        found.append((at, name, counts))
    return [(name, counts) for _, name, counts in sorted(found)]


def folder(reports: Path, version: str, side: str) -> Path:
    return reports / (version if side == "server" else f"client-{version}")


def table(reports: Path, version: str, side: str) -> list[str]:
    told, why = scenarios(folder(reports, version, side)), reasons(version, side)
    total = {word: sum(counts.get(word, 0) for _, counts in told) for word in ("SUCCESS", "FAILURE")}
    held = sum(not counts.get("FAILURE") for _, counts in told)
    lines = [
        f"## {version}, as a {side}",
        "",
        f"{held} of {len(told)} scenarios pass ({total['SUCCESS']} checks, {total['FAILURE']} fail in the others).",
        "",
        "| scenario | passed | failed | warnings | |",
        "|---|---|---|---|---|",
    ]
    for name, counts in told:
        numbers = (counts.get(word, 0) or "" for word in ("SUCCESS", "FAILURE", "WARNING"))
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} | {why.get(name, '')} |")
    return [*lines, ""]


def page(reports: Path, suite: str) -> str:
    lines = [HEAD.format(suite=suite)]
    for side in ("server", "client"):
        for version in VERSIONS:
            lines += table(reports, version, side)
    return "\n".join(lines)


def judge(reports: Path, version: str) -> int:
    """Whether everything came out as expected: what fails has its reason, and what has one fails."""
    expected, failed = reasons(version, "client"), 0
    for name, counts in scenarios(folder(reports, version, "client")):
        passes = counts.get("SUCCESS", 0) > 0 and not counts.get("FAILURE")
        as_expected = passes != (name in expected)
        failed += not as_expected
        print(f"{'✓' if passes else '✗'} {name}: {counts}{'' if as_expected else '  <- not as expected'}")
    return min(failed, 1)


def main() -> None:
    if sys.argv[1] == "--judge":
        raise SystemExit(judge(Path(sys.argv[2]), sys.argv[3]))
    reports, target = map(Path, sys.argv[1:3])
    package = json.loads((HERE / "env/conformance/package.json").read_text())
    suite = package["dependencies"]["@modelcontextprotocol/conformance"]
    target.write_text(page(reports, suite))
    print(f"conformance: {target} is written")


if __name__ == "__main__":
    main()
