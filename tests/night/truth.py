"""What is true: a plain count of the stored tasks, read from the database file beside the running server.

Nothing here knows how the product counts. A name stands for one number, and its value is a `Range`: exact numbers have
equal ends. A percentile may be shown up to an eighth too high (rule 26 of the design). A transition counts in the
minute in which it is written, which may be the next one if it was decided at the end of a minute.

What the tasks do not tell:
- How long a call took if a later one of the same step ended: an undo, or an attempt after a resubmit. It took at most
  the time between its two lines of the history.
- Each deferral: a line about one takes the place of the one before. They are the attempts that did not end otherwise.
  That a deferral of an order that turns round is not counted makes no difference here: one step runs at a time.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.calls import seconds

STATES = ("Pending", "Processing", "Processed", "Error", "Compensating", "Compensated", "Closed")
FINAL = ("Processed", "Compensated", "Closed")
UNDER_WAY = ("Pending", "Processing", "Compensating")
EVENTS = ("accepted", "processed", "compensated", "closed", "failed")
PERCENTS = (50, 95, 99)
ATTEMPTS = ("begun", "done", "expired", "rejected")
# A bucket of durations is an eighth wide.
EIGHTH_MORE = 1.125
# A history with so many lines may have lost some.
HISTORY_MAX = 50
# A transition is written at most this long after it was decided.
WRITTEN_WITHIN_S = 3
# Longer than a call may take.
CALL_MS_MAX = 2_000
# The seconds of a point, by span. `all`: since the count began.
SPANS = {"30m": 60, "24h": 600, "7d": 3_600, "30d": 21_600, "yesterday": 3_600, "today": 3_600, "all": 0}

Range = tuple[float, float]
Numbers = dict[str, Range]


def exactly(number: float) -> Range:
    """A number that has one value."""
    return (number, number)


def about(at: float) -> Range:
    """A time in milliseconds."""
    return (at - 0.0005, at + 0.0005)


@dataclass(frozen=True)
class Part:
    """Orders of the past: the number of the last one, how many hours ago they were, and whether that was yesterday."""

    last: int
    hours: int
    is_yesterday: bool

    def is_in(self, span: str) -> bool:
        """Whether they lie in a span. They are older than 30 minutes. 24 hours begin less than 24 hours ago."""
        if span in ("yesterday", "24h"):
            return self.is_yesterday if span == "yesterday" else self.hours < 24
        return span in ("7d", "30d", "all")


@dataclass
class Counted:
    """What a number of tasks add up to."""

    numbers: Counter[str] = field(default_factory=Counter)
    # How often something happened in each second.
    events: Counter[tuple[str, int]] = field(default_factory=Counter)
    # How often something took so many milliseconds.
    took: Counter[tuple[str, int]] = field(default_factory=Counter)
    # The same of calls, from what they took at least and from what they took at most.
    fastest: Counter[tuple[str, int]] = field(default_factory=Counter)
    slowest: Counter[tuple[str, int]] = field(default_factory=Counter)

    def add(self, other: Counted) -> None:
        """Adds the numbers of another."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine.update(theirs)


class Truth:
    """Counts the tasks of a database. Each look reads the tasks that are new or were open at the last look."""

    def __init__(self, data: Path, past: list[Part] | None = None) -> None:
        """`data` is the directory of the server. All orders of the `past` are final."""
        self._database = sqlite3.connect(f"file:{data / 'stepwarden.db'}?mode=ro", uri=True, isolation_level=None)
        self._past = past or []
        self._forget()

    def _forget(self) -> None:
        self._of_past = [Counted() for _ in self._past]
        self._final, self._open, self._seq = Counted(), Counted(), 0
        self._tasks: dict[int, dict[str, Any]] = {}
        self._number, self._numbers, self._surroundings = -1, dict[str, Numbers](), Numbers()

    def close(self) -> None:
        """Lets the database go."""
        self._database.close()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._database.execute(sql, values).fetchall()

    def tasks(self, where: str, *values: object) -> list[dict[str, Any]]:
        """The tasks that a condition names."""
        return [json.loads(body) for (body,) in self.rows(f"SELECT body FROM tasks WHERE {where}", *values)]

    def states(self) -> Counter[str]:
        """The orders by state."""
        ended = "process_state IN ('Processed', 'Compensated', 'Closed')"
        counted = "SELECT process_state, count(*) FROM tasks WHERE {} GROUP BY process_state"
        # In the words of the two indexes.
        return Counter(dict(self.rows(f"{counted.format(ended)} UNION ALL {counted.format('NOT ' + ended)}")))

    def transaction(self) -> int:
        """The number of the last transaction. While it stays, nothing moves."""
        return int(self.rows("SELECT number FROM transactions")[0][0])

    def numbers(self, span: str) -> tuple[int, Numbers]:
        """The number of the last transaction, and all that is true of a span at it."""
        self._database.execute("BEGIN")
        try:
            number = self.transaction()
            if number != self._number:
                self._look()
                self._number, self._numbers, self._surroundings = number, {}, self._surroundings_now()
            if span not in self._numbers:
                self._numbers[span] = self._surroundings | self._named(span)
            return number, self._numbers[span]
        finally:
            self._database.execute("COMMIT")

    def recount(self, span: str) -> Numbers:
        """All that is true of a span, with every task read again."""
        self._forget()
        return self.numbers(span)[1]

    def _look(self) -> None:
        known = ",".join(map(str, self._tasks)) or "0"
        sql = (
            "SELECT seq, process_state, body, submitted_at FROM tasks JOIN orders USING (seq) "
            f"WHERE seq > ? OR seq IN ({known})"
        )
        self._open, tasks = Counted(), {}
        for seq, state, body, submitted_ms in self._database.execute(sql, (self._seq,)):
            task = json.loads(body)
            one = counted(task, submitted_ms / 1_000)
            past = next((of for part, of in zip(self._past, self._of_past, strict=True) if seq <= part.last), None)
            (past or (self._final if state in FINAL else self._open)).add(one)
            if state not in FINAL:
                tasks[seq] = task | {"SubmittedAt": submitted_ms / 1_000}
        self._tasks = tasks
        self._seq = self.rows("SELECT coalesce(max(seq), 0) FROM tasks")[0][0]

    def _named(self, span: str) -> Numbers:
        all_of, is_now = Counted(), span != "yesterday"
        for one in [of for part, of in zip(self._past, self._of_past, strict=True) if part.is_in(span)]:
            all_of.add(one)
        for one in (self._final, self._open) if is_now else ():
            all_of.add(one)
        numbers = {name: exactly(count) for name, count in all_of.numbers.items()}
        numbers |= percentiles(all_of.took)
        numbers |= calls(all_of)
        numbers |= shares(all_of.numbers)
        if length_s := SPANS[span]:
            states = self.states()
            under_way = sum(states[state] for state in UNDER_WAY) if is_now else None
            numbers |= points(all_of.events, length_s, under_way)
        return numbers

    def _surroundings_now(self) -> Numbers:
        """States, causes, services, alerts and dead letters."""
        states = self.states()
        causes: dict[str, list[float]] = {}
        waiting: Counter[str] = Counter()
        for task in self._tasks.values():
            if task["ProcessState"] == "Error":
                step = next((step["Name"] for step in task["Steps"] if step["ProcessState"] == "Error"), "")
                failed = [line.at for line in lines_of(task) if (line.kind, line.value) == ("E", "Error")]
                causes.setdefault(f"{task['Reason']['Code']}/{step}", []).append(failed[-1])
            elif task["ProcessState"] != "Pending":
                waiting.update({step["Agent"] for step in task["Steps"] if waits(step)})
        numbers = {f"state/{state}": exactly(states[state]) for state in STATES}
        # The order of the table is the order in which they were stored.
        for _, task in sorted(self._tasks.items(), reverse=True):
            numbers[f"oldest/{task['ProcessState']}"] = about(task["SubmittedAt"])
        for name, failed in causes.items():
            numbers[f"cause/{name}"] = exactly(len(failed))
            # What is shown is the time of the alert, a moment later.
            numbers |= {f"{which}/{name}": (at, at + 1) for which, at in (("since", min(failed)), ("last", max(failed)))}
        for (body,) in self.rows("SELECT body FROM services"):
            service = json.loads(body)
            name, is_open = service["Service"], service["State"] != "Closed"
            numbers[f"health/{name}/open"] = exactly(int(is_open))
            numbers[f"health/{name}/failures"] = exactly(service["FailuresInARow"])
            if is_open:
                numbers[f"health/{name}/waiting"] = exactly(waiting[name])
        for (body,) in self.rows("SELECT body FROM alerts"):
            alert = json.loads(body)
            numbers[f"alert/{alert['Cause']}/on"] = exactly(int(not alert.get("EndedAt")))
            numbers[f"alert/{alert['Cause']}/orders"] = exactly(alert["Count"])
        numbers["letters"] = exactly(self.rows("SELECT count(*) FROM letters")[0][0])
        numbers["waiting"] = exactly(states["Error"])
        return numbers


def waits(step: dict[str, Any]) -> bool:
    """Whether a step waits for its service: in flight, or put off."""
    state = step["ProcessState"]
    return bool(state == "Processing" or (state == "Pending" and step.get("NotBefore")))


def counted(task: dict[str, Any], submitted_s: float) -> Counted:
    """What one task counts for. `submitted_s` is the time at which its order was accepted."""
    one, flow = Counted(), task["Workflow"]
    agents = {step["Name"]: step["Agent"] for step in task["Steps"]}
    lines = lines_of(task)
    event(one, flow, "accepted", submitted_s)
    history = of_history(one, flow, lines, agents)
    for step in task["Steps"]:
        name, direction = step["Name"], step["Direction"]
        # A line about an attempt that was put off takes the place of its claim, so claims are counted by their number.
        forward = step["Attempt"] if direction == "Forward" else history["forward"][name]
        count(one, flow, step, "Forward", "begun", forward)
        count(one, flow, step, "Undo", "begun", step["Attempt"] - forward)
        if not history["is whole"] and name not in history["settled"] and step["ProcessState"] == "Processed":
            count(one, flow, step, direction, "done", 1)
            history["ended"].setdefault(name, []).append((direction, CALL_MS_MAX))
        add_calls(one, flow, step, history["ended"].get(name, []))
        count(one, flow, step, direction, "skipped", int(step["ProcessState"] == "Skipped"))
        for of in ("Forward", "Undo"):
            is_in_flight = step["ProcessState"] == "Processing" and direction == of
            begun, *ended = (one.numbers[f"{base_of(flow, step, of)}/{what}"] for what in ATTEMPTS)
            count(one, flow, step, of, "deferred", begun - sum(ended) - is_in_flight + history["late"][name, of])
        if step["ProcessState"] == "Processed" and name not in history["settled"]:
            took = seconds(step["StartedAt"]), seconds(step["FinishedAt"])
            add_took(one, f"step/{flow}/{name}/{step['Agent']}/{direction}", *took)
        if direction == "Undo" and name in history["done"]:
            add_took(one, f"step/{flow}/{name}/{step['Agent']}/Forward", *history["done"][name])
    if any(line.bulk for line in lines if line.kind == "R"):
        one.numbers["job/begun"] += 1
        # The dry run found them, and no other operator was at work.
        one.numbers["job/matching"] += 1
        one.numbers["job/recovered"] += int(task["ProcessState"] == "Processed")
    if task["ProcessState"] == "Processed":
        add_took(one, f"orders/{flow}", submitted_s, lines[-1].at)
    return one


@dataclass(frozen=True)
class Line:
    """A line of a history: the letter of its kind with a value, and the attempt that it is about."""

    kind: str
    value: Any
    at: float
    step: str
    direction: str
    attempt: int
    bulk: str | None


def lines_of(task: dict[str, Any]) -> list[Line]:
    """The lines of a stored history."""
    lines, at_ms = [], 0
    for what, *rest in task["History"]:
        after_ms, _, _, _, bulk = (rest + [None] * 5)[:5]
        at_ms += after_ms or 0
        kind, value = next(iter(what.items())) if isinstance(what, dict) else (what, None)
        step, attempt, direction = "", 0, "Forward"
        if kind not in ("E", "N") and value is not None:
            place, attempt, direction = ([value, 1, "Forward"] if isinstance(value, int) else [*value, "Forward"])[:3]
            step = task["Steps"][place]["Name"]
        lines.append(Line(kind, value, at_ms / 1_000, step, direction, attempt, bulk))
    return lines


def of_history(one: Counted, flow: str, lines: list[Line], agents: dict[str, str]) -> dict[str, Any]:
    """Counts the lines of a history. Gives what the steps alone do not tell."""
    is_whole = len(lines) < HISTORY_MAX
    first: dict[str, float] = {}
    done: dict[str, tuple[float, float]] = {}
    settled: set[str] = set()
    forward: Counter[str] = Counter()
    claimed: dict[tuple[str, int], float] = {}
    # A late success counts, too. An attempt that was over then has two ends, and one that is in flight then has none.
    # The history keeps one line for a row of deferred attempts: that of the last one.
    last: dict[tuple[str, str], int] = {}
    over: dict[tuple[str, str], int] = {}
    late: Counter[tuple[str, str]] = Counter()
    # The calls that brought an end, with the longest time that each may have taken.
    ended: dict[str, list[tuple[str, float]]] = {}
    in_error = False
    for line in lines:
        kind, at, step, direction, attempt = line.kind, line.at, line.step, line.direction, line.attempt
        state = line.value if kind == "E" else ""
        if state in FINAL or state == "Error":
            event(one, flow, {"Error": "failed"}.get(state, state.lower()), at)
        if kind in ("R", "Q", "T") or state == "Closed":
            if in_error:
                event(one, flow, "mended", at)
            in_error = False
        in_error |= state == "Error"
        if not step:
            continue
        what = {"P": "done", "J": "rejected", "X": "expired"}.get(kind)
        if what and (is_whole or what != "done"):
            count(one, flow, {"Name": step, "Agent": agents[step]}, direction, what, 1)
        way = step, direction
        if kind == "C":
            last[way] = attempt
            claimed[step, attempt] = at
        if what == "done":
            late[way] += int(attempt <= over.get(way, 0)) - int(max(attempt, over.get(way, 0)) < last.get(way, 0))
        if what or kind == "D":
            over[way] = max(over.get(way, 0), attempt)
        if what == "rejected" or (what == "done" and is_whole):
            took_ms = 1_000 * (at - claimed.get((step, attempt), at - CALL_MS_MAX / 1_000))
            ended.setdefault(step, []).append((direction, min(CALL_MS_MAX, round(took_ms))))
        if direction == "Forward" and attempt:
            first.setdefault(step, at)
            forward[step] = max(forward[step], attempt)
            if what == "done":
                done[step] = (first[step], at)
        if kind == "T":
            settled.add(step)
    return {"is whole": is_whole, "done": done, "settled": settled, "forward": forward, "ended": ended, "late": late}


def event(one: Counted, flow: str, name: str, at: float) -> None:
    """Something happened to an order."""
    one.events[name, math.floor(at)] += 1
    if name in EVENTS:
        one.numbers[f"orders/{flow}/{name}"] += 1
        one.numbers[f"orders/all/{name}"] += 1


def count(one: Counted, flow: str, step: dict[str, Any], direction: str, what: str, number: int) -> None:
    """Attempts of a step, and those of its service."""
    if number:
        one.numbers[f"{base_of(flow, step, direction)}/{what}"] += number
        one.numbers[f"service/{step['Agent']}/{direction}/{what}"] += number


def base_of(flow: str, step: dict[str, Any], direction: str) -> str:
    """The name of a step's numbers."""
    return f"step/{flow}/{step['Name']}/{step['Agent']}/{direction}"


def add_calls(one: Counted, flow: str, step: dict[str, Any], ended: list[tuple[str, int]]) -> None:
    """The calls of a step that brought an end. The step tells how long the last one took, unless it was settled."""
    for number, (direction, longest_ms) in enumerate(ended, 1):
        told_ms = step.get("CallMs") if number == len(ended) else None
        for name in (base_of(flow, step, direction), f"service/{step['Agent']}/{direction}"):
            one.fastest[name, told_ms or 0] += 1
            one.slowest[name, longest_ms if told_ms is None else told_ms] += 1


def add_took(one: Counted, name: str, begun: float, ended: float) -> None:
    """The time that an order or a step took, also for all orders and for the service."""
    took_ms = max(0, round(1_000 * (ended - begun)))
    one.took[name, took_ms] += 1
    kind, _, rest = name.partition("/")
    wider = "orders/all" if kind == "orders" else f"service/{'/'.join(rest.split('/')[2:])}"
    one.took[wider, took_ms] += 1


def percentiles(took: Counter[tuple[str, int]], prefix: str = "") -> Numbers:
    """The percentiles of all durations by name, as they may be shown, and their number."""
    by_name: dict[str, list[tuple[int, int]]] = {}
    for (name, took_ms), times in took.items():
        if times:
            by_name.setdefault(name, []).append((took_ms, times))
    numbers: Numbers = {}
    for name, found in by_name.items():
        found.sort()
        whole = sum(times for _, times in found)
        numbers[f"{name}/{prefix}took"] = exactly(whole)
        for percent in PERCENTS:
            rank, seen = max(1, math.ceil(whole * percent / 100)), 0
            for took_ms, times in found:
                seen += times
                if seen >= rank:
                    numbers[f"{name}/{prefix}p{percent}"] = (took_ms, took_ms * EIGHTH_MORE)
                    break
    return numbers


def calls(counted: Counted) -> Numbers:
    """The percentiles of the calls, their number and the seconds of all of them."""
    slowest = percentiles(counted.slowest, "call ")
    fastest = percentiles(counted.fastest, "call ")
    numbers = {name: (at_least, slowest[name][1]) for name, (at_least, _) in fastest.items()}
    for index, times in enumerate((counted.fastest, counted.slowest)):
        for (name, ms), count in times.items():
            sums = list(numbers.get(f"{name}/call seconds", (0.0, 0.0)))
            sums[index] += count * ms * (1, EIGHTH_MORE)[index] / 1_000
            numbers[f"{name}/call seconds"] = (sums[0], sums[1])
    return numbers


def shares(numbers: Counter[str]) -> Numbers:
    """The share of attempts that ended without success, in percent."""
    found: Numbers = {}
    for name in {name.rpartition("/")[0] for name in numbers if name.startswith(("step/", "service/"))}:
        failed = numbers[f"{name}/expired"] + numbers[f"{name}/rejected"]
        if ended := numbers[f"{name}/done"] + failed:
            found[f"{name}/share"] = exactly(100 * failed / ended)
    return found


def points(events: Counter[tuple[str, int]], length_s: int, under_way_now: int | None) -> Numbers:
    """What happened in each point of this length, and what was under way at its end. `None`: the last one is over."""
    numbers: Numbers = {}
    if not events:
        return numbers
    times = [at for (_, at), times in events.items() if times]

    def until(names: tuple[str, ...]) -> Callable[[int], int]:
        found = sorted((at, times) for (name, at), times in events.items() if name in names)
        ends, sums = [at for at, _ in found], [0, *itertools.accumulate(times for _, times in found)]
        return lambda end: sums[bisect.bisect_left(ends, end)]

    came, left = until(("accepted", "mended")), until(EVENTS[1:])
    each = {name: until((name,)) for name in EVENTS}
    first, last = (of(times) // length_s * length_s for of in (min, max))
    # A look may come in a later point than all events.
    for begin in range(first, last + 3 * length_s, length_s):
        end = begin + length_s
        early, late = begin - WRITTEN_WITHIN_S, end - WRITTEN_WITHIN_S
        for name, of in each.items():
            # What was decided at the end of a minute may be written in the next one.
            numbers[f"point/{length_s}/{begin}/{name}"] = (max(0, of(late) - of(begin)), of(end) - of(early))
        is_last = begin >= last and under_way_now is not None
        at_end = (max(0, came(late) - left(end)), max(0, came(end) - left(late)))
        numbers[f"point/{length_s}/{begin}/under way"] = exactly(under_way_now or 0) if is_last else at_end
    return numbers
