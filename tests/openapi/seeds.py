"""Orders in every state and jobs, so that calls find something. Written to a file that the hooks read."""

from __future__ import annotations

from typing import Any

from server import Server, until

# An order that is undone whole; one whose undo is declined, too, so that it waits for an operator whatever is done about
# it; and one whose service takes its time, so that it can be paused.
DECLINED = {"StandIn": {"shipping": {"Decline": "no-such-street"}}}
HELD = {"StandIn": {"payment": {"Decline": "no", "Undo": {"Decline": "never"}}}}
SLOW = {"StandIn": {"inventory": {"SlowMs": 25_000}}}
WISH = {"By": "ann", "Reason": "to have one of each"}
SAMPLE = {"Item": "mug", "Customer": {"Email": "ann@example.org"}, "Card": {"CardNumber": "4111"}, "CorrelationID": "cart-7"}


def plant(server: Server) -> dict[str, list[str]]:
    """The ids of orders and of jobs."""
    settled = [post(server, {**SAMPLE, **more}, state) for more, state in [
        ({}, "Processed"), ({}, "Processed"), (DECLINED, "Compensated"), (HELD, "Error"), (HELD, "Error"), (HELD, "Error"),
    ]]
    slow = [post(server, {**SAMPLE, **SLOW}, "Processing") for _ in range(2)]
    act(server, f"/orders/{slow[0]}/pause")
    until("an order is paused", lambda: "Paused" in server.ask("GET", f"/orders/{slow[0]}")[1])
    jobs = [plan(server) for _ in range(3)]
    act(server, f"/bulk/{jobs[1]}/cancel")
    return {"orders": settled + slow, "jobs": jobs}


def post(server: Server, document: dict[str, Any], state: str) -> str:
    """Posts an order and waits until it is in this state."""
    status, answer = server.ask("POST", "/orders", document)
    assert status == 202, answer
    order_id: str = answer["OrderID"]
    until(f"{order_id} is {state}", lambda: server.ask("GET", f"/orders/{order_id}")[1].get("ProcessState") == state)
    return order_id


def plan(server: Server) -> str:
    """Plans a job that matches nothing, which is no less a job."""
    status, answer = server.ask("POST", "/bulk", {**WISH, "Selector": {"ReasonCode": "hop-limit"}})
    assert status == 201, answer
    return str(answer["JobID"])


def act(server: Server, path: str) -> None:
    """Does something to an order or a job."""
    status, answer = server.ask("POST", path, WISH)
    assert status == 202, answer
