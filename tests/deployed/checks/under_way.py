"""Services that are at work after their caller left, answer later, or do not know the caller."""

from __future__ import annotations

from harness.report import expect, expect_equal
from world import World, step

# Above the time-out of a call, 10 s, and below the time in which a call settles, 30 s.
BUSY = {"BusyMs": 12_000}
# A time-out, the time in which the call settles, and an undo, on a busy machine.
SETTLED_S_MAX = 120.0


def an_effect_after_the_caller_left_is_known(world: World) -> None:
    """The agent gives a payment up that is charged 2 s later: the order keeps the charge or gives it back."""
    kept = world.post("Processed", {"payment": BUSY})
    declined = world.post("Compensated", {"payment": BUSY, "shipping": {"Decline": "no_such_street"}})
    cancelled = world.post("Compensated", {"payment": BUSY})
    world.reach_step(cancelled, "charge-payment", ProcessState="Processing")
    world.command(cancelled, "cancel", "customer called")
    world.reach(kept, "Processed", SETTLED_S_MAX)
    for order_id in (declined, cancelled):
        world.reach(order_id, "Compensated", SETTLED_S_MAX)
        expect(world.ledger.of(order_id, "charge-payment").is_undone, f"the charge of {order_id} is given back")
    expect_equal("charges", world.ledger.of(kept, "charge-payment").forward_effects, 1)


def a_result_that_comes_later_is_waited_for(world: World) -> None:
    """202 for 3 s: the step is done with the result, and not before."""
    order_id = world.post("Processed", {"payment": {"PendingMs": 3_000}})
    task = world.reach(order_id, "Processed")
    expect_equal("the output", step(task, "charge-payment")["Output"]["Status"], "captured")
    expect(world.ledger.of(order_id, "charge-payment").forward_calls >= 2, "payment was asked again")


def an_unknown_caller_compensates_no_order(world: World) -> None:
    """401 twice: the service is asked again."""
    order_id = world.post("Processed", {"payment": {"Unauthorised": 2}})
    world.reach(order_id, "Processed")
    expect_equal("charges", world.ledger.of(order_id, "charge-payment").forward_effects, 1)
