"""A process that is killed in the middle of its work."""

from __future__ import annotations

import os
import signal

from harness.report import expect, expect_equal, until
from world import ORDER_S_MAX, World, step

# The request of the killed agent comes back after this time, when its attempt is over, and must then do nothing.
VISIBILITY_S = 40
GRACE_S = 2.0


def an_agent_is_killed(world: World) -> None:
    """SIGKILL while the carrier, which has done its work already, is about to answer. The other half comes later."""
    with world.visibility("agents", VISIBILITY_S):
        order_id = world.post("Processed", {"shipping": {"SlowMs": 6000}})
        until("the carrier was called", lambda: world.ledger.of(order_id, "ship-order").forward_calls, ORDER_S_MAX, 0.1)
        victims = world.deployment.emulator.function_processes(world.deployment.function("agents"))
        expect(bool(victims), "the agent runs in a process of its own")
        for victim in victims:
            os.kill(victim.pid, signal.SIGKILL)
    world.killed_order = order_id
    task = world.task(order_id) or {}
    shown = step(task, "ship-order")
    expect_equal("the step", (shown["ProcessState"], shown["Attempt"]), ("Processing", 1))
    expect_equal("effects", world.ledger.of(order_id, "ship-order").forward_effects, 1)


def its_order_is_recovered_by_the_supervisor(world: World) -> None:
    """Nothing happens until the attempt is over; then a supervisor, invoked by hand, counts one failure, the step is
    carried out again under the same key, and there is one effect."""
    order_id = world.killed_order or ""
    expect(bool(order_id), "an agent was killed before")
    try:
        until("the attempt is over", lambda: world.is_past_complete_by(order_id, "ship-order", GRACE_S), 45)
        shown = world.reach_step(order_id, "ship-order", 0, ProcessState="Processing", Attempt=1, FailureCount=0)
        expect(shown["LockedBy"].startswith("scheduler-"), "it is still claimed")
        world.supervise()
        world.reach_step(order_id, "ship-order", 5, FailureCount=1)
    finally:
        world.supervised_by_hand.set()
    task = world.reach(order_id, "Processed", 60)
    expect_equal("attempts", step(task, "ship-order")["Attempt"], 2)
    entry = world.ledger.of(order_id, "ship-order")
    expect_equal("calls and effects", (entry.forward_calls, entry.forward_effects), (2, 1))
