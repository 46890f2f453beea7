"""A stack that is updated to this version, and back to the one before, with orders under way all the time."""

from __future__ import annotations

import datetime
import functools
import math
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import audit
from harness.deployment import build, built_template, deploy
from harness.report import Report, expect, until
from world import World, document

# How the services behave: one order after the other, again and again.
WAYS: list[tuple[str, dict[str, Any] | None]] = [
    ("Processed", None),
    ("Processed", {"payment": {"Flaky": 1}}),
    ("Compensated", {"payment": {"Decline": "card_declined"}}),
    ("Processed", {"shipping": {"SlowMs": 1_500}}),
    ("Processed", None),
]
# Orders of each part that are posted before the stack changes, and after it.
BEFORE, AFTER = 60, 40
PAUSE_S = 0.05
# The emulator kills a function that gets another program, where AWS lets its invocation end. So its messages stay hidden
# for minutes, its attempts expire after half a minute and are made again, perhaps twice, and a caller posts again.
EMPTY_S_MAX = 400
POSTED_S_MAX = 30
# How much longer than the slowest of before an order may take while the stack changes.
LONGER_S_MAX = 120.0
ENDED_S_MAX = 180.0


def build_of(folder: Path) -> Path:
    """The template of a checkout of an earlier version, built now unless it is."""
    template = built_template(folder)
    if not template.exists():
        build(folder)
    return template


def is_tried(report: Report, world: World, earlier: Path) -> None:
    """The stack has the earlier version, gets this one, and goes back."""
    unchanged = Orders(world, lambda: None)
    report.check("orders before any change end", unchanged.all_end)
    for title, template in (("to this version", built_template()), ("back to the earlier version", earlier)):
        changed = Orders(world, functools.partial(update, world, template), unchanged.slowest_s + LONGER_S_MAX)
        report.check(f"orders under way while the stack goes {title}", changed.all_end)
    report.section("The books")
    report.check("all queues are empty", functools.partial(audit.queues_are_empty, world, EMPTY_S_MAX))


def update(world: World, template: Path) -> None:
    """Deploys a version, which must be another."""
    before = programs(world)
    deploy(world.deployment.emulator, template)
    same = {name for name, program in programs(world).items() if program == before[name]}
    expect(not same, f"each function has another program, but not {sorted(same)}")


def programs(world: World) -> dict[str, str]:
    """The hash of each function's program."""

    def program(name: str) -> str:
        return str(world.lambdas.get_function_configuration(FunctionName=world.deployment.function(name))["CodeSha256"])

    return {name: program(name) for name in ("api", "submission", "scheduler", "agents", "supervisor")}


class Orders:
    """Orders that are posted before, during and after a change."""

    def __init__(self, world: World, change: Callable[[], object], limit_s: float = math.inf) -> None:
        """None may take longer than `limit_s`."""
        self.slowest_s = 0.0
        self._world = world
        self._change = change
        self._limit_s = limit_s
        self._posted: list[tuple[str, str]] = []
        self._over = threading.Event()
        self._failure: list[BaseException] = []

    def all_end(self) -> str:
        """Each ends as it should, and in time."""
        posting = threading.Thread(target=self._post)
        posting.start()
        try:
            until("orders are under way", lambda: len(self._posted) >= BEFORE or self._failure, ENDED_S_MAX)
            self._change()
            enough = len(self._posted) + AFTER
            until("orders are posted after it", lambda: len(self._posted) >= enough or self._failure, ENDED_S_MAX)
        finally:
            self._over.set()
            posting.join()
        for failure in self._failure:
            raise failure
        took_s = [self._took_s(order_id, end) for order_id, end in self._posted]
        self.slowest_s = max(took_s)
        words = f"{len(took_s)} orders, the slowest in {self.slowest_s:.1f} s"
        expect(self.slowest_s <= self._limit_s, f"each within {self._limit_s:.1f} s: {words}")
        return words

    def _post(self) -> None:
        try:
            while not self._over.wait(PAUSE_S):
                end, stand_in = WAYS[len(self._posted) % len(WAYS)]
                self._posted.append((self._accepted(end, document(stand_in)), end))
        except BaseException as failure:  # noqa: BLE001 - the check shows it
            self._failure.append(failure)

    def _accepted(self, end: str, order: dict[str, Any]) -> str:
        """Posts an order under one key until it is accepted."""
        key = {"Idempotency-Key": str(uuid.uuid4())}

        def accepted() -> Any:
            answer = self._world.application.post("/orders", order, key)
            return answer.body if answer.status == 202 else None

        return self._world.expect_end(until("an order is accepted", accepted, POSTED_S_MAX)["OrderID"], end)

    def _took_s(self, order_id: str, end: str) -> float:
        """From the acceptance to the last transition."""
        task = self._world.reach(order_id, end, ENDED_S_MAX)
        times = [moment(entry["At"]) for entry in task["History"]]
        return (max(times) - moment(task["SubmittedAt"])).total_seconds()


def moment(text: str) -> datetime.datetime:
    """A time of the API."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
