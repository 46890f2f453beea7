"""A stack that is updated to this version, and back to the one before, with orders under way all the time."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import audit
from harness.calls import seconds
from harness.deployment import ALIAS, BUILD, build, built_template, client, deploy
from harness.report import CheckFailed, Report, expect, until
from world import World, document

# How the services behave: one order after the other, again and again.
WAYS: list[tuple[str, dict[str, Any] | None]] = [
    ("Processed", None),
    ("Processed", {"payment": {"Flaky": 1}}),
    ("Compensated", {"payment": {"Decline": "card_declined"}}),
    ("Processed", {"shipping": {"SlowMs": 1_500}}),
    ("Processed", None),
]
FUNCTIONS = ("api", "submission", "scheduler", "agents", "supervisor")
# Orders of each part, and those of them that are posted before the stack changes, and after it.
ORDERS, BEFORE, AFTER = 200, 60, 40
PAUSE_S = 0.05
# How much longer than twice the slowest of before an order may take while the stack changes: the deployment needs the
# processor too.
LONGER_S_MAX = 10.0
ENDED_S_MAX = 180.0


def build_of(folder: Path) -> Path:
    """The template of a checkout of an earlier version, built now unless it is."""
    template = built_template(folder)
    if not template.exists():
        build(folder)
    return template


def copy_of_last_build(folder: Path) -> Path:
    """The template of the last build as an earlier version: each program is another, and each function has one variable
    more."""
    copy = Path(shutil.copytree(BUILD, folder / "earlier"))
    for program in copy.glob("*/bootstrap"):
        with program.open("ab") as file:
            file.write(b"earlier")
    template = copy / built_template().name
    text, of_all = template.read_text(), re.compile(r"^( +)(?=ORDERS_TABLE:)", re.MULTILINE)
    template.write_text(of_all.sub(r"\1EARLIER: 'true'\n\1", text, count=1))
    return template


def is_tried(report: Report, world: World, earlier: Path) -> None:
    """The stack has the earlier version, gets this one, another parameter, and goes back."""
    unchanged = Orders(world, lambda: None)
    report.check("orders before any change end", unchanged.all_end)
    this, changed = built_template(), functools.partial(update, world)
    changes: list[tuple[str, Callable[[], object]]] = [
        ("the stack goes to this version", functools.partial(changed, "CodeSha256", this)),
        ("a parameter changes", functools.partial(changed, "Environment", this, {"LogLevel": "info"})),
        ("half of the calls go to the first version", functools.partial(share, world)),
        ("the stack goes back to the earlier version", functools.partial(changed, "CodeSha256", earlier)),
    ]
    for title, change in changes:
        orders = Orders(world, change, 2 * unchanged.slowest_s + LONGER_S_MAX)
        report.check(f"orders under way while {title}", orders.all_end)
    report.section("The books")
    report.check("all queues are empty", functools.partial(audit.queues_are_empty, world))


def update(world: World, member: str, template: Path, parameters: dict[str, str] | None = None) -> None:
    """Deploys a version. Calls then get another value of this member of each function's configuration."""
    before = {name: called(world, name)[member] for name in FUNCTIONS}
    deploy(world.deployment.emulator, template, parameters)
    same = [name for name in FUNCTIONS if called(world, name)[member] == before[name]]
    expect(not same, f"each function is called with another {member}, but not {same}")


def called(world: World, name: str) -> Any:
    """The configuration that calls of a function get. Versions that had no alias have only one."""
    deployment = world.deployment
    for function in (deployment.live(name), deployment.function(name)):
        with contextlib.suppress(world.lambdas.exceptions.ResourceNotFoundException):
            return world.lambdas.get_function_configuration(FunctionName=function)
    raise CheckFailed(f"there is no function {name}")


def share(world: World) -> None:
    """Each alias sends half of its calls to the first version, as in a gradual shift, until both were called."""
    since_ms, versions = int(time.time() * 1000), {}
    for name in FUNCTIONS:
        function = world.deployment.function(name)
        first = world.lambdas.list_versions_by_function(FunctionName=function)["Versions"][1]["Version"]
        alias = {"FunctionName": function, "Name": ALIAS}
        shared = world.lambdas.update_alias(**alias, RoutingConfig={"AdditionalVersionWeights": {first: 0.5}})
        versions[name] = {first, shared["FunctionVersion"]}
        expect(len(versions[name]) == 2, f"{name} has another version than {first}")
    for name, both in versions.items():
        are_called = functools.partial(all_are_called, world, name, both, since_ms)
        until(f"versions {sorted(both)} of {name} are called", are_called, ENDED_S_MAX)
    for name in FUNCTIONS:
        alias = {"FunctionName": world.deployment.function(name), "Name": ALIAS}
        world.lambdas.update_alias(**alias, RoutingConfig={"AdditionalVersionWeights": {}})


def all_are_called(world: World, name: str, versions: set[str], since_ms: int) -> bool:
    """Whether each of these versions of a function was called since."""
    logs = client(world.deployment.emulator, "logs")
    group = f"/aws/lambda/{world.deployment.function(name)}"
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since_ms)
    texts = "\n".join(event["message"] for page in pages for event in page["events"])
    return versions.issubset(re.findall(r"^START RequestId: \S+ Version: (\S+)", texts, re.MULTILINE))


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
            enough = max(len(self._posted) + AFTER, ORDERS)
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
                self._posted.append((self._world.expect_end(self._accepted(document(stand_in)), end), end))
        except BaseException as failure:  # noqa: BLE001 - the check shows it
            self._failure.append(failure)

    def _accepted(self, order: dict[str, Any]) -> str:
        """Posts an order, which must be accepted at once, and asks for it."""
        answer = self._world.application.post("/orders", order, {"Idempotency-Key": str(uuid.uuid4())})
        expect(answer.status == 202, f"POST /orders: expected 202, found {answer.status} {answer.body}")
        order_id = str(answer.body["OrderID"])
        status = self._world.operator.get(f"/orders/{order_id}").status
        expect(status in (200, 404), f"GET of an order just accepted: expected 200 or 404, found {status}")
        return order_id

    def _took_s(self, order_id: str, end: str) -> float:
        """From the acceptance to the last transition."""
        task = self._world.reach(order_id, end, ENDED_S_MAX)
        times = [seconds(entry["At"]) for entry in task["History"]]
        return max(times) - seconds(task["SubmittedAt"])
