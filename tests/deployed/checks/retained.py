"""Orders that are kept for a day (rule 44)."""

from __future__ import annotations

import time
import uuid

from harness.report import expect, expect_equal, until
from world import ORDER_S_MAX, World

from checks.doctor import end_items_of
from checks.erased import holders

WORKFLOW = """name = "kept-a-day"
version = 1
[retain]
processed = "1d"
[[step]]
name = "approve"
kind = "approval"
wait_within = "1h"
"""
FILES = [
    {"Name": "stepwarden.toml", "Text": 'default = "kept-a-day"\n'},
    {"Name": "workflows/kept-a-day.toml", "Text": WORKFLOW},
]
ORDERS = 3
# A queue may keep a message of an order for nearly so long.
DAYS_MIN = 15
# The emulator looks each minute, and the batch of the stream comes after that.
DELETED_S_MAX = 150.0


def ended_orders_are_deleted(world: World) -> str:
    """DynamoDB deletes the tasks at their time, and the supervisor what is left. An order that waits is not touched."""
    words = {"By": "ann", "Reason": "orders are kept for a day"}
    applied = world.operator.post("/configuration", {**words, "Files": FILES})
    expect(applied.status // 100 == 2, f"{applied.status} {applied.body}")
    end_items_of(world, "Tasks")
    person = f"kim-{uuid.uuid4()}"
    found = f"/orders?correlation={person}"
    orders = {posted(world, str(uuid.uuid4()), person): n < ORDERS for n in range(ORDERS + 1)}
    for order_id, ends in orders.items():
        world.reach_step(order_id, "approve", ProcessState="Processing")
        if ends:
            expect_equal("approve", world.operator.post(f"/orders/{order_id}/approve", words).status, 202)
            world.reach(order_id, "Processed")
    until("all are found", lambda: len(world.operator.get(found).body["Orders"]) == ORDERS + 1)
    table, now = world.deployment.table("Tasks"), int(time.time())
    for order_id, ends in orders.items():
        key = {"OrderID": {"S": order_id}}

        def has_time(key: dict[str, dict[str, str]] = key, ends: bool = ends) -> bool:
            item = world.dynamo.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
            days = (int(item["TTL"]["N"]) - now) / 86_400 if "TTL" in item else 0
            return (days > DAYS_MIN - 1) == ends

        until(f"{order_id} has the time of its end: {ends}", has_time, ORDER_S_MAX)
        if ends:
            past = {":past": {"N": str(now - 1)}}
            world.dynamo.update_item(
                TableName=table,
                Key=key,
                UpdateExpression="SET #ttl = :past",
                ExpressionAttributeNames={"#ttl": "TTL"},
                ExpressionAttributeValues=past,
            )
    ended = [order_id for order_id, ends in orders.items() if ends]
    until("nothing is left of them", lambda: not any(holders(world, one) for one in ended), DELETED_S_MAX, pause_s=2.0)
    for order_id in ended:
        expect_equal("an order that was deleted", world.operator.get(f"/orders/{order_id}").status, 404)
    (waiting,) = orders.keys() - set(ended)
    left = [order["OrderID"] for order in world.operator.get(found).body["Orders"]]
    expect_equal("orders that are found", left, [waiting])
    expect_equal("the one that waits", world.state(waiting), "Processing")
    return f"{len(ended)} orders"


def posted(world: World, key: str, person: str) -> str:
    """An order of the workflow."""
    answer = world.application.post("/orders", {"CorrelationID": person}, {"Idempotency-Key": key})
    expect_equal("POST /orders", answer.status, 202)
    return str(answer.body["OrderID"])
