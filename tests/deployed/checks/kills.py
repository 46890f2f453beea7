"""Every function is killed at three moments, each in an order of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from audit import is_done
from harness.interceptor import ANSWER, Act, Interceptor, intercepted
from harness.report import CheckFailed, expect, expect_equal, until
from ledger import STEPS
from planned import Planned, planned
from stranded import is_over, stranded
from world import World

from checks.supervision import switch_schedule, take_leases

WRITES = "(Put|Update|Delete|Transact|BatchWrite|Send|Change).*"
MOMENTS: dict[str, tuple[str, Act]] = {
    "before its first write": (WRITES, "kill before"),
    "between its first write and what follows": (WRITES, "kill after"),
    "between its last call and its answer": (ANSWER, "kill before"),
}
# A message of a killed function comes back after this time, here and not in the template.
VISIBILITY_S = 10
KILLED_S_MAX = 120.0


def a_function_is_killed(function: str, world: World) -> None:
    """Each of its invocations has one order. Its message comes again; the caller of a killed API posts again, under the
    same key."""
    with ExitStack() as stack:
        if function != "api":
            stack.enter_context(world.visibility(function, VISIBILITY_S))
        orders = [(moment, planned()) for moment in MOMENTS]
        interceptors = [stack.enter_context(killed(world, function, moment, order)) for moment, order in orders]
        for moment, order in orders:
            posts = order.post(world)
            expect(posts > 1 or function != "api", f"no answer of an API that was killed {moment}")
        for (moment, order), interceptor in zip(orders, interceptors, strict=True):
            world.reach(order.order_id, "Processed", KILLED_S_MAX)
            expect(interceptor.struck, f"{function} was killed {moment}")
            has_one_effect_each(world, order)


def a_supervisor_is_killed(world: World) -> None:
    """In a run that finds an attempt over whose request was lost. Later runs go on."""
    switch_schedule(world, "DISABLED")
    with world.one_at_a_time():
        orders = {moment: stranded(world) for moment in MOMENTS}
    for moment, order in orders.items():
        is_over(world, order)
        with killed(world, "supervisor", moment, order) as interceptor:
            expect(fails(world), f"a supervisor that is killed {moment} fails")
            expect(interceptor.struck, f"the supervisor was killed {moment}")
        take_leases(world)

    def are_processed() -> bool:
        world.supervise()
        return all(world.state(order.order_id) == "Processed" for order in orders.values())

    # A step that lost its wake gets another after half a minute.
    until("later runs go on", are_processed, KILLED_S_MAX, 2.0)
    for order in orders.values():
        task = world.reach(order.order_id, "Processed")
        expect_equal("attempts", [one["Attempt"] for one in task["Steps"]], [2, 1, 1])
        has_one_effect_each(world, order)


def killed(world: World, function: str, moment: str, order: Planned) -> AbstractContextManager[Interceptor]:
    """Within, the function is killed once, in what it does for this order."""
    calls, act = MOMENTS[moment]
    return intercepted(world.deployment, function, order.order_id, calls, act)


def fails(world: World) -> bool:
    """Whether a supervisor ends with an error."""
    try:
        world.supervise()
    except CheckFailed:
        return True
    return False


def has_one_effect_each(world: World, order: Planned) -> None:
    """Each service did its step once."""
    entries = [world.ledger.of(order.order_id, name) for name in STEPS]
    expect(all(is_done(entry) for entry in entries), f"one effect each for {order.order_id}, found {entries}")
