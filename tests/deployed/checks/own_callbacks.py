"""Results that come later, at the deployed API: the run of the suite `callbacks`."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from callbacks.bank import Bank
from callbacks.run import Run
from callbacks.webhooks import SCHEMES
from harness.report import Report, expect_equal
from workflows.run import System
from world import World

from checks.own_workflows import SUPERVISED_EVERY_S, VISIBILITY_S, Functions
from checks.supervision import Supervisors

ORDERS = 90
SECONDS = 8.0
BY = {"By": "ann", "Reason": "the test is over"}


def are_tried(report: Report, world: World) -> None:
    """The run. Afterwards the shipped workflow is the default again, and no order begins with the run's."""
    with contextlib.ExitStack() as stack:
        bank = stack.enter_context(Bank(SECONDS))
        for queue in ("submission", "scheduler", "agents"):
            stack.enter_context(world.visibility(queue, VISIBILITY_S))
        supervisors = stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        # The functions' processes run on this machine, so they read the secrets of the webhooks here.
        secrets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepwarden-secrets-")))
        run = Run(Functions(world), bank, ORDERS, secrets)
        run.all(report)
        names = ["paid-later", *(scheme.workflow for scheme in SCHEMES.values())]
        report.check("its workflows are retired", lambda: are_retired(run.system, names))
        report.check("no supervisor failed", supervisors.went_well)
    for order_id, state in run.states.items():
        world.expect_own(order_id, state)


def are_retired(system: System, names: list[str]) -> None:
    """So their services may go."""
    chosen = {**BY, "Version": 1, "Default": True}
    retired = [(f"/workflows/{name}/1/retire", BY) for name in names]
    for path, body in (("/workflows/order/choose", chosen), *retired):
        status, answer = system.ask("POST", path, body)
        expect_equal(f"the answer {answer}", status // 100, 2)
