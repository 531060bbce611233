"""What is tried with every client on every transport, and how good it was.

A case is a script for the model and a judgement of what was seen on both sides: at the model (which tools it was offered, what it was
told) and between the client and Rialto (what went over the wire). A session may serve several cases.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import model
import terminal
from bridge import Bridge
from client import Client, Session
from model import Play, bridged
from turns import Call, Say, Turn
from watch import Heard

EXACT, DEGRADED, UNSUPPORTED, FAILED = "exact", "degraded", "not supported", "failed"
SKILLS = ("order", "picture", "work", "paint")
OWN = ("list_agents", "send_message", "get_task", "cancel_task")
# Over HTTP it is listed to callers that may administer agents, which these clients may not.
OWN_ON_STDIO = ("load_agent",)
ORDER = {"customer": "Änne «日本»", "lines": [{"sku": "a-1", "count": 2}, {"sku": "b.2", "count": 40}]}
WORK = 20
LONG = 40  # longer than Rialto waits for an agent: 30 s
SHORT, TOO_LONG = 3, 8  # a client's own timeout, and what takes longer
QUESTION = re.compile(r"Which\s*colour\s*for\s*the\s*door")
END = re.compile(rf"worked for {WORK} seconds|the door is \w+")  # of what is done in a terminal


@dataclass
class Verdict:
    grade: str
    note: str = ""


@dataclass
class Seen:
    """All that a session left behind."""

    client: Client
    session: Session
    play: Play
    bridge: Bridge

    def wire(self, method: str) -> list[Heard]:
        return [one for one in self.session.server.heard() if one.message.get("method") == method]

    def result(self, at: int = -1) -> str:
        results = self.play.results()
        return results[at].text if results else ""


@dataclass
class Trial:
    """One session, and the cases that it decides."""

    key: str
    script: Callable[[Client], model.Script]
    cases: dict[str, Callable[[Seen], Verdict]]
    patience: int | None = None
    attended: bool = False
    in_terminal: bool = False
    killed: bool = False  # in the middle of a call; another session then asks for what is left


# === scripts ===


def steps(client: Client, *calls: tuple[str, dict]) -> model.Script:
    """One call after the other, then the end."""

    def script(turn: Turn) -> Call | Say:
        done = bridged(turn)
        if len(done) < len(calls):
            name, arguments = calls[len(done)]
            return Call(client.tool(name), arguments)
        return Say(f"The end: {done[-1].text}")

    return script


def task_in(text: str) -> str | None:
    found = re.search(r"task_[0-9a-f]{32}", text)
    return found and found.group()


def plainly(client: Client) -> model.Script:
    return steps(client, ("desk.order", ORDER), ("desk.picture", {}))


def working(seconds: int) -> Callable[[Client], model.Script]:
    return lambda client: steps(client, ("desk.work", {"seconds": seconds}))


def painting(client: Client) -> model.Script:
    """Calls the skill that asks. Where its question is the result, the model answers it."""
    first = steps(client, ("desk.paint", {"thing": "door"}))

    def script(turn: Turn) -> Call | Say:
        done = bridged(turn)
        if len(done) == 1 and "waits for an answer" in done[0].text and (task := task_in(done[0].text)):
            return Call(client.tool("send_message"), {"task_id": task, "message": {"colour": "green"}})
        return first(turn) if len(done) < 2 else Say(f"The end: {done[-1].text}")

    return script


def talking(client: Client) -> model.Script:
    """The model talks to the agent, and answers its question itself."""

    def script(turn: Turn) -> Call | Say:
        done = bridged(turn)
        if not done:
            message = {"skill": "paint", "thing": "gate"}
            return Call(client.tool("send_message"), {"agent": "desk", "message": message})
        if len(done) == 1 and (task := task_in(done[0].text)):
            return Call(client.tool("send_message"), {"task_id": task, "message": "blue"})
        return Say(f"The end: {done[-1].text}")

    return script


def fetching(client: Client) -> model.Script:
    """Calls something that takes longer than anybody waits, and fetches it later."""

    def script(turn: Turn) -> Call | Say:
        done = bridged(turn)
        if not done:
            return Call(client.tool("desk.work"), {"seconds": LONG})
        if is_over(done[-1].text) or len(done) > 4 or not (task := task_in(done[0].text)):
            return Say(f"The end: {done[-1].text}")
        if len(done) > 1:
            time.sleep(6)  # models think; and Gemini CLI stops one that does the same thing five times
        return Call(client.tool("get_task"), {"task_id": task})

    return script


def giving_up(client: Client) -> model.Script:
    """Calls something that the client does not wait for, and looks later what became of it."""

    def script(turn: Turn) -> Call | Say:
        done = bridged(turn)
        if not done:
            return Call(client.tool("desk.work"), {"seconds": TOO_LONG})
        if len(done) == 1:
            time.sleep(TOO_LONG)  # until it is over, if it goes on
            return Call(client.tool("get_task"), {})
        if len(done) == 2 and (task := task_in(done[1].text)):
            return Call(client.tool("get_task"), {"task_id": task})
        return Say(f"The end: {done[-1].text}")

    return script


def is_over(text: str) -> bool:
    return re.search(r"worked for|is (canceled|failed)", text) is not None


# === judgements ===


def listed(seen: Seen) -> Verdict:
    offered = seen.play.offered()
    words = "\n".join(turn.words for turn in seen.play.turns)
    own = OWN + OWN_ON_STDIO if seen.session.server.transport == "stdio" else OWN
    wanted = [seen.client.tool(name) for name in (*(f"desk.{skill}" for skill in SKILLS), *own)]
    missing = [name for name in wanted if name not in offered and name not in words]
    if missing:
        return Verdict(FAILED, f"not offered: {', '.join(missing)}")
    schema = json.dumps(offered.get(seen.client.tool("desk.order")))
    if not all(member in schema for member in ("customer", "lines", "sku", "count")):
        return Verdict(FAILED, f"the schema of desk.order arrived as {schema}")
    name = f"`{seen.client.tool('desk.order')}`"
    return Verdict(EXACT, name if wanted[0] in seen.play.turns[0].tools else f"{name}, named first and offered when looked for")


def called(seen: Seen) -> Verdict:
    sent = [one.message["params"] for one in seen.wire("tools/call") if one.by_client]
    if not sent or sent[0]["name"] != "desk.order" or sent[0]["arguments"] != ORDER:
        return Verdict(FAILED, f"Rialto was asked for {json.dumps(sent[:1])}")
    found = re.search(r"\{.*\}", seen.result(0), re.DOTALL)
    try:
        data = json.loads(found.group()) if found else None
    except ValueError:
        data = None
    if data != {"accepted": True, "order": ORDER}:
        return Verdict(FAILED, f"the model was told: {seen.result(0)[:300]}")
    return Verdict(EXACT)


def pictured(seen: Seen) -> Verdict:
    results = seen.play.results()
    if len(results) < 2:
        return Verdict(FAILED, "there was no result")
    as_text = "iVBORw0KGgo" in results[1].text
    if not results[1].images:
        return Verdict(FAILED, "the model was told the picture's bytes as text" if as_text else "the picture is lost")
    if "a pixel" not in results[1].text:
        return Verdict(FAILED, "the text beside the picture is lost")
    return Verdict(DEGRADED, "the bytes are told as text, too") if as_text else Verdict(EXACT)


def progressed(seen: Seen) -> Verdict:
    calls = [one.message for one in seen.wire("tools/call") if one.by_client]
    token = calls[0]["params"].get("_meta", {}).get("progressToken") if calls else None
    notes = [one.message["params"] for one in seen.wire("notifications/progress") if not one.by_client]
    notes = [note for note in notes if note["progressToken"] == token]
    said = [note.get("message", "") for note in notes]
    if f"worked for {WORK} seconds" not in seen.result():
        return Verdict(FAILED, f"the model was told: {seen.result()[:300]}")
    if token is None:
        return Verdict(UNSUPPORTED, "the client asks for no progress")
    numbers = [note["progress"] for note in notes]
    if not all(f"second {n} of {WORK}" in said for n in range(1, WORK + 1)) or numbers != sorted(set(numbers)):
        return Verdict(FAILED, f"of {WORK} statuses these were told: {said}")
    shown = seen.client.progress(seen.session)
    shows = any(f"second {WORK - 1} of {WORK}" in line for line in shown)
    return Verdict(EXACT, f"{WORK} statuses told{', and shown' if shows else ''}")


def in_terminal(seen: Seen) -> Verdict:
    """What a person sees of it."""
    if f"worked for {WORK} seconds" not in seen.play.told():
        return Verdict(FAILED, f"the model was told: {seen.result()[:300]}")
    if any(one.message.get("result", {}).get("resultType") == "task" for one in seen.session.server.heard()):
        return Verdict(EXACT, "an MCP task in the background: the person works on, and the model hears of its end")
    if re.search(rf"second {WORK - 1} of {WORK}", terminal.words(seen.session.folder / "shown")):
        return Verdict(EXACT, "each status is shown")
    return Verdict(DEGRADED, "it runs to its end; statuses are not shown")


def asked(seen: Seen) -> Verdict:
    results = seen.play.results()
    if "the door is green now" not in seen.result():
        return Verdict(FAILED, f"the model was told: {seen.result()[:300]}")
    if len(results) == 1:
        way = "`elicitation/create`" if seen.wire("elicitation/create") else "`input_required`"
        who = "its person chooses in a dialogue" if seen.session.in_terminal else seen.client.answers
        return Verdict(EXACT, f"asked with {way}; {who}")
    return Verdict(DEGRADED, "its person cannot be asked: the model answers with `send_message`")


def talked(seen: Seen) -> Verdict:
    good = "the gate is blue now" in seen.result()
    return Verdict(EXACT) if good else Verdict(FAILED, f"the model was told: {seen.result()[:300]}")


def fetched(seen: Seen) -> Verdict:
    first = seen.result(0)
    if f"worked for {LONG} seconds" not in seen.result():
        return Verdict(FAILED, f"the model was told first: {first[:300]}; and at last: {seen.result()[:300]}")
    if f"worked for {LONG} seconds" in first:
        return Verdict(EXACT, "the call itself waited")
    return Verdict(EXACT, "the call is answered with the task, `get_task` has the result")


def impatient(seen: Seen) -> Verdict:
    first, last = seen.result(0), seen.result()
    if "timed out" not in first:
        return Verdict(FAILED, f"the client waited: {first[:300]}")
    there = seen.bridge.at_agent(seen.session.server.task())
    if there == "completed" and f"worked for {TOO_LONG} seconds" in last:
        return Verdict(EXACT, "the task goes on, and the model finds it with `get_task`")
    if there == "canceled" and "canceled" in last:
        return Verdict(DEGRADED, "the task is called off at its agent; the model finds that with `get_task`")
    return Verdict(FAILED, f"at the agent the task is {there}; the model was told: {last[:300]}")


def left_over(seen: Seen) -> Verdict:
    """What became of the task that nobody waits for any more."""
    task = seen.session.server.task()
    deadline = time.monotonic() + 25
    while (there := seen.bridge.at_agent(task)) == "working" and time.monotonic() < deadline:
        time.sleep(0.5)
    known = fetched_later(seen, task["taskId"])
    if there == "completed" and "worked for" in known:
        return Verdict(EXACT, "the task is finished, kept, and fetched with `get_task`")
    if there == "canceled" and "canceled" in known:
        return Verdict(DEGRADED, "the task is called off at its agent, and on record")
    return Verdict(FAILED, f"at the agent the task is {there}; fetched: {known[:200]}")


def fetched_later(seen: Seen, task: str) -> str:
    """What another session of the same client gets for the task's id."""
    fetch = seen.session.again(seen.client, steps(seen.client, ("get_task", {"task_id": task})))
    return fetch.results()[-1].text if fetch.results() else "nothing"


TRIALS = [
    Trial("plain", plainly, {"list": listed, "call": called, "picture": pictured}),
    Trial("progress", working(WORK), {"progress": progressed}, attended=True),
    Trial("terminal", working(WORK), {"terminal": in_terminal}, in_terminal=True),
    Trial("dialogue", painting, {"dialogue": asked}, in_terminal=True, attended=True),
    Trial("question", painting, {"question": asked}, attended=True),
    Trial("talk", talking, {"talk": talked}),
    Trial("long", fetching, {"long": fetched}),
    Trial("timeout", giving_up, {"timeout": impatient}, patience=SHORT),
    Trial("killed", working(12), {"killed": left_over}, killed=True),
]
CASES = {
    "list": "its tools are offered to the model, with their schemas",
    "call": "arguments and data arrive on both sides",
    "picture": "a picture is a picture for the model",
    "progress": "a task of 20 seconds, with progress",
    "terminal": "the same in a terminal, with a person before it",
    "question": "an agent's question is answered",
    "dialogue": "the same in a terminal",
    "talk": "the model talks to an agent and answers its question itself",
    "long": "a task of 40 seconds: longer than a call waits (30 s)",
    "timeout": "the client's own timeout (3 s) is shorter than the task",
    "killed": "the client is killed in the middle of a call",
}


def grades() -> Iterator[str]:
    """From bad to good."""
    yield from (FAILED, UNSUPPORTED, DEGRADED, EXACT)
