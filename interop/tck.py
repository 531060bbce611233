"""Reads the reports of the A2A TCK, and says how many requirements and tests were met.

tck.py 1.0 REPORT    ends with 1 if a MUST or a SHOULD was not met
tck.py 0.3 REPORT    ends with 1 if a test failed
"""

import json
import sys
from collections import Counter
from pathlib import Path


def main() -> int:
    version, report = sys.argv[1:]
    rows = first(Path(f"{report}.json")) if version == "1.0" else older(Path(report))
    print(f"\ntck: A2A {version}\n")
    print("| binding | what | passed | failed | not applicable |\n|---|---|---|---|---|")
    for (binding, what), count in sorted(rows.items()):
        print(f"| {binding} | {what} | {count['PASS']} | {count['FAIL']} | {count['SKIPPED']} |")
    return int(not rows or any(count["FAIL"] for count in rows.values()))


def first(report: Path) -> dict:
    """Requirements by binding and level."""
    rows = {}
    for name, requirement in json.loads(report.read_text())["per_requirement"].items():
        for binding, outcome in requirement["transports"].items():
            if binding in ("jsonrpc", "http_json", "agent_card"):
                rows.setdefault((binding, requirement["level"]), Counter())[outcome] += 1
            if outcome == "FAIL":
                print(f"tck: {requirement['level']} {name} on {binding}: {requirement['errors']}")
    return rows


def older(report: Path) -> dict:
    """Tests by binding and category."""
    outcomes = {"passed": "PASS", "skipped": "SKIPPED", "xfailed": "SKIPPED"}
    rows = {}
    for binding in ("jsonrpc", "rest"):
        for what in ("mandatory", "capabilities"):
            tests = json.loads(Path(f"{report}-{binding}-{what}.json").read_text())["tests"]
            rows[binding, what] = Counter(outcomes.get(test["outcome"], "FAIL") for test in tests)
    return rows


if __name__ == "__main__":
    sys.exit(main())
