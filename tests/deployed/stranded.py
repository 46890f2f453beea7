"""Orders that only a supervisor carries on: the request for their first step is lost."""

from __future__ import annotations

import time

from harness.interceptor import intercepted
from ledger import STEPS
from planned import Planned, planned
from world import World

# The first step, whose request is lost.
STEP = next(iter(STEPS))
# Beyond every check, and a while ago.
AHEAD_S, AGO_S = 600, 10


def stranded(world: World) -> Planned:
    """A new order whose request for the first step is lost, and whose attempt is not over until `is_over` says so. Each
    invocation must have one message: a request in the same batch would be lost as well."""
    order = planned()
    with intercepted(world.deployment, "submission", order.order_id, "SendMessageBatch .*-agents", "lose entries"):
        order.post(world)
        world.reach_step(order.order_id, STEP, ProcessState="Processing", Attempt=1)
    complete_by(world, order, time.time() + AHEAD_S)
    return order


def is_over(world: World, order: Planned) -> None:
    """The time of the attempt is over."""
    complete_by(world, order, time.time() - AGO_S)


def complete_by(world: World, order: Planned, at_s: float) -> None:
    """Writes when the attempt is to be complete."""
    world.change_task(order.order_id, "SET Steps[0].CompleteBy = :at, WatchAt = :at", at=int(at_s * 1000))
