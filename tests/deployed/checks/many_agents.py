"""A folder of forty agents. One function serves them all, from one pair of queues."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from harness.calls import seconds
from harness.report import expect, expect_equal, until
from harness.serve import folder
from harness.stub import Answer, Call, Stub
from workflows.run import SHIPPED, workflow
from world import ORDER_S_MAX, World

from checks.own_workflows import SUPERVISED_EVERY_S, Functions
from checks.supervision import Supervisors

AGENTS = [f"agent-{number:02}" for number in range(1, 41)]
# The last step of both workflows, and a step in the middle of one.
LAST, DOWN = "agent-40", "agent-20"
WORKFLOWS = {"forty": AGENTS, "but-one": [name for name in AGENTS if name != DOWN]}
# Steps that run side by side.
ABREAST = 5
# Of each workflow and time; those of the first time that are refused at the end.
ORDERS, COMPENSATED = 3, 3
# How long a service that is down takes for its 503, and how long its breaker waits at most.
SLOW_S = 0.5
BREAKER = 'breaker.longest_wait = "2s"\n'
# How long an order of forty steps, and as many undos, may take on a busy machine.
ENDED_S_MAX = 4 * ORDER_S_MAX
# What an order may take longer on a machine that has just become busy, beside twice the time.
SLACK_S = 5.0
BY = {"By": "ann", "Reason": "the test is over"}


class Services(Stub):
    """The forty services, each below its name."""

    def __init__(self) -> None:
        self.is_down = False
        # The calls that were answered, by path and key.
        self.answered: Counter[tuple[str, str]] = Counter()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """Status and body of the answer to a call."""
        name, operation = call.path.split("/")[1:]
        if self.is_down and name == DOWN:
            time.sleep(SLOW_S)
            return 503, {"detail": "not now"}
        with self.lock:
            self.answered[(call.path, call.key)] += 1
        if (name, operation) == (LAST, "do") and "Refused" in call.order:
            return 422, {"code": "refused", "detail": "as the order says"}
        return 200, {"By": name}


def folder_of(url: str, path: Path) -> str:
    """Makes the folder; gives its path."""
    settings = SHIPPED
    for name in AGENTS:
        settings += f'\n[agents.{name}]\nurl = "{url}/{name}"\n' + (BREAKER if name == DOWN else "")
    files = {}
    for title, names in WORKFLOWS.items():
        *others, last = names
        rows = [others[first : first + ABREAST] for first in range(0, len(others), ABREAST)] + [[last]]
        after = [[], *rows]
        steps = [(step(name), name, [step(one) for one in after[at]]) for at, row in enumerate(rows) for name in row]
        files[f"{title}-1"] = workflow(title, 1, steps)["Text"]
    return str(folder(path, settings, files))


def step(name: str) -> str:
    """The step of an agent."""
    return f"of-{name}"


def all_are_served(world: World) -> str:
    """Each is called once for each order and direction. While one is down, its orders alone wait."""
    functions = Functions(world)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepwarden-forty-")))
        services = stack.enter_context(Services())
        stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        is_applied(functions, folder_of(services.url, scratch / "folder"))
        all_at_once = posted(world, "forty", ORDERS) | posted(world, "forty", COMPENSATED, Refused=True)
        for order_id in all_at_once:
            world.reach(order_id, world.ends[order_id], ENDED_S_MAX)
        usual = posted(world, "but-one", ORDERS)
        usual_s = slowest_s(world, usual)
        services.is_down = True
        waiting = posted(world, "forty", ORDERS)
        until("its breaker alone is open", lambda: down(functions) == {DOWN: ORDERS}, ENDED_S_MAX)
        meanwhile = posted(world, "but-one", ORDERS)
        meanwhile_s = slowest_s(world, meanwhile)
        until("its orders wait still", lambda: down(functions) == {DOWN: ORDERS}, ORDER_S_MAX)
        services.is_down = False
        for order_id in waiting:
            world.reach(order_id, "Processed", ENDED_S_MAX)
        until("no service is down", lambda: not down(functions), ORDER_S_MAX)
        orders = all_at_once | usual | waiting | meanwhile
        expected = Counter(call for order_id, title in orders.items() for call in calls(world, order_id, title))
        expect_equal("calls too many", services.answered - expected, Counter())
        expect_equal("calls too few", expected - services.answered, Counter())
    words = f"{meanwhile_s:.1f} s for an order of the others while one is down, {usual_s:.1f} s before"
    expect(meanwhile_s < 2 * usual_s + SLACK_S, words)
    for title in WORKFLOWS:
        retired = world.operator.post(f"/workflows/{title}/1/retire", BY)
        expect_equal(f"{title} is retired: {retired.body}", retired.status, 200)
    return f"{len(orders)} orders, {expected.total()} calls; {words}"


def is_applied(functions: Functions, path: str) -> None:
    """The command tells each agent."""
    done = functions.command("apply", path, "--reason", "forty agents", "--yes")
    expect_equal(f"apply: {done.stdout}{done.stderr}", done.returncode, 0)
    untold = [name for name in AGENTS if f"agent {name}: new" not in done.stderr]
    expect_equal(f"agents that it does not tell: {done.stderr}", untold, [])


def posted(world: World, title: str, count: int, **members: object) -> dict[str, str]:
    """So many orders of a workflow, by id."""
    end = "Compensated" if members else "Processed"
    ids = [world.post(end, None, Workflow=title, **members) for _ in range(count)]
    world.own.update(ids)
    return dict.fromkeys(ids, title)


def slowest_s(world: World, orders: Iterable[str]) -> float:
    """How long the slowest of these orders took, each with one attempt for each step."""
    tasks = [world.reach(order_id, "Processed", ENDED_S_MAX) for order_id in orders]
    attempts = {one["Attempt"] for task in tasks for one in task["Steps"]}
    expect_equal("attempts of a step", attempts, {1})
    return max(seconds(one["FinishedAt"]) - seconds(task["SubmittedAt"]) for task in tasks for one in task["Steps"])


def down(functions: Functions) -> dict[str, int]:
    """The services that `stepwarden services` shows as failing, with the orders that wait for each."""
    done = functions.command("services", "--output", "json")
    expect_equal(f"services: {done.stderr}", done.returncode, 0)
    states = {one["Service"]: one for one in json.loads(done.stdout)["Services"]}
    expect_equal("services that it does not show", set(AGENTS) - set(states), set())
    failing = [one for one in states.values() if one["State"] != "Closed"]
    return {one["Service"]: one.get("OrdersWaiting", {"Count": 0})["Count"] for one in failing}


def calls(world: World, order_id: str, title: str) -> list[tuple[str, str]]:
    """The calls that an order needs, by path and key."""
    forward = [(f"/{name}/do", f"{order_id}/{step(name)}") for name in WORKFLOWS[title]]
    back = [(f"/{name}/undo", f"{order_id}/{step(name)}/undo") for name in WORKFLOWS[title]]
    return forward + (back if world.ends[order_id] == "Compensated" else [])
