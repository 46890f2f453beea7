"""The HTTP API: who may call what, and what the calls answer."""

from __future__ import annotations

from harness.api import caller
from harness.deployment import POLICIES
from harness.report import expect_equal, until
from roles import ROLES, WORDS, table, ways
from world import World, document


def only_the_authorised_come_in(world: World) -> None:
    """No signature or a wrong one: 403. Health is open. What has no route is not there."""
    order = document()
    expect_equal("POST /orders unsigned", world.stranger.post("/orders", order).status, 403)
    expect_equal("POST /orders with forged keys", world.forger.post("/orders", order).status, 403)
    expect_equal("GET /health of anybody", world.stranger.get("/health").status, 200)
    expect_equal("GET /nothing", world.operator.get("/nothing").status, 404)


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
            answer = known.get(way) if method == "GET" else known.post(way, WORDS)
            if (way, answer.status) == ("/orders", 202):
                world.expect_end(answer.body["OrderID"], "Processed")
            expect_equal(f"{method} {path} by {policy} is let through", answer.status != 403, is_theirs)
    return f"{len(allowed) * len(people)} calls"


def an_application_sees_its_own_orders_alone(world: World) -> None:
    """To another one they do not exist. A caller without a role is refused by the API, whatever its policy."""
    mine = world.post("Processed", CorrelationID="seen-by-one")
    world.reach(mine, "Processed")
    until("it is listed", lambda: mine in str(world.application.get("/orders?limit=100").body), 15)
    other = caller(world.deployment, "other-application", "ApplicationPolicyArn")
    for path in (f"/orders/{mine}", f"/orders/{mine}/document"):
        expect_equal(f"GET {path} of another application", other.get(path).status, 404)
    listed = other.get("/orders?limit=100")
    expect_equal("orders that it lists", (listed.status, listed.body.get("Orders")), (200, []))
    theirs = other.post("/orders", document(CorrelationID="seen-by-one"))
    expect_equal("POST /orders of another application", theirs.status, 202)
    order_id = world.expect_end(theirs.body["OrderID"], "Processed")
    until("it sees its own", lambda: other.get(f"/orders/{order_id}").status == 200, 30)
    expect_equal("its order seen by the first", world.application.get(f"/orders/{order_id}").status, 404)
    nobody = caller(world.deployment, "without-a-role", "OperatorPolicyArn")
    expect_equal("GET /overview without a role", nobody.get("/overview").body["type"], "/problems/forbidden")
