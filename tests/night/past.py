"""The orders of yesterday: made in short runs of the server, and then moved into the past.

After each run the server stands still, and the stored times of its orders and their counted spans go back by whole
hours. So the orders lie at both ends of yesterday, a day of UTC, and in the hour before it. A day that begins or ends
an hour too early or too late has other numbers.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import load
import shop
from harness.report import expect_equal, until
from harness.serve import Server
from truth import FINAL, Part, Truth

HOUR_S, DAY_S = 3_600, 86_400
# A run is over before that, and a night.
RUN_S_MAX, NIGHT_S_MAX = 120, 1_800
SETTLES_WITHIN_S = 60.0


@dataclass(frozen=True)
class Run:
    """Orders of an hour. The hour counts from the beginning of yesterday; the stock answers after `wait_ms`."""

    hour: int
    orders: int
    wait_ms: int


# Each group has a size and a duration of its own.
RUNS = (Run(-1, 20, 900), Run(0, 30, 300), Run(23, 40, 0))


def make(server: Server) -> tuple[dict[int, str], list[Part]]:
    """Makes them. `server` does not run. Gives the ids of the orders by number, and where the groups are."""
    wait()
    ids: dict[int, str] = {}
    parts: list[Part] = []
    for run in RUNS:
        began = time.time()
        server.start()
        numbers = range(len(ids), len(ids) + run.orders)
        stub = {"stock/do": f"wait {run.wait_ms}"} if run.wait_ms else None
        ids |= load.post_all(server.port, [shop.order(number, shop.mixed(number), stub) for number in numbers])
        until(f"{len(ids)} orders have ended", lambda: ended(server.data) == len(ids), SETTLES_WITHIN_S)
        server.stop()
        hours = int(began % DAY_S) // HOUR_S + 24 - run.hour
        parts.append(Part(moved(server.data, began, hours), hours, run.hour >= 0))
    return ids, parts


def ended(data: Path) -> int:
    """How many orders have ended."""
    with contextlib.closing(Truth(data)) as truth:
        return sum(truth.states()[state] for state in FINAL)


def wait() -> None:
    """Waits for the next hour if this one ends within a run, and for the next day if this one ends within a night."""
    for length_s, within_s in ((DAY_S, NIGHT_S_MAX), (HOUR_S, RUN_S_MAX)):
        if (left_s := length_s - time.time() % length_s) < within_s:
            print(f"waits {left_s:.0f} s: the night needs one day of UTC, and its past one hour", flush=True)
            time.sleep(left_s + 1)


TIME = re.compile(r'"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"')

# The first line of a history has its time in milliseconds, and each other one the time since the line before.
FIRST_LINE = re.compile(r'("History":\[\["S",)(\d+)')


def moved(data: Path, began: float, hours: int) -> int:
    """Moves what was stored since a time back by hours; gives the last order. The server does not run."""
    began_ms, back_ms = 1_000 * int(began // HOUR_S * HOUR_S), 1_000 * HOUR_S * hours

    def earlier(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1]) - timedelta(hours=hours)
        return f'"{at.isoformat(timespec="milliseconds")}Z"'

    def first_earlier(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) - back_ms}"

    with contextlib.closing(sqlite3.connect(data / "stepwarden.db")) as database, database:
        sql = "SELECT seq, body FROM tasks JOIN orders USING (seq) WHERE submitted_at >= ?"
        tasks = database.execute(sql, (began_ms,)).fetchall()
        bodies = [(FIRST_LINE.sub(first_earlier, TIME.sub(earlier, body)), seq) for seq, body in tasks]
        database.executemany("UPDATE tasks SET body = ? WHERE seq = ?", bodies)
        sql = "UPDATE orders SET submitted_at = submitted_at - ? WHERE submitted_at >= ?"
        database.execute(sql, (back_ms, began_ms))
        # The numbers of the last minute are in the row of the transaction's number, all others in a table.
        database.execute("UPDATE transactions SET minute = minute - ?", (back_ms,))
        database.execute("UPDATE tallies SET at = at - ? WHERE at >= ?", (back_ms, began_ms))
        kept = database.execute("SELECT count(*) FROM tasks WHERE watch_at IS NOT NULL OR expires_at IS NOT NULL")
        expect_equal("orders of the past that have a time to come", kept.fetchone()[0], 0)
    return max(seq for seq, _ in tasks)
