"""What the product shows by its API and its command line, as numbers under the names of `truth`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from harness.calls import seconds
from harness.report import expect_equal
from harness.serve import Server

ENDLESS = float("inf")
# The seconds of a point, by span. The whole night is in the longest.
SPANS = {"30m": 60, "24h": 600, "7d": 3_600, "30d": 21_600, "today": 3_600}
ALL = "30d"

Range = tuple[float, float]
Numbers = dict[str, Range]
Shown = Iterator[tuple[str, Range]]


def exactly(number: float) -> Range:
    """A number that has one value."""
    return (number, number)


def at_least(number: float, is_more: bool) -> Range:
    """A number that may be the beginning of a larger one."""
    return (number, ENDLESS if is_more else number)


def of_states(counts: list[dict[str, Any]]) -> Shown:
    """The orders in each state in an answer of the API."""
    for one in counts:
        yield f"state/{one['State']}", at_least(one["Count"], one["AtLeast"])
        if oldest := one.get("OldestAt"):
            yield f"oldest/{one['State']}", exactly(seconds(oldest))


def of_orders(name: str, orders: dict[str, Any]) -> Shown:
    """The numbers of some orders in an answer of the API."""
    for event in ("Accepted", "Processed", "Compensated", "Closed", "Failed"):
        yield f"orders/{name}/{event.lower()}", exactly(orders[event])
    yield from of_percentiles(f"orders/{name}", orders)


def of_percentiles(name: str, one: dict[str, Any]) -> Shown:
    """The percentiles in an answer of the API."""
    for member, prefix in (("Took", ""), ("Calls", "call ")):
        for percent in (50, 95, 99):
            if took := one.get(member):
                yield f"{name}/{prefix}p{percent}", exactly(took[f"P{percent}Ms"])


def of_attempts(name: str, attempts: dict[str, Any]) -> Shown:
    """The numbers of some attempts in an answer of the API."""
    for what in ("Begun", "Done", "Expired", "Rejected", "Deferred", "Skipped"):
        yield f"{name}/{what.lower()}", exactly(attempts.get(what, 0))
    yield from of_percentiles(name, attempts)


def of_services(services: list[dict[str, Any]]) -> Shown:
    """The health of services in an answer of the API."""
    for one in services:
        name = f"health/{one['Service']}"
        yield f"{name}/open", exactly(int(one["State"] != "Closed"))
        yield f"{name}/failures", exactly(one.get("FailuresInARow", 0))
        if waiting := one.get("OrdersWaiting"):
            yield f"{name}/waiting", at_least(waiting["Count"], waiting.get("AtLeast", False))


def overview(server: Server) -> Shown:
    """GET /overview."""
    answer = server.get("/overview")
    yield from of_states(answer["Counts"])
    for one in answer["Failures"]:
        name = f"{one['Code']}/{one.get('Step', '')}"
        yield f"cause/{name}", at_least(one["Count"], one["AtLeast"])
        yield f"since/{name}", exactly(seconds(one["OldestAt"]))
        yield f"last/{name}", exactly(seconds(one["NewestAt"]))
    for one in answer["Minutes"]:
        minute = f"point/60/{seconds(one['At']):.0f}"
        for event, name in (("Error", "failed"), ("UnderWay", "under way"), *((n, n.lower()) for n in FINALS)):
            yield f"{minute}/{name}", exactly(one[event])
    yield from of_services(answer["Services"])
    yield from of_percentiles("orders/all", answer)
    letters = answer["DeadLetters"]
    yield "letters", at_least(letters["Count"], letters["AtLeast"])


FINALS = ("Accepted", "Processed", "Compensated", "Closed")


def numbers(server: Server, last: str) -> Shown:
    """GET /numbers."""
    day = datetime.now(timezone.utc)
    answer = server.get(f"/numbers?day={day:%Y-%m-%d}" if last == "today" else f"/numbers?last={last}")
    yield from of_orders("all", answer["Orders"])
    for one in answer["Workflows"]:
        yield from of_orders(one["Workflow"], one["Orders"])
    for one in answer["Steps"]:
        name = "/".join(("step", one["Workflow"], one["Step"], one["Service"], one["Direction"]))
        yield from of_attempts(name, one["Attempts"])
    for one in answer["Services"]:
        yield from of_attempts(f"service/{one['Service']}/{one['Direction']}", one["Attempts"])
    for one in answer["Points"]:
        point = f"point/{answer['PointSeconds']}/{seconds(one['At']):.0f}"
        yield f"{point}/under way", exactly(one["UnderWay"])
        for event in (*FINALS, "Failed"):
            yield f"{point}/{event.lower()}", exactly(one["Orders"][event])


def counted(server: Server) -> Numbers:
    """The orders by their end and the attempts by service, as GET /numbers tells them."""
    answer = server.get(f"/numbers?last={ALL}")
    found = {event: answer["Orders"][event] for event in FINALS}
    for one in answer["Services"]:
        found[one["Service"]] = found.get(one["Service"], 0) + one["Attempts"]["Begun"]
    return {name: exactly(number) for name, number in found.items()}


def services(server: Server) -> Shown:
    """GET /services."""
    yield from of_services(server.get("/services")["Services"])


def alerts(server: Server) -> Shown:
    """GET /alerts."""
    for one in server.get("/alerts")["Alerts"]:
        yield f"alert/{one['Cause']}/on", exactly(int("EndedAt" not in one))
        yield f"alert/{one['Cause']}/orders", at_least(one["Count"], one.get("AtLeast", False))


METRIC = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')


def metrics(server: Server) -> Shown:
    """GET /metrics. Its histograms are not read: the pages show what is in them as percentiles."""
    asked_at = time.time()
    found = list(lines(server))
    answered_at = time.time()
    held = {of["state"] for metric, of, value in found if metric == "stepwarden_orders_by_state" and float(value)}
    for metric, of, value in found:
        number = exactly(float(value))
        step = "/".join(("step", *(of.get(name, "") for name in ("workflow", "step", "service", "direction"))))
        if metric == "stepwarden_orders_by_state":
            yield f"state/{of['state']}", number
        elif metric == "stepwarden_orders_total":
            yield f"orders/{of['workflow']}/{of['event']}", number
        elif metric == "stepwarden_oldest_order_seconds":
            age_s = float(value)
            accepted = (asked_at - age_s - 1, answered_at - age_s)
            yield f"oldest/{of['state']}", accepted if of["state"] in held else number
        elif metric == "stepwarden_attempts_total":
            yield f"{step}/{of['event']}", number
        elif metric == "stepwarden_service_open":
            yield f"health/{of['service']}/open", number


def lines(server: Server) -> Iterator[tuple[str, dict[str, str], str]]:
    """The lines of the metrics: name, labels, value."""
    for line in str(server.get("/metrics")).splitlines():
        if not line.startswith("#") and (found := METRIC.fullmatch(line)):
            yield found[1], dict(LABEL.findall(found[2] or "")), found[3]


def command(server: Server, *words: str) -> str:
    """What a command of the program prints."""
    done = server.command(*words)
    expect_equal(f"{' '.join(words)}: {done.stdout} {done.stderr}: its exit status", done.returncode, 0)
    return done.stdout


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """The tables of a printed text: a line of titles in capitals, then lines until an empty one."""
    titles: list[tuple[str, int]] = []
    rows: list[dict[str, str]] = []
    for line in [*text.splitlines(), ""]:
        if titles and line.strip():
            ends = [begin for _, begin in titles[1:]] + [None]
            rows.append({title: line[begin:end].strip() for (title, begin), end in zip(titles, ends, strict=True)})
        elif titles:
            yield rows
            titles = []
        elif line and line == line.upper() and "  " in line:
            titles = [(found[0], found.start()) for found in re.finditer(r"\S+(?: \S+)*", line)]
            rows = []


def number_of(text: str) -> Range:
    """A printed number: `7`, `7+`, `at least 7`, `≥ 1,007`, `1,007`."""
    digits = re.sub(r"[^\d]", "", text)
    return at_least(int(digits or 0), "+" in text or "≥" in text or "at least" in text)


UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "days": 86_400_000}


def span_of(text: str, is_up: bool) -> Range:
    """A printed duration. Its last unit is rounded: up, or to the nearest."""
    parts = re.findall(r"([\d.]+) (ms|s|min|h|d)\b", text)
    whole = sum(float(number) * UNITS_MS[unit] for number, unit in parts)
    last, unit = parts[-1]
    step = 0.0 if unit == "ms" else UNITS_MS[unit] * (0.1 if "." in last else 1)
    return (whole - step, whole) if is_up else (whole - step / 2, whole + step / 2)


def of_overview_line(text: str, is_up: bool) -> Shown:
    """How long the orders of the last minutes took, in a sentence of the overview."""
    for line in re.findall("From acceptance to Processed: .*", text):
        for percent, words in re.findall(r"p(\d\d) ((?:[\d.]+ (?:ms|s|min|h|d)\b ?)+)", line):
            yield f"orders/all/p{percent}", span_of(words, is_up)


def share_of(text: str) -> Range:
    """A printed share with one digit after the point, cut or rounded."""
    share = float(text.removesuffix(" %"))
    return (share - 0.0501, share + 0.1)


def command_overview(server: Server) -> Shown:
    """`stepwarden overview`."""
    text = command(server, "overview")
    for rows in tables(text):
        for row in rows:
            if "STATE" in row and "ORDERS" in row:
                yield f"state/{row['STATE']}", number_of(row["ORDERS"])
            elif "IN ERROR" in row:
                yield f"cause/{row['CAUSE']}/{row['STEP']}", number_of(row["IN ERROR"])
            else:
                yield from of_service_row(row)
    for number, words in re.findall(r"(\d+) (accepted|processed|compensated|closed|came to Error)", text):
        yield f"orders/all/{words.replace('came to Error', 'failed')}", exactly(int(number))
    yield from of_overview_line(text, is_up=True)
    yield "letters", number_of(re.findall(r"Dead letters: (\d+\+?)", text)[0])


def of_service_row(row: dict[str, str]) -> Shown:
    """A line of the table of services."""
    name = f"health/{row['SERVICE']}"
    yield f"{name}/open", exactly(int("Closed" not in row["STATE"]))
    yield f"{name}/failures", number_of(row["FAILURES IN A ROW"])
    if row["ORDERS WAITING"]:
        yield f"{name}/waiting", number_of(row["ORDERS WAITING"])


COLUMNS = {
    "ACCEPTED": "accepted",
    "PROCESSED": "processed",
    "COMPENSATED": "compensated",
    "CLOSED": "closed",
    "CAME TO ERROR": "failed",
    "BEGUN": "begun",
    "DONE": "done",
    "EXPIRED": "expired",
    "REJECTED": "rejected",
    "DEFERRED": "deferred",
    "SKIPPED": "skipped",
}


def of_row(name: str, row: dict[str, str], is_up: bool) -> Shown:
    """A line of the numbers, of the command line or of the console."""
    for title, text in row.items():
        upper = title.upper()
        if upper in COLUMNS:
            yield f"{name}/{COLUMNS[upper]}", number_of(text)
        elif upper in ("P50", "P95", "P99", "CALL P50", "CALL P99") and text not in ("", "–"):
            yield f"{name}/{title.lower()}", span_of(text, is_up)
        elif upper == "FAILED" and text not in ("", "–"):
            yield f"{name}/share", share_of(text)


def command_numbers(server: Server, last: str) -> Shown:
    """`stepwarden numbers`."""
    text = command(server, "numbers", "--day" if last == "today" else "--last", last)
    for rows in tables(text):
        for row in rows:
            if "STEP" in row:
                direction = "Undo" if row["STEP"].startswith("undo of ") else "Forward"
                step = row["STEP"].removeprefix("undo of ")
                name = "/".join(("step", row["WORKFLOW"], step, row["SERVICE"], direction))
                yield from of_row(name, row, is_up=True)
            else:
                yield from of_row(f"orders/{row['WORKFLOW']}", row, is_up=True)
    for number, state in re.findall(r"(\d+) ([A-Z]\w+)", text.partition("Now: ")[2]):
        yield f"state/{state}", exactly(int(number))


def command_services(server: Server) -> Shown:
    """`stepwarden services`."""
    for rows in tables(command(server, "services")):
        for row in rows:
            yield from of_service_row(row)


def command_alerts(server: Server) -> Shown:
    """`stepwarden alerts`."""
    for rows in tables(command(server, "alerts")):
        for row in rows:
            yield f"alert/{row['CAUSE']}/on", exactly(int(not row["ENDED"]))
            yield f"alert/{row['CAUSE']}/orders", number_of(row["ORDERS"])


def command_letters(server: Server) -> Shown:
    """`stepwarden dead-letters`: a line for each."""
    printed = command(server, "dead-letters", "-o", "json").splitlines()
    yield "letters", exactly(len([line for line in printed if json.loads(line)]))


def jobs(server: Server) -> Shown:
    """GET /bulk."""
    for one in server.get("/bulk")["Jobs"]:
        yield "job/matching", at_least(one["DryRun"]["Matching"], not one["DryRun"]["Complete"])
        yield "job/begun", exactly(one["Tally"]["Begun"])
        yield "job/recovered", exactly(one["Tally"]["Recovered"])
        yield "job/failed again", exactly(one["Tally"]["FailedAgain"])


def command_jobs(server: Server) -> Shown:
    """`stepwarden bulk list`."""
    for rows in tables(command(server, "bulk", "list")):
        for row in rows:
            for title in ("MATCHING", "RECOVERED", "FAILED AGAIN"):
                yield f"job/{title.lower()}", number_of(row[title])


def command_list(server: Server) -> Shown:
    """`stepwarden list`: the orders in Error, all of them."""
    yield "waiting", exactly(len(command(server, "list", "--state", "Error", "--all", "--quiet").split()))


def collected(shown: Shown) -> Numbers:
    """All numbers by name. A number that is shown twice must be the same."""
    numbers: Numbers = {}
    for name, value in shown:
        expect_equal(f"{name}, shown twice", value, numbers.setdefault(name, value))
    return numbers
