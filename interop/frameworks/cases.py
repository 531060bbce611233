"""The cases that every framework runs on every transport, and how a run is graded.

A case is a script of the model and a judgement of what reached the model: which tools it was offered, and which results it read.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from model import Play, Script
from turns import Call, Result, Say, Turn

EXACT, DEGRADED, UNSUPPORTED, FAILED = "exact", "degraded", "not supported", "failed"
GRADES = (FAILED, UNSUPPORTED, DEGRADED, EXACT)
LONG_NAME = "reconcile_supplier"  # how the skill's name begins; the rest may be cut
SKILLS = ("order", "picture", "work", "paint", "repair", "note", LONG_NAME)
BUILT_IN = ("list_agents", "send_message", "get_task", "cancel_task")
ORDER = {"customer": "Änne «日本»", "lines": [{"sku": "a-1", "count": 2}, {"sku": "b.2", "count": 40}]}
WRONG_ORDER = {"customer": "Ann", "lines": "two of a-1"}
NOTE = "call Ann [tomorrow] at 9"
REPAIR = ("repair", {"machine": "press"})
REASON = "part 7-B is out of stock until Monday"
QUESTION = "Which colour for the door?"
WORK_SECONDS = 20
PNG = "iVBORw0KGgo"


@dataclass
class Verdict:
    grade: str
    note: str = ""


@dataclass
class Run:
    """One finished run of a framework's agent."""

    play: Play
    outcome: dict[str, Any]
    asked_person: bool = False  # whether Rialto sent an elicitation

    @property
    def results(self) -> list[Result]:
        return max((turn.results for turn in self.play.turns), key=len, default=[])


@dataclass
class Case:
    """One agent run."""

    key: str
    title: str
    script: Script
    judge: Callable[[Run], Verdict]
    elicits: bool = False  # whether the driver declares elicitation
    waits: bool = False  # whether the framework's timeout for a tool matters


def find_tool(turn: Turn, name: str) -> str:
    """The offered name of a skill or of a built-in tool. Frameworks add prefixes, and Rialto has several forms of names."""
    agent = "" if name in BUILT_IN else r"desk[._-]"
    pattern = re.compile(rf"(^|[^a-z]){agent}{name}{'' if name == LONG_NAME else '$'}", re.IGNORECASE)
    return next((tool for tool in turn.tools if pattern.search(tool)), name)


def steps(*calls: tuple[str, dict[str, Any]]) -> Script:
    """One call after the other, then an answer that repeats the last result."""

    def script(turn: Turn) -> Call | Say:
        done = turn.results
        if len(done) < len(calls):
            name, arguments = calls[len(done)]
            return Call(find_tool(turn, name), arguments)
        return Say(f"The end: {done[-1].text}")

    return script


def find_task(text: str) -> str | None:
    found = re.search(r"task_[0-9a-f]{32}", text)
    return found and found.group()


def answer_question(turn: Turn) -> Call | Say:
    """Calls the skill that asks, and answers the question if it comes as a result."""
    done = turn.results
    if not done:
        return Call(find_tool(turn, "paint"), {"thing": "door"})
    if len(done) == 1 and QUESTION in done[0].text and (task := find_task(done[0].text)):
        return Call(find_tool(turn, "send_message"), {"task_id": task, "message": "green"})
    return Say(f"The end: {done[-1].text}")


def wait_for_work(turn: Turn) -> Call | Say:
    """Calls the long skill. After a timeout of the framework, asks for the latest tasks, and then for the one."""
    done = turn.results
    if not done:
        return Call(find_tool(turn, "work"), {"seconds": WORK_SECONDS})
    if f"worked for {WORK_SECONDS} seconds" in done[-1].text or len(done) > 3:
        return Say(f"The end: {done[-1].text}")
    if len(done) == 1:
        time.sleep(WORK_SECONDS)
    task = find_task(done[-1].text)
    return Call(find_tool(turn, "get_task"), {"task_id": task} if task else {})


# === judgements ===


def ended(run: Run) -> Verdict | None:
    """What is wrong with a run that did not end with the model's answer."""
    if run.play.refusals:
        return Verdict(FAILED, f"refused by the model's API: {message_in(run.play.refusals[0])}")
    if error := run.outcome.get("error"):
        return Verdict(FAILED, f"the run ended with {error[:200]}")
    if "The end:" not in run.outcome.get("answer", ""):
        return Verdict(FAILED, f"the run ended with {run.outcome.get('answer', '')[:200]!r}")
    return None


def message_in(refusal: str) -> str:
    return json.loads(refusal)["error"]["message"]


def judge_list(run: Run) -> Verdict:
    if run.play.refusals:
        return ended(run)
    turn = run.play.turns[0] if run.play.turns else None
    if turn is None:
        return Verdict(FAILED, f"the model was never asked: {run.outcome.get('error', '')[:200]}")
    names = {name: find_tool(turn, name) for name in (*SKILLS, *BUILT_IN)}
    if missing := [name for name, offered in names.items() if offered not in turn.tools]:
        return Verdict(FAILED, f"not offered: {', '.join(missing)}")
    schema = json.dumps(turn.tools[names["order"]])
    if not all(f'"{member}"' in schema for member in ("customer", "lines")):
        return Verdict(FAILED, f"the schema of {names['order']} arrived as {schema[:300]}")
    if not all(f'"{member}"' in schema for member in ("sku", "count")):
        return Verdict(DEGRADED, f"`{names['order']}`; the framework drops schemas of nested objects")
    return Verdict(EXACT, f"`{names['order']}`")


def judge_call(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    read = run.results[0].text
    if "Änne" not in unescaped(read) or "b.2" not in read or "accepted" not in read:
        return Verdict(FAILED, f"the model read {read[:300]!r}")
    if "Q3 is reconciled" not in run.results[-1].text:
        return Verdict(FAILED, f"a skill with a long name: the model read {run.results[-1].text[:300]!r}")
    return Verdict(EXACT)


def judge_text(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    read = unescaped(run.results[0].text)
    return Verdict(EXACT) if f"noted: {NOTE}" in read else Verdict(FAILED, f"the model read {read[:300]!r}")


def judge_failure(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong if run.play.refusals or not run.results else Verdict(FAILED, f"{wrong.note}; the model read {run.results[0].text[:200]!r}")
    if REASON not in run.results[0].text:
        return Verdict(FAILED, f"the reason is lost: the model read {run.results[0].text[:200]!r}")
    if len(run.results) < 2 or "accepted" not in run.results[1].text:
        return Verdict(FAILED, "the next call did not work")
    return Verdict(EXACT)


def judge_mistake(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    read = run.results[0].text
    if "lines" not in read or "accepted" in read:
        return Verdict(FAILED, f"the model cannot see its mistake: {read[:300]!r}")
    if len(run.results) < 2 or "accepted" not in run.results[1].text:
        return Verdict(FAILED, "the corrected call did not work")
    return Verdict(EXACT)


def judge_work(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    if f"worked for {WORK_SECONDS} seconds" in run.results[0].text:
        return Verdict(EXACT)
    if f"worked for {WORK_SECONDS} seconds" in run.results[-1].text:
        return Verdict(DEGRADED, f"the framework stops waiting ({brief(run.results[0].text)}); `get_task` has the result")
    if "canceled" in run.results[-1].text:
        return Verdict(FAILED, f"the framework stops waiting ({brief(run.results[0].text)}), which cancels the task")
    return Verdict(FAILED, f"the model read {[one.text[:200] for one in run.results]}")


def judge_question(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    read = [one.text for one in run.results]
    if "the door is green now" not in read[-1]:
        return Verdict(FAILED, f"the model read {[one[:300] for one in read]}")
    if len(read) == 1:
        return Verdict(EXACT, "asked with elicitation")
    return Verdict(EXACT, "the model reads task id and question, and answers with `send_message`")


def judge_elicitation(run: Run) -> Verdict:
    verdict = judge_question(run)
    if verdict.grade == EXACT and not run.asked_person:
        return Verdict(DEGRADED, "elicitation is declared and was not used")
    return verdict


def judge_picture(run: Run) -> Verdict:
    if wrong := ended(run):
        return wrong
    first = run.results[0]
    copies = first.text.count(PNG)
    if "a pixel" not in first.text:
        return Verdict(FAILED, f"the text beside the picture is lost: {first.text[:200]!r}")
    if first.images:
        return Verdict(EXACT if not copies else DEGRADED, "" if not copies else "the bytes arrive as text, too")
    if copies:
        return Verdict(DEGRADED, f"the framework has no pictures in tool results: base64 text{', twice' if copies > 1 else ''}")
    return Verdict(DEGRADED, f"the framework leaves the picture out: {brief(first.text)}")


def unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


def brief(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:120]


CASES = [
    Case("call", "calls bring the agent's data, also of a skill whose name is too long for the model's API", steps(("order", ORDER), (LONG_NAME, {"quarter": "Q3"})), judge_call),
    Case("text", "an agent that takes plain text gets it", steps(("note", {"message": NOTE})), judge_text),
    Case("failure", "the model reads the reason of a failure, and the run continues", steps(REPAIR, ("order", ORDER)), judge_failure),
    Case("mistake", "the model reads which argument is wrong, and corrects it", steps(("order", WRONG_ORDER), ("order", ORDER)), judge_mistake),
    Case("picture", "a picture arrives as a picture, beside its text", steps(("picture", {})), judge_picture),
    Case("question", "an agent's question reaches the model with its task id, and the model answers it", answer_question, judge_question),
    Case("elicitation", "an agent's question reaches the person through the framework", answer_question, judge_elicitation, elicits=True),
    Case("work", f"a call of {WORK_SECONDS} seconds that reports progress completes", wait_for_work, judge_work, waits=True),
]
# The list is judged by the first run.
TITLES = {"list": "its tools are offered, and accepted by the model's API"} | {case.key: case.title for case in CASES}
