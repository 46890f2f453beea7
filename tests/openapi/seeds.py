"""Orders in every state, and jobs, so that calls find something."""

from __future__ import annotations

from typing import Any

from harness.report import until
from harness.serve import Server

# The reply channel that orders may name.
CHANNEL = "shop"

# An order that is compensated; one whose undo is declined as well, so that it waits for an operator after every action;
# and one with a slow service, so that it can be paused.
DECLINED = {"StandIn": {"shipping": {"Decline": "no-such-street"}}}
HELD = {"StandIn": {"payment": {"Decline": "no", "Undo": {"Decline": "never"}}}}
SLOW = {"StandIn": {"inventory": {"SlowMs": 25_000}}}
COMMAND = {"By": "ann", "Reason": "to have one of each"}
SAMPLE = {"Item": "mug", "Customer": {"Email": "ann@example.org"}, "Card": {"CardNumber": "4111"}, "CorrelationID": "cart-7"}


def plant(server: Server) -> dict[str, list[str]]:
    """The ids of orders and of jobs."""
    settled = [post(server, {**SAMPLE, **more}, state) for more, state in [
        ({}, "Processed"), ({}, "Processed"), (DECLINED, "Compensated"), (HELD, "Error"), (HELD, "Error"), (HELD, "Error"),
    ]]
    slow = [post(server, {**SAMPLE, **SLOW}, "Processing") for _ in range(2)]
    server.post(f"/orders/{slow[0]}/pause", COMMAND)
    until("an order is paused", lambda: "Paused" in server.get(f"/orders/{slow[0]}"))
    jobs = [plan(server) for _ in range(3)]
    server.post(f"/bulk/{jobs[1]}/cancel", COMMAND)
    return {"orders": settled + slow, "jobs": jobs}


def post(server: Server, document: dict[str, Any], state: str) -> str:
    """Posts an order and waits until it is in this state."""
    order_id: str = server.post("/orders", document)["OrderID"]
    until(f"{order_id} is {state}", lambda: server.ask("GET", f"/orders/{order_id}")[1].get("ProcessState") == state)
    return order_id


def plan(server: Server) -> str:
    """Plans a job that matches no order."""
    return str(server.post("/bulk", {**COMMAND, "Selector": {"ReasonCode": "hop-limit"}})["JobID"])
