"""What a passing fault costs an order: each AWS call that is made for it fails once, in each way."""

from __future__ import annotations

import datetime
import functools
import operator
import os
import re
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from harness.interceptor import ANSWER, Interceptor, intercepted
from harness.report import CheckFailed, expect
from planned import Planned, planned
from world import World

FUNCTIONS = ("api", "submission", "scheduler", "agents")
# What one fault may cost at the median, and how many orders are under way at the same time.
COST_S_MAX = 5.0
AT_ONCE = 4
# Orders whose calls are recorded, and those without a fault that run among the others.
RECORDED = 4
PLAIN = 16
# A busy machine may make a call for one order fewer times than for the recorded ones.
TRIES_MAX = 5
ENDED_S_MAX = 120.0

# How often each call is made for an order: `(function, name)`.
Calls = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    """A call that fails."""

    function: str
    call: str
    nth: int
    kind: str
    rule: dict[str, Any] = field(compare=False)


def a_passing_fault_costs_little(world: World) -> str:
    """Each invocation has one order, so each call is made for one. Orders with a fault and without run side by side.
    Then one by one those whose function has just been started, and asks for what it remembers otherwise."""
    with world.one_at_a_time():
        end_processes(world)
        fresh, *warm = [calls_of_an_order(world) for _ in range(1 + RECORDED)]
        always = functools.reduce(operator.and_, warm)
        seldom = Counter({key: 1 for key in functools.reduce(operator.or_, warm, fresh) if key not in always})
        cases = list(cases_of(always))
        with ThreadPoolExecutor(AT_ONCE, "order") as pool:
            plain = [pool.submit(elapsed_s, world, planned_order()) for _ in range(PLAIN)]
            pending = {case: pool.submit(with_fault_s, world, case) for case in cases}
        usual_s = statistics.median(one.result() for one in plain)
        costs = {case: one.result() - usual_s for case, one in pending.items()}
        costs |= {case: with_fault_s(world, case, fresh=True) - usual_s for case in cases_of(seldom)}
    return judged(world, costs, usual_s)


def judged(world: World, costs: dict[Case, float], usual_s: float) -> str:
    """Fails where a call costs too much at the median of the kinds of faults. Gives a line for each call."""
    names = {value.rpartition("/")[2]: name for name, value in world.deployment.outputs.items()}
    medians_s: dict[str, float] = {}
    for function, call in sorted({(case.function, case.call) for case in costs}):
        of_kinds = {case.kind: cost_s for case, cost_s in costs.items() if (case.function, case.call) == (function, call)}
        operation, _, of = call.partition(" ")
        worst, median_s = max(of_kinds, key=lambda kind: of_kinds[kind]), statistics.median(of_kinds.values())
        line = f"{median_s:5.2f} s {function} {operation} {names.get(of, of)}; at most {of_kinds[worst]:.2f} s ({worst})"
        medians_s[line] = median_s
    lines = [f"{len(costs)} faults of {len(medians_s)} calls; {usual_s:.2f} s without a fault; more with one:", *medians_s]
    over = [line for line, median_s in medians_s.items() if median_s > COST_S_MAX]
    expect(not over, "\n".join([f"more than {COST_S_MAX:.0f} s at the median:", *over, *lines]))
    return "\n".join(lines)


def planned_order() -> Planned:
    """An order that makes all kinds of calls: it is found by a term, and its reply channel is told."""
    return planned(ReplyChannel="shop", CorrelationID=f"passing-{time.monotonic_ns()}")


def elapsed_s(world: World, order: Planned) -> float:
    """How long an order takes from its post to its last transition, by one clock."""
    began_s = time.time()
    order.post(world)
    task = world.reach(order.order_id, "Processed", ENDED_S_MAX)
    ended = datetime.datetime.fromisoformat(task["History"][-1]["At"].replace("Z", "+00:00"))
    return ended.timestamp() - began_s


def calls_of_an_order(world: World) -> Calls:
    """What is recorded of an order."""
    order = planned_order()
    with ExitStack() as stack:
        interceptors = {name: stack.enter_context(calls_for(world, name, order, f"(?!{ANSWER}).*")) for name in FUNCTIONS}
        elapsed_s(world, order)
        return Counter((name, call) for name, one in interceptors.items() for call in one.seen)


def calls_for(
    world: World, function: str, order: Planned, calls: str, **rule: Any
) -> AbstractContextManager[Interceptor]:
    """The calls that a function makes for an order; those of the API when it is posted, and not when it is looked at."""
    mark = order.key if function == "api" else order.order_id
    return intercepted(world.deployment, function, mark, calls, of_invocation=True, **rule)


def end_processes(world: World) -> None:
    """No function runs, so each starts afresh with its next message. None is at work."""
    for function in FUNCTIONS:
        for process in world.deployment.emulator.function_processes(world.deployment.function(function)):
            os.kill(process.pid, signal.SIGKILL)


def cases_of(counts: Calls) -> Iterator[Case]:
    """Each call with each kind of fault. If it is made several times for an order, each kind strikes another time."""
    for (function, call), count in sorted(counts.items()):
        for number, (kind, rule) in enumerate(kinds_of(call).items()):
            yield Case(function, call, 1 + number % count, kind, rule)


def kinds_of(call: str) -> dict[str, dict[str, Any]]:
    """The faults that AWS documents for a call and that pass, as rules of an interceptor."""
    operation = call.partition(" ")[0]
    closed = {"closed": {"act": "close before"}, "done, and closed": {"act": "close after"}}
    if "Message" in operation:
        refused = {"entries refused": {"act": "refuse entries"}} if operation.endswith("Batch") else {}
        return {
            "RequestThrottled": error("sqs", 400, "RequestThrottled"),
            "ThrottlingException": error("sqs", 400, "ThrottlingException"),
            "ServiceUnavailable": error("sqs", 503, "ServiceUnavailable"),
            "InternalFailure": error("sqs", 500, "InternalFailure"),
            **refused,
            **closed,
        }
    if operation == "PutEvents":
        names = {"ThrottlingException": 400, "InternalException": 500}
        return {**{name: error("events", status, name) for name, status in names.items()}, **closed}
    conflicts = {
        "TransactWriteItems": error(
            "dynamodb.v20120810", 400, "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}]
        ),
        **dict.fromkeys(
            ("PutItem", "UpdateItem", "DeleteItem"), error("dynamodb.v20120810", 400, "TransactionConflictException")
        ),
    }
    return {
        "ThrottlingException": error("dynamodb.v20120810", 400, "ThrottlingException"),
        "ProvisionedThroughputExceededException": error(
            "dynamodb.v20120810", 400, "ProvisionedThroughputExceededException"
        ),
        "InternalServerError": error("dynamodb.v20120810", 500, "InternalServerError"),
        **({"TransactionConflict": conflicts[operation]} if operation in conflicts else {}),
        **closed,
    }


def error(service: str, status: int, code: str, **more: object) -> dict[str, Any]:
    """An answer of AWS."""
    answer = {"__type": f"com.amazonaws.{service}#{code}", "message": "a fault of the test", **more}
    return {"act": "answer", "status": status, "answer": answer}


def with_fault_s(world: World, case: Case, *, fresh: bool = False) -> float:
    """How long an order takes in which a call fails once; with `fresh`, where its functions have just been started."""
    for _ in range(TRIES_MAX):
        if fresh:
            end_processes(world)
        order = planned_order()
        calls = re.escape(case.call)
        with calls_for(world, case.function, order, calls, nth=case.nth, **case.rule) as interceptor:
            taken_s = elapsed_s(world, order)
            if interceptor.struck:
                return taken_s
    raise CheckFailed(f"{case.function} made no {case.call} ({case.nth}) for {TRIES_MAX} orders")
