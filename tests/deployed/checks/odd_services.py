"""Services that answer oddly or at a bad moment, and what an order, its neighbours and its operator see of it."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from harness.report import Report, expect, expect_equal, until
from harness.serve import folder
from harness.stub import Answer, Call, Stub
from workflows.run import SHIPPED, workflow
from world import ORDER_S_MAX, World

from checks.own_workflows import SUPERVISED_EVERY_S, VISIBILITY_S, Functions
from checks.supervision import Supervisors

TITLE = "Services that answer oddly or at a bad moment"
AGENTS = ("busy", "brief")
BY = {"By": "ann", "Reason": "the test is over"}
# How long the busy service is at work. Its attempt ends by the time-out of a call, 10 s.
AT_WORK_S = 20.0
# What begins within a second of an operator's command, and the clock of this machine.
BEGUN_S = 1.5
# An undo waits for calls under way, and an attempt that was killed for its time.
LONG_S = 240.0


class Services(Stub):
    """The services, each below its name. They keep a book of calls: when, for which key."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.done: set[str] = set()
        self.is_back = False
        self._begun: dict[str, float] = {}
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """The answer to a call."""
        name, key = call.path.split("/")[1], call.key
        with self.lock:
            self.times[key].append(time.time())
        if key.endswith("/undo"):
            return 200, {}
        if name == "busy":
            return self._at_work(key)
        return (200 if self.is_back else 503), {}

    def _at_work(self, key: str) -> Answer:
        # The first call works to its end, whoever waits for it. Meanwhile a repeat is told so.
        with self.lock:
            began = self._begun.setdefault(key, time.time())
            is_first = len(self.times[key]) == 1
        if is_first:
            time.sleep(AT_WORK_S)
            self.done.add(key)
        elif time.time() < began + AT_WORK_S:
            return 409, {"code": "request_in_progress"}
        return 200, {}

    def calls_of(self, order_id: str, name: str) -> list[float]:
        """When a service was called for an order."""
        return self.times[f"{order_id}/of-{name}"]


def are_tried(report: Report, world: World) -> None:
    """One check after the other, each with a workflow of one service."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepwarden-odd-")))
        services = stack.enter_context(Services())
        for queue in ("submission", "scheduler", "agents"):
            stack.enter_context(world.visibility(queue, VISIBILITY_S))
        stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        applied = report.check("their folder is applied", lambda: apply(world, services, scratch) or True)
        if applied is None:
            return
        for title, check in CHECKS:
            report.check(title, lambda check=check: check(world, services))  # type: ignore[misc]
        report.check("their workflows are retired", lambda: retire(world))


def apply(world: World, services: Services, scratch: Path) -> None:
    """A workflow for each service."""
    settings, workflows = SHIPPED, {}
    for name in AGENTS:
        settings += f'\n[agents.{name}]\nurl = "{services.url}/{name}"\nsettles_within = "11s"\n'
        workflows[f"at-{name}"] = workflow(f"at-{name}", 1, [(f"of-{name}", name, [])])["Text"]
    functions = Functions(world)
    path = folder(scratch / "folder", settings, workflows)
    done = functions.command("apply", str(path), "--reason", "odd services", "--yes")
    expect_equal(f"apply: {done.stdout}{done.stderr}", done.returncode, 0)
    functions.has_applied()


def retire(world: World) -> None:
    """Nothing is left of them."""
    for name in AGENTS:
        retired = world.operator.post(f"/workflows/at-{name}/1/retire", BY)
        expect_equal(f"at-{name} is retired: {retired.body}", retired.status, 200)


def posted(world: World, name: str, end: str) -> str:
    """An order for a service."""
    order_id = world.post(end, None, Workflow=f"at-{name}")
    world.own.add(order_id)
    return order_id


def a_busy_service_turns_no_order_round(world: World, services: Services) -> None:
    """The agent is killed in the call. The repeat meets 409 while the first call is at work, and that is no refusal."""
    order_id = posted(world, "busy", "Processed")
    until("it is called", lambda: services.calls_of(order_id, "busy"), ORDER_S_MAX, 0.1)
    Functions(world).kill()
    task = world.reach(order_id, "Processed", LONG_S)
    calls = len(services.calls_of(order_id, "busy"))
    expect(calls > 1, f"it is asked again: {calls} call(s)")
    expect(f"{order_id}/of-busy" in services.done, "it has done its work")
    expect_equal("undone", services.times[f"{order_id}/of-busy/undo"], [])
    expect(all("undo" not in json.dumps(line).lower() for line in task["History"]), f"no undo: {task['History']}")


def nothing_is_called_after_a_cancel_or_pause(world: World, services: Services) -> None:
    """Its step was refused for now and waits. The service is back, and is not called until the order is resumed."""
    cancelled, paused = posted(world, "brief", "Compensated"), posted(world, "brief", "Processed")

    def were_asked_again() -> bool:
        return all(len(services.calls_of(order_id, "brief")) > 1 for order_id in (cancelled, paused))

    until("they were asked again", were_asked_again, ORDER_S_MAX, 0.1)
    world.command(cancelled, "cancel", "customer called")
    world.command(paused, "pause", "stock-taking")
    until("one is paused", lambda: "Paused" in (world.task(paused) or {}), ORDER_S_MAX, 0.1)
    until("one turned", lambda: world.state(cancelled) in ("Compensating", "Compensated"), ORDER_S_MAX, 0.1)
    after, services.is_back = time.time() + BEGUN_S, True
    world.reach(cancelled, "Compensated", LONG_S)
    for order_id in (cancelled, paused):
        late = [at - after for at in services.calls_of(order_id, "brief") if at > after]
        expect_equal("calls after it", late, [])
    world.command(paused, "resume", "stock is taken")
    world.reach(paused, "Processed", LONG_S)


CHECKS: list[tuple[str, Callable[[World, Services], None]]] = [
    ("a restart in a call to a service that answers 409 while at work: done", a_busy_service_turns_no_order_round),
    ("cancelled or paused while a step waits: no call after it", nothing_is_called_after_a_cancel_or_pause),
]
