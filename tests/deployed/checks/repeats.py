"""Messages that come twice, or that nobody should have sent: one effect each."""

from __future__ import annotations

import datetime
import json
from typing import Any

from harness.report import expect, expect_equal, until
from ledger import STEPS
from world import World, document


def a_submission_comes_again(world: World) -> None:
    """A message that waited on the submission queue is put there twice more: one order, one set of effects."""
    with world.closed_lane("submission", "submission") as queue:
        order_id = world.post("Processed", None, Priority="high")
        messages = until("the submission is on its queue", lambda: peek(world, queue, order_id), 10)
    for _ in range(3):
        world.sqs.send_message(QueueUrl=queue, MessageBody=messages[0])
    world.reach(order_id, "Processed")
    settle(world, "submission", "high")
    for name in STEPS:
        expect_equal(f"attempts of {name}", world.reach_step(order_id, name)["Attempt"], 1)
        expect_equal(f"effects of {name}", world.ledger.of(order_id, name).forward_effects, 1)


def requests_come_again(world: World) -> None:
    """Every request of a processed order is sent twice more: the agent that looks makes no call, and a service that is
    called within a second of the sending answers as before and does nothing."""
    order = document()
    answer = world.application.post("/orders", order)
    order_id = world.expect_end(answer.body["OrderID"], "Processed")
    before = world.reach(order_id, "Processed")
    for name, service in STEPS.items():
        for _ in range(2):
            world.send("agents", "normal", request(order_id, name, service, order))
    settle(world, "agents", "normal")
    settle(world, "scheduler", "normal")
    for name in STEPS:
        expect_equal(f"effects of {name}", world.ledger.of(order_id, name).forward_effects, 1)
    expect_equal("the order", world.task(order_id), before)


def replies_come_again_or_are_forged(world: World) -> None:
    """While the carrier is slow: repeats of what was answered, and answers that no agent can have given."""
    order_id = world.post("Processed", {"shipping": {"SlowMs": 7000}})
    world.reach_step(order_id, "ship-order", ProcessState="Processing")
    output = world.reach_step(order_id, "charge-payment", ProcessState="Processed")["Output"]
    forged = {"Done": {"Forged": True}}
    failed = {"Failed": {"Code": "forged", "Message": "no"}}
    for message in [
        reply(order_id, "reserve-inventory", 1, {"Done": {}}),
        reply(order_id, "charge-payment", 1, {"Done": output}),
        reply(order_id, "charge-payment", 1, {"Done": output}),
        reply(order_id, "charge-payment", 1, failed),
        reply(order_id, "ship-order", 2, forged),
        reply(order_id, "ship-order", 0, forged),
        reply(order_id, "ship-order", 1, forged, direction="Undo"),
        reply(order_id, "ship-order", 2, failed),
        reply(order_id, "rob-bank", 1, forged),
        reply("0" * 8 + order_id[8:], "ship-order", 1, forged),
    ]:
        world.send("scheduler", "normal", message)
    task = world.reach(order_id, "Processed")
    outputs = json.dumps([one["Output"] for one in task["Steps"]])
    expect("Forged" not in outputs, f"no forged output: {outputs}")
    expect_equal("attempts", [one["Attempt"] for one in task["Steps"]], [1, 1, 1])
    expect_equal("failures", [one["FailureCount"] for one in task["Steps"]], [0, 0, 0])


def what_a_sender_may_not_send_is_refused(world: World) -> None:
    """The role of the agents sends a command, and another role a reply for a step of the agents, while the carrier is
    slow. Both are refused, logged and written down, and operators are told. Nothing else changes."""
    order_id = world.post("Processed", {"shipping": {"SlowMs": 7000}})
    before = world.reach_step(order_id, "ship-order", ProcessState="Processing")
    command = {"OrderID": order_id, "Action": "Cancel", "By": "mallory", "Reason": "forged", "CommandID": "1"}
    forged = reply(order_id, "ship-order", before["Attempt"], {"Done": {"Forged": True}})
    sent = [world.send("scheduler", "normal", {"Command": command})]
    # The tests' own keys are those of no role of the stack.
    url = world.deployment.queue("scheduler")
    sent.append(world.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(forged))["MessageId"])
    refused = until("both are written down", lambda: found if len(found := fates(world, sent)) == 2 else None, 60)
    expect_equal("fates", set(refused.values()), {"Refused"})
    expect_equal("the step", world.reach_step(order_id, "ship-order"), before)
    task = world.reach(order_id, "Processed")
    expect("Forged" not in json.dumps(task["Steps"]), f"no forged output: {task['Steps']}")
    expect("mallory" not in json.dumps(task["History"]), f"no forged command: {task['History']}")
    world.supervise()
    world.alerts.expect_cause("dead-letter/Refused")


def fates(world: World, messages: list[str]) -> dict[str, str]:
    """What became of messages that were written down."""
    letters = world.operator.get("/dead-letters?limit=100").body["DeadLetters"]
    return {letter["MessageID"]: letter["Outcome"] for letter in letters if letter["MessageID"] in messages}


def reply(order_id: str, name: str, attempt: int, outcome: Any, direction: str = "Forward") -> dict[str, Any]:
    """An agent's answer, as the scheduler queue holds it."""
    said = {"OrderID": order_id, "Step": name, "Direction": direction, "Attempt": attempt, "Outcome": outcome}
    return {"Reply": said}


def request(order_id: str, name: str, agent: str, order: dict[str, Any]) -> dict[str, Any]:
    """The request for the first attempt of a step, as the agents' queue holds it."""
    complete_by = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=25)
    return {
        "OrderID": order_id,
        "Step": name,
        "Agent": agent,
        "Direction": "Forward",
        "Attempt": 1,
        "IdempotencyKey": f"{order_id}/{name}",
        "CompleteBy": complete_by.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "BudgetMs": 25_000,
        "Hops": 2,
        "Order": order,
        "Outputs": {},
    }


def peek(world: World, queue: str, order_id: str) -> list[str]:
    """The bodies on a queue that name an order. The messages stay, and can be received again at once."""
    received = world.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [message["Body"] for message in received.get("Messages", []) if order_id in message["Body"]]


def settle(world: World, queue: str, lane: str) -> None:
    """Waits until a queue holds nothing that is ready or in flight, at one moment at least."""

    def idle() -> bool:
        depth = world.depth(queue, lane)
        return depth["ready"] == 0 and depth["in flight"] == 0

    until(f"the {lane} lane of {queue} is idle", idle, 60, pause_s=0.1)
