"""What a passing fault costs an order: each AWS call that is made for it fails once, in each way."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import re
import signal
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from harness.calls import seconds
from harness.interceptor import ANSWER, Interceptor, intercepted
from harness.report import CheckFailed, expect, until
from planned import Planned, planned
from stranded import is_over, stranded
from world import World

from checks.supervision import PERIOD_S, switch_schedule, take_leases

# What one fault may cost at the median, and how many orders are under way at the same time.
COST_S_MAX = 5.0
AT_ONCE = 4
FUNCTIONS = ("api", "submission", "scheduler", "agents")
# Orders that make all kinds of calls, with their ends: one that nothing slows down; one that cannot be stored at first,
# so that its message comes again; and one that is rejected and not undone.
SHAPES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "done": ("Processed", None),
    "again": ("Processed", None),
    "fails": ("Error", {"payment": {"Decline": "no"}, "inventory": {"Undo": {"Decline": "too_late"}}}),
}
# Calls that only the latter two make.
SELDOM = {"ChangeMessageVisibility", "PutEvents"}
# Orders of each shape whose calls are recorded, and those without a fault that run among the others.
RECORDED = 4
PLAIN = 12
# A busy machine may make a call for one order fewer times than for the recorded ones.
TRIES_MAX = 5
# After these the handling of a message fails.
SDK_ATTEMPTS = 3
ENDED_S_MAX = 120.0

# How often each call is made for an order: `(function, name)`.
Calls = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    """A call that fails in an order of a shape."""

    shape: str
    function: str
    call: str
    nth: int
    kind: str
    rule: dict[str, Any] = field(compare=False)


# ---- orders that are carried on


def a_passing_fault_costs_little(world: World) -> str:
    """Each invocation has one order, so each call is made for one. Orders with a fault and without run side by side.
    Then one by one those whose functions have just been started, and ask for what they remember otherwise."""
    with world.one_at_a_time():
        known: set[tuple[str, str]] = set()
        always, seldom = [], []
        for shape in SHAPES:
            end_processes(world, *FUNCTIONS)
            fresh, *warm = [calls_of_an_order(world, shape) for _ in range(1 + RECORDED)]
            each = functools.reduce(operator.and_, warm)
            every = functools.reduce(operator.or_, warm, fresh)
            always += cases_of(shape, Counter({key: count for key, count in each.items() if key not in known}))
            seldom += cases_of(shape, Counter({key: 1 for key in every if key not in each and key not in known}))
            known |= set(every)
        operations = {case.call.partition(" ")[0] for case in (*always, *seldom)}
        expect(operations >= SELDOM, f"{SELDOM} are among {operations}")
        with ThreadPoolExecutor(AT_ONCE, "order") as pool:
            plain, pending = [], {}
            for number, case in enumerate(always):
                if number % max(1, len(always) // PLAIN) == 0:
                    plain += [(shape, pool.submit(elapsed_s, world, shape, planned_order(shape))) for shape in SHAPES]
                pending[case] = pool.submit(with_fault_s, world, case)
        took_s = {case: one.result() for case, one in pending.items()}
        took_s |= {case: with_fault_s(world, case, fresh=True) for case in seldom}
    usual_s = {shape: statistics.median(one.result() for of, one in plain if of == shape) for shape in SHAPES}
    return judged(world, {case: one_s - usual_s[case.shape] for case, one_s in took_s.items()}, usual_s)


def planned_order(shape: str) -> Planned:
    """An order that is found by a term, and whose reply channel is told."""
    return planned(SHAPES[shape][1], ReplyChannel="shop", CorrelationID=str(uuid.uuid4()))


def elapsed_s(world: World, shape: str, order: Planned) -> float:
    """How long an order takes from its post to its end, by one clock."""
    began_s, end = time.time(), SHAPES[shape][0]
    times = SDK_ATTEMPTS if shape == "again" else 0
    fault = error("dynamodb.v20120810", 500, "InternalServerError")
    with calls_for(world, "submission", order, "PutItem .*OrdersTable.*", times=times, **fault):
        order.post(world, end)
        return ended_s(world, order, end) - began_s


def ended_s(world: World, order: Planned, end: str = "Processed") -> float:
    """When the last transition of an order was."""
    task = world.reach(order.order_id, end, ENDED_S_MAX)
    return seconds(task["History"][-1]["At"])


def calls_of_an_order(world: World, shape: str) -> Calls:
    """What is recorded of an order."""
    order = planned_order(shape)
    with ExitStack() as stack:
        interceptors = {name: stack.enter_context(calls_for(world, name, order)) for name in FUNCTIONS}
        elapsed_s(world, shape, order)
        return Counter((name, call) for name, one in interceptors.items() for call in one.seen)


def calls_for(
    world: World, function: str, order: Planned, calls: str = f"(?!{ANSWER}).*", **rule: Any
) -> AbstractContextManager[Interceptor]:
    """The calls that a function makes for an order: those of the API for its post, and not when it is looked at."""
    mark = order.key if function == "api" else order.order_id
    return intercepted(world.deployment, function, mark, calls, of_invocation=True, **rule)


def end_processes(world: World, *functions: str) -> None:
    """These functions start afresh with their next events."""
    for function in functions:
        for process in world.deployment.emulator.function_processes(world.deployment.function(function)):
            os.kill(process.pid, signal.SIGKILL)


def with_fault_s(world: World, case: Case, *, fresh: bool = False) -> float:
    """How long an order takes in which a call fails once; with `fresh`, where its functions have just been started."""
    for _ in range(TRIES_MAX):
        if fresh:
            end_processes(world, *FUNCTIONS)
        order = planned_order(case.shape)
        with calls_for(world, case.function, order, re.escape(case.call), nth=case.nth, **case.rule) as interceptor:
            try:
                took_s = elapsed_s(world, case.shape, order)
            except CheckFailed as error:
                raise CheckFailed(f"{case.kind} of {case.function} {case.call}: {error}") from error
            if interceptor.struck:
                return took_s
    raise CheckFailed(f"{case.function} made no {case.call} ({case.nth}) for {TRIES_MAX} orders")


# ---- supervisors


def a_fault_of_a_supervisor_costs_little(world: World) -> str:
    """In a run that finds an attempt over whose request was lost. A run that leaves the order costs it a minute, until
    the next one."""
    switch_schedule(world, "DISABLED")
    with world.one_at_a_time(), ThreadPoolExecutor(AT_ONCE, "order") as pool:
        recorded = list(pool.map(lambda _: stranded(world), range(RECORDED)))
        runs = [run(world, order) for order in recorded]
        calls = functools.reduce(operator.and_, (Counter(seen) for _, _, seen, _ in runs))
        cases = list(cases_of("stranded", Counter({("supervisor", call): count for call, count in calls.items()})))
        orders = list(pool.map(lambda _: stranded(world), cases))
    runs += [run(world, order, case) for order, case in zip(orders, cases, strict=True)]
    for case, (_, _, _, struck) in zip(cases, runs[RECORDED:], strict=True):
        expect(struck, f"a supervisor made no {case.call} ({case.nth})")
    usual_s, took_s = [], {}

    def are_processed() -> bool:
        world.supervise()
        return all(world.state(order.order_id) == "Processed" for order in orders)

    until("all are processed", are_processed, ENDED_S_MAX, 2.0)
    for number, (order, (began_s, over_s, _, _)) in enumerate(zip([*recorded, *orders], runs, strict=True)):
        lines = (world.task(order.order_id) or {})["History"]
        freed_s = next(seconds(line["At"]) for line in lines if line["Kind"] == "Expired")
        one_s = ended_s(world, order) - began_s + (PERIOD_S if freed_s > over_s else 0)
        if number < RECORDED:
            usual_s.append(one_s)
        else:
            took_s[cases[number - RECORDED]] = one_s
    median_s = statistics.median(usual_s)
    return judged(world, {case: one_s - median_s for case, one_s in took_s.items()}, {"stranded": median_s})


def run(world: World, order: Planned, case: Case | None = None) -> tuple[float, float, list[str], bool]:
    """A run for an order, of which a call may fail: when it began and was over, the names of its calls, and whether one
    failed."""
    take_leases(world)
    is_over(world, order)
    mark, calls = str(uuid.uuid4()), re.escape(case.call) if case else f"(?!{ANSWER}).*"
    rule: dict[str, Any] = {"nth": case.nth, **case.rule} if case else {}
    with intercepted(world.deployment, "supervisor", mark, calls, of_invocation=True, **rule) as interceptor:
        began_s = time.time()
        with contextlib.suppress(CheckFailed):
            world.supervise(Mark=mark)
        return began_s, time.time(), interceptor.seen, interceptor.struck


# ---- faults


def cases_of(shape: str, counts: Calls) -> Iterator[Case]:
    """Each call with each kind of fault. If it is made several times for an order, each kind strikes another time."""
    for (function, call), count in sorted(counts.items()):
        for number, (kind, rule) in enumerate(kinds_of(call).items()):
            yield Case(shape, function, call, 1 + number % count, kind, rule)


def kinds_of(call: str) -> dict[str, dict[str, Any]]:
    """The faults that AWS documents for a call and that pass, as rules of an interceptor."""
    operation = call.partition(" ")[0]
    closed = {"closed": {"act": "close before"}, "done, and closed": {"act": "close after"}}
    if "Message" in operation:
        errors = {"RequestThrottled": 400, "ThrottlingException": 400}
        errors |= {"InternalFailure": 500, "ServiceUnavailable": 503}
        refused = {"entries refused": {"act": "refuse entries"}} if operation.endswith("Batch") else {}
        return {**{code: error("sqs", status, code) for code, status in errors.items()}, **refused, **closed}
    if operation == "PutEvents":
        errors = {"ThrottlingException": 400, "InternalException": 500}
        return {**{code: error("eventbridge", status, code) for code, status in errors.items()}, **closed}
    errors = {"ThrottlingException": 400, "ProvisionedThroughputExceededException": 400, "InternalServerError": 500}
    of_items = {code: error("dynamodb.v20120810", status, code) for code, status in errors.items()}
    conflict = {}
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        conflict = {"conflict": error("dynamodb.v20120810", 400, "TransactionConflictException")}
    if operation.startswith("Transact"):
        reasons = [{"Code": "TransactionConflict"}]
        code = "TransactionCanceledException"
        conflict = {"conflict": error("dynamodb.v20120810", 400, code, CancellationReasons=reasons)}
    return {**of_items, **conflict, **closed}


def error(service: str, status: int, code: str, **more: object) -> dict[str, Any]:
    """An answer of AWS."""
    answer = {"__type": f"com.amazonaws.{service}#{code}", "message": "a fault of the test", **more}
    return {"act": "answer", "status": status, "answer": answer}


def judged(world: World, costs_s: dict[Case, float], usual_s: dict[str, float]) -> str:
    """Fails where a call costs too much at the median of the kinds of faults. Gives a line for each call."""
    names = {value.rpartition("/")[2]: name for name, value in world.deployment.outputs.items()}
    medians_s: dict[str, float] = {}
    of_calls: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for case, cost_s in costs_s.items():
        of_calls.setdefault((case.function, case.call), []).append((cost_s, case.kind))
    for (function, call), of_kinds in sorted(of_calls.items()):
        operation, _, of = call.partition(" ")
        (most_s, kind), median_s = max(of_kinds), statistics.median(cost_s for cost_s, _ in of_kinds)
        line = f"{median_s:5.2f} s {function} {operation} {names.get(of, of) or '-'}; at most {most_s:.2f} s ({kind})"
        medians_s[line] = median_s
    usual = ", ".join(f"{shape} {one_s:.2f} s" for shape, one_s in usual_s.items())
    lines = [f"{len(costs_s)} faults; without one: {usual}; more, at the median of its kinds, with one of", *medians_s]
    over = [line for line, median_s in medians_s.items() if median_s > COST_S_MAX]
    expect(not over, "\n".join([f"more than {COST_S_MAX:.0f} s at the median:", *over, *lines]))
    return "\n".join(lines)
