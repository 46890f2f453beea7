"""What is true: a plain count of the stored tasks, read from the database file beside the running server, and what
`GET /numbers` says. Rust tests hold that each event is counted once (`domain` tally), and the simulation that the counts
are those of the stored orders; here a part of them is counted again, and the services compare theirs.

A name stands for one number, and its value is a `Range`: exact numbers have equal ends.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter
from typing import Any

from harness.serve import Server
from surfaces import Numbers, Range, collected, exactly, jobs, numbers

STATES = ("Pending", "Processing", "Processed", "Error", "Compensating", "Compensated", "Closed")
FINAL = ("Processed", "Compensated", "Closed")
UNDER_WAY = ("Pending", "Processing", "Compensating")

def about(at: float) -> Range:
    """A time in milliseconds."""
    return (at - 0.0005, at + 0.0005)


class Truth:
    """Counts the tasks of a server's database, and asks the server for the numbers of a span."""

    def __init__(self, server: Server) -> None:
        self._server = server
        path = f"file:{server.data / 'stepwarden.db'}?mode=ro"
        self._database = sqlite3.connect(path, uri=True, isolation_level=None)
        self._number, self._now, self._of_spans = -1, Numbers(), dict[str, Numbers]()

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
        number = self.transaction()
        if number != self._number:
            self._number, self._now, self._of_spans = number, self._surroundings(), {}
        if span not in self._of_spans:
            self._of_spans[span] = told(self._server, span) | self._now
        return number, self._of_spans[span]

    def counted(self) -> Numbers:
        """A plain count: the orders by their end, and the attempts of all steps by service."""
        states = self.states()
        ends = {"Accepted": states.total(), **{state: states[state] for state in FINAL}}
        begun = self.rows(
            "SELECT json_extract(step.value, '$.Agent'), sum(json_extract(step.value, '$.Attempt')) "
            "FROM tasks, json_each(tasks.body, '$.Steps') AS step GROUP BY 1"
        )
        return {name: exactly(number) for name, number in (*ends.items(), *begun)}

    def _surroundings(self) -> Numbers:
        """States, causes, services, alerts and dead letters."""
        states = self.states()
        causes: dict[str, list[float]] = {}
        waiting: Counter[str] = Counter()
        sql = "SELECT body, submitted_at FROM tasks JOIN orders USING (seq) WHERE process_state NOT IN (?, ?, ?) ORDER BY seq"
        under_way = [(json.loads(body), submitted_ms) for body, submitted_ms in self.rows(sql, *FINAL)]
        for task, _ in under_way:
            if task["ProcessState"] == "Error":
                step = next((step["Name"] for step in task["Steps"] if step["ProcessState"] == "Error"), "")
                causes.setdefault(f"{task['Reason']['Code']}/{step}", []).append(failed_at(task))
            elif task["ProcessState"] != "Pending":
                waiting.update({step["Agent"] for step in task["Steps"] if waits(step)})
        numbers = {f"state/{state}": exactly(states[state]) for state in STATES}
        # The order of the table is the order in which they were stored.
        for task, submitted_ms in reversed(under_way):
            numbers[f"oldest/{task['ProcessState']}"] = about(submitted_ms / 1_000)
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


def failed_at(task: dict[str, Any]) -> float:
    """When a stored order came to Error. Each line of its history has the time since the line before."""
    at_ms = failed_ms = 0
    for what, *rest in task["History"]:
        at_ms += (rest[0] if rest else 0) or 0
        if what == {"E": "Error"}:
            failed_ms = at_ms
    return failed_ms / 1_000


def told(server: Server, span: str) -> Numbers:
    """The numbers of a span and of the jobs, as the API tells them, and the shares that follow from them."""
    found = collected(itertools.chain(numbers(server, span), jobs(server)))
    for name in {name.rpartition("/")[0] for name in found if name.startswith(("step/", "service/"))}:
        failed = found[f"{name}/expired"][0] + found[f"{name}/rejected"][0]
        if ended := found[f"{name}/done"][0] + failed:
            found[f"{name}/share"] = exactly(100 * failed / ended)
    return found
