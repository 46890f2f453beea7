"""What an attacker with the rights of a caller tries, as `tests/run attacks` does on one machine."""

from __future__ import annotations

import json

from attacks.bodies import Bodies
from attacks.costs import costly_posts, costly_reads, nested
from attacks.paths import Paths
from attacks.roles import WORDS, besides, table, ways
from attacks.secured import ROLES
from attacks.wire import get, post, tomorrow
from harness.api import ApiClient, caller
from harness.calls import Answer
from harness.deployment import POLICIES
from harness.report import Report, expect, expect_equal
from invoked import Invoked
from world import World

from checks.tokens import ANSWERED, BY_API, BY_GATEWAY, outcome

# More than one search reads.
DOCUMENTS = 24
LEVELS = 55
REPEATS = 4
# The bound on a quiet machine is 50 ms. This one also holds on a slow one.
CPU_MS_MAX = 300.0


def every_call_as_every_role(world: World) -> str:
    """The API keeps to the table of the documents whatever the policies of a caller let through. Who has no role, or does
    not sign, may do nothing of it."""
    allowed = table()
    expect_equal("calls of the contract that are in no table", besides(allowed), set())
    callers = {role: caller(world.deployment, f"only-{role}", *POLICIES) for role in ROLES}
    callers["nobody"] = caller(world.deployment, "nobody", *POLICIES)
    for role, known in callers.items():
        for method, path, way in ways(allowed):
            answer = called(world, known, method, way)
            expected = ANSWERED if allowed[method, path].get(role) else BY_API
            expect_equal(f"{method} {path} as {role}", outcome(answer.status, answer.body), expected)
    for method, path, way in ways(allowed):
        answer = called(world, world.stranger, method, way)
        expect_equal(f"{method} {path} unsigned", outcome(answer.status, answer.body), BY_GATEWAY)
    return f"{len(allowed) * (len(callers) + 1)} calls"


def called(world: World, known: ApiClient, method: str, way: str) -> Answer:
    """One call of the table. An order that it posts is in the books."""
    answer = known.get(way) if method == "GET" else known.post(way, WORDS)
    if (method, way, answer.status) == ("POST", "/orders", 202):
        world.expect_end(answer.body["OrderID"], "Processed")
    return answer


def each_policy_lets_its_calls_through(world: World) -> str:
    """A caller with all roles and one policy: the gateway lets through what is of the policy, and nothing else."""
    allowed = table()
    people = ({"application"}, set(ROLES) - {"application"}, {"administrator"})
    for policy, roles in zip(POLICIES, people, strict=True):
        known = caller(world.deployment, f"everybody-by-{policy}", policy)
        for method, path, way in ways(allowed):
            is_theirs = any(allowed[method, path][role] for role in roles)
            # That of administrators allows nothing else.
            if path.endswith("/erase") or roles == {"administrator"}:
                is_theirs = path.endswith("/erase") and roles == {"administrator"}
            answer = called(world, known, method, way)
            expect_equal(f"{method} {path} by {policy} is let through", answer.status != 403, is_theirs)
    return f"{len(allowed) * len(people)} calls"


def are_tried_on_the_function(report: Report, world: World) -> None:
    """Requests in all forms, and dear ones. Their orders are in no books."""
    function = Invoked(world.deployment)
    report.section("Paths, parameters and headers, given to the function of the API")
    Paths(function).all(report)
    report.section("Bodies, given to the function of the API")
    Bodies(function).all(report)
    report.section("Requests that cost much")
    report.check(f"no request costs the function more than {CPU_MS_MAX:.0f} ms of CPU", lambda: dearest(function))


def dearest(function: Invoked) -> str:
    """The CPU time of the dearest requests, with large and deep documents in the store."""
    for number in range(DOCUMENTS):
        last = function.order(wait=False, NotBefore=tomorrow(), **nested(number, LEVELS))
    costs = []
    requests = [(path, get(path)) for path in costly_reads(last["OrderID"])]
    requests += [(path, post(path, json.dumps(body))) for path, body in costly_posts()]
    for path, request in requests:

        def calls(path: str = path, request: bytes = request) -> None:
            for _ in range(REPEATS):
                answer = function.ask(request)
                expect(0 < answer.status < 500, f"{path}: {answer.text[:500]}")

        costs.append((function.cpu_ms(calls) / REPEATS, path[:60]))
    costs.sort(reverse=True)
    words = ", ".join(f"{path} {ms:.0f} ms" for ms, path in costs[:4])
    expect(costs[0][0] <= CPU_MS_MAX, words)
    return words
