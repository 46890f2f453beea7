"""Orders with lines, on the deployed functions: the run of the suite `lines`."""

from __future__ import annotations

import contextlib

from harness.report import Report
from lines.run import Run, Services
from world import World

from checks.own_callbacks import are_retired
from checks.own_workflows import SUPERVISED_EVERY_S, VISIBILITY_S, Functions
from checks.supervision import Supervisors

# The emulator carries some three lines a second: 500 orders would take an hour.
ORDERS, SEED = 12, 1


def are_tried(report: Report, world: World) -> None:
    """The run. Afterwards the shipped workflow is the default again."""
    with contextlib.ExitStack() as stack:
        services = stack.enter_context(Services())
        for queue in ("submission", "scheduler", "agents"):
            stack.enter_context(world.visibility(queue, VISIBILITY_S))
        supervisors = stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        run = Run(Functions(world), services, ORDERS, SEED)
        run.all(report)
        report.check("its workflow is retired", lambda: are_retired(run.system, ["sale"]))
        report.check("no supervisor failed", supervisors.went_well)
    for order_id, task in run.tasks.items():
        world.expect_own(order_id, task["ProcessState"])
