"""Requests that an earlier version left in the queues that it had for each agent."""

from __future__ import annotations

import functools
import json
from typing import Any

from harness.report import expect_equal, until
from ledger import STEPS
from world import World, step

REQUEST_S_MAX = 30


def their_queues_are_served(world: World) -> None:
    """Each request of two orders comes on the earlier queue of its agent, as an earlier scheduler wrote it: without the
    agent's name. Each service is called once, and the orders go on to their end."""
    with world.closed_lane("agents", "agents") as shared:
        orders = {lane: world.post("Processed", None, Priority="high") for lane in ("normal", "high")}
        for name, agent in STEPS.items():
            for lane, order_id in orders.items():
                look = functools.partial(take, world, shared, order_id, name)
                request = until(f"the request for {name}", look, REQUEST_S_MAX)
                expect_equal("its agent", request.pop("Agent"), agent)
                world.send(agent, lane, request)
        for order_id in orders.values():
            task = world.reach(order_id, "Processed")
            for name in STEPS:
                expect_equal(f"attempts of {name}", step(task, name)["Attempt"], 1)
                entry = world.ledger.of(order_id, name)
                expect_equal(f"calls and effects of {name}", (entry.forward_calls, entry.forward_effects), (1, 1))


def take(world: World, queue: str, order_id: str, name: str) -> dict[str, Any] | None:
    """Receives the request for a step and deletes it; others stay."""
    received = world.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=0)
    for message in received.get("Messages", []):
        body = json.loads(message["Body"])
        if (body["OrderID"], body["Step"]) == (order_id, name):
            world.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            return dict(body)
    return None
