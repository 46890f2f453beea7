"""The ways of orders: services that are flaky, slow, down or say no, and operators who step in."""

from __future__ import annotations

from harness.report import expect, expect_equal
from world import World, document


def orders_are_processed(world: World) -> None:
    """Ten at once, each with three effects. The reply channel of one is told, by CloudEvents with the order's own name."""
    told = world.post("Processed", None, ReplyChannel="shop", CorrelationID="c-1")
    for order_id in [told, *(world.post("Processed") for _ in range(9))]:
        task = world.reach(order_id, "Processed")
        expect_equal("attempts", [one["Attempt"] for one in task["Steps"]], [1, 1, 1])
    events = world.shop.expect_kinds(told, {"OrderReceived", "OrderProcessed"})
    names = {(event["specversion"], event["source"], event["data"]["CorrelationID"]) for event in events}
    expect_equal("specversion, source and CorrelationID", names, {("1.0", "stepwarden", "c-1")})


def a_declined_order_is_undone(world: World) -> None:
    """Payment says no: all that was begun is undone, the declined step included; the shop is told."""
    declined = {"payment": {"Decline": "card_declined"}}
    order_id = world.post("Compensated", declined, ReplyChannel="shop", CorrelationID="c-2")
    task = world.reach(order_id, "Compensated")
    expect_equal("reason", (task["Reason"]["Code"], task["Reason"]["Step"]), ("rejected", "charge-payment"))
    undone = [(one["Direction"], one["ProcessState"]) for one in task["Steps"]]
    expect_equal("steps", undone, [("Undo", "Processed"), ("Undo", "Processed"), ("Forward", "Pending")])
    reserved = world.ledger.of(order_id, "reserve-inventory")
    expect_equal("effects at inventory", (reserved.forward_effects, reserved.undo_effects), (1, 1))
    expect_equal("effects at payment", world.ledger.of(order_id, "charge-payment").forward_effects, 0)
    events = world.shop.expect_kinds(order_id, {"OrderReceived", "OrderCompensated"})
    expect_equal("correlation ids", {event["data"]["CorrelationID"] for event in events}, {"c-2"})


def an_undo_that_is_refused_is_not_called_undone(world: World) -> None:
    """It ends in Error with an alert, and stays there until an operator acts."""
    stand_in = {"payment": {"Decline": "no"}, "inventory": {"Undo": {"Decline": "too-late"}}}
    order_id = world.post("Error", stand_in, ReplyChannel="shop")
    task = world.reach(order_id, "Error")
    reason = task["Reason"]
    expect_equal("reasons", (reason["Code"], reason["Earlier"]["Code"]), ("compensation-failed", "rejected"))
    alert = world.alerts.expect_kinds(order_id, {"OrderNeedsOperator"})[0]
    expect_equal("what the alert says", alert["data"]["Reason"]["Code"], "compensation-failed")
    world.shop.expect_kinds(order_id, {"OrderReceived", "OrderFailed"})
    listed = world.operator.get("/orders?state=Error&limit=100").body["Orders"]
    expect(order_id in [order["OrderID"] for order in listed], "it is in the list of orders in Error")


def an_operator_cancels(world: World) -> None:
    """While the carrier is slow. The undo waits until the attempt under way is over; a second wish is refused."""
    order_id = world.post("Compensated", {"shipping": {"SlowMs": 7000}})
    world.reach_step(order_id, "ship-order", ProcessState="Processing")
    world.command(order_id, "cancel", "customer called")
    world.reach(order_id, "Compensating")
    again = world.operator.post(f"/orders/{order_id}/cancel", {"By": "ann", "Reason": "again"})
    expect_equal("a second cancel", again.status, 409)
    task = world.reach(order_id, "Compensated", within_s=180)
    expect_equal("reason", task["Reason"]["Code"], "cancelled")
    expect(any(line["Who"] == "ann" for line in task["History"]), "the history names the operator")
    for name in ("reserve-inventory", "charge-payment", "ship-order"):
        expect(world.ledger.of(order_id, name).is_undone, f"{name} is undone at its service")


def high_priority_goes_its_own_lane(world: World) -> None:
    """An order of high priority is processed through the lanes that are its own. `Prefer: wait` answers 200 with it."""
    order = document(Priority="high")
    answer = world.application.post("/orders", order, {"Prefer": "wait=20"})
    expect_equal("answer", (answer.status, answer.body.get("ProcessState")), (200, "Processed"))
    expect_equal("lane", answer.body["Priority"], "high")
    expect_equal("Preference-Applied", answer.headers.get("preference-applied"), "wait=20")
    world.expect_end(answer.body["OrderID"], "Processed")
