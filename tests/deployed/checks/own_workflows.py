"""Workflows and services of one's own, applied to the deployed functions: the run of the suite `workflows`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.report import Report, expect, expect_equal, until
from workflows.run import Run, Services
from world import World

from checks.doctor import stepwarden
from checks.supervision import Supervisors

KILLED = ("api", "submission", "scheduler", "agents")
# What a killed function had received comes back after this time.
VISIBILITY_S = 40
# A process reads the deployment again after 5 s.
APPLIED_S = 6.0
# A killed attempt ends by its time-out, and an undo waits for calls under way.
SEEN_S_MAX = 240
SUPERVISED_EVERY_S = 5.0


class Functions:
    """The deployed functions as the system of a run."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """One signed call: posts and looks of orders as the application, else as the operator."""
        is_command = method == "POST" and path != "/orders"
        client = self._world.application if path.startswith("/orders") and not is_command else self._world.operator
        answer = client.get(path, headers) if method == "GET" else client.post(path, body, headers)
        return answer.status, answer.body

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

        def look() -> dict[str, Any] | None:
            task = self._world.task(order_id)
            return task if task is not None and holds(task) else None

        return until(f"order {order_id} is as expected", look, SEEN_S_MAX)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of `stepwarden`, signed with the operator's keys."""
        keys = self._world.operator.keys
        assert keys is not None
        own = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
        return stepwarden(self._world, list(words), own)

    def has_applied(self) -> None:
        """Waits as long as a process may use what was applied before."""
        time.sleep(APPLIED_S)

    def kill(self) -> None:
        """SIGKILL to every process of the functions that carry orders. The platform starts others."""
        emulator, deployment = self._world.deployment.emulator, self._world.deployment
        processes = [one for name in KILLED for one in emulator.function_processes(deployment.function(name))]
        expect(bool(processes), "the functions run in processes of their own")
        for one in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)


def are_tried(report: Report, world: World, folder: Path) -> None:
    """The run, with no deployment between. Afterwards the shipped workflow is the default again."""
    scratch = folder / "own-workflows"
    with contextlib.ExitStack() as stack:
        services = stack.enter_context(Services())
        for queue in ("submission", "scheduler", "agents"):
            stack.enter_context(world.visibility(queue, VISIBILITY_S))
        supervisors = stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        # Each function knows the deployment as it was.
        world.reach(world.post("Processed"), "Processed")
        run = Run(Functions(world), services, scratch)
        run.all(report)
        report.check("the shipped workflow is the default again", lambda: the_shop_is_back(run))
        report.check("no supervisor failed", supervisors.went_well)
    for order_id, document in run.orders.items():
        world.expect_own(order_id, "Compensated" if "Decline" in document else "Processed")


def the_shop_is_back(run: Run) -> None:
    """An operator chooses the compiled version, which was applied by nobody."""
    chosen = {"By": "ann", "Reason": "the test is over", "Version": 1, "Default": True}
    status, answer = run.system.ask("POST", "/workflows/order/choose", chosen)
    expect_equal(f"the answer {answer}", status // 100, 2)
    run.system.has_applied()
