"""Orders that are kept for a day (rule 44)."""

from __future__ import annotations

import time
import uuid

from harness.report import expect, expect_equal, until
from world import World

from checks.erased import holders

# The workflows, by the days for which they keep orders, with the days for which DynamoDB is to keep them: a queue may keep
# a message of an order for nearly 15 days.
DAYS = {1: 15, 20: 20}
ORDERS = 2
# The emulator looks each minute, and the batch of the stream comes after that.
DELETED_S_MAX = 300.0


def workflow(days: int) -> dict[str, str]:
    """The file of a workflow without services."""
    text = f"""name = "kept-{days}"
version = 1
[retain]
processed = "{days}d"
[[step]]
name = "approve"
kind = "approval"
wait_within = "1h"
"""
    return {"Name": f"workflows/kept-{days}.toml", "Text": text}


def ended_orders_are_deleted(world: World) -> str:
    """DynamoDB deletes the tasks at their time, and the supervisor what is left. An order that waits is not touched."""
    files = [{"Name": "stepwarden.toml", "Text": 'default = "kept-1"\n'}, *(workflow(days) for days in DAYS)]
    words = {"By": "ann", "Reason": "orders are not kept for ever"}
    applied = world.operator.post("/configuration", {**words, "Files": files})
    expect(applied.status // 100 == 2, f"{applied.status} {applied.body}")
    end_items_of(world, "Tasks")
    person = f"kim-{uuid.uuid4()}"
    found = f"/orders?correlation={person}"
    ended = {posted(world, days, person): kept for days, kept in DAYS.items() for _ in range(ORDERS)}
    waiting = posted(world, 1, person)
    for order_id in (*ended, waiting):
        world.reach_step(order_id, "approve", ProcessState="Processing")
    for order_id in ended:
        expect_equal("approve", world.operator.post(f"/orders/{order_id}/approve", words).status, 202)
        world.reach(order_id, "Processed")
    until("all are found", lambda: len(world.operator.get(found).body["Orders"]) == len(ended) + 1)
    before = counted(world)
    for order_id, days in ended.items():
        until(f"{order_id} is kept for {days} days", lambda o=order_id, d=days: d - 1 < kept_days(world, o) <= d + 1)
    expect_equal("the time of the one that waits", kept_days(world, waiting), 0)
    for order_id in ended:
        is_over(world, order_id)
    for one in ended:
        until(f"nothing is left of {one}", lambda one=one: not holders(world, one), DELETED_S_MAX, pause_s=2.0)
    for order_id in ended:
        expect_equal("an order that was deleted", world.operator.get(f"/orders/{order_id}").status, 404)
    left = [order["OrderID"] for order in world.operator.get(found).body["Orders"]]
    expect_equal("orders that are found", left, [waiting])
    expect_equal("the one that waits", world.state(waiting), "Processing")
    accepted, processed = before
    until("they count no longer, and what happened does", lambda: counted(world) == (accepted, processed - len(ended)))
    return f"{len(ended)} orders"


def posted(world: World, days: int, person: str) -> str:
    """An order of a workflow."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answer = world.application.post("/orders", {"Workflow": f"kept-{days}", "CorrelationID": person}, key)
    expect_equal(f"POST /orders {answer.body}", answer.status, 202)
    return str(answer.body["OrderID"])


def kept_days(world: World, order_id: str) -> float:
    """For how many days from now on DynamoDB keeps a task, which has this in seconds; 0 for ever."""
    item = world.item("Tasks", "OrderID", order_id)
    return (int(item["TTL"]["N"]) - time.time()) / 86_400 if "TTL" in item else 0


def is_over(world: World, order_id: str) -> None:
    """The time of a task comes now."""
    names = {"ExpressionAttributeNames": {"#ttl": "TTL"}}
    world.change_task(order_id, "SET #ttl = :past", names, past=int(time.time()) - 1)


def counted(world: World) -> tuple[int, int]:
    """Orders that were accepted since the beginning, and those that are Processed now."""
    numbers = world.operator.get("/numbers").body
    states = {one["State"]: one["Count"] for one in numbers["Counts"]}
    return numbers["Orders"]["Accepted"], states["Processed"]


def end_items_of(world: World, name: str) -> None:
    """Does what the emulator leaves out of the template."""
    table = world.deployment.table(name)
    status = world.dynamo.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
    if status == "DISABLED":
        specification = {"Enabled": True, "AttributeName": "TTL"}
        world.dynamo.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)
