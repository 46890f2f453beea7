"""Messages that nobody should have sent."""

from __future__ import annotations

import json

from harness.report import expect, expect_equal, until
from world import World


def what_a_sender_may_not_send_is_refused(world: World) -> None:
    """The role of the agents sends a command, and another role a reply for a step of the agents, while the carrier is
    slow. Both are refused, logged and written down, and operators are told. Nothing else changes."""
    order_id = world.post("Processed", {"shipping": {"SlowMs": 7000}})
    before = world.reach_step(order_id, "ship-order", ProcessState="Processing")
    command = {"OrderID": order_id, "Action": "Cancel", "By": "mallory", "Reason": "forged", "CommandID": "1"}
    step = {"Step": "ship-order", "Direction": "Forward", "Attempt": before["Attempt"]}
    forged = {"Reply": {"OrderID": order_id, **step, "Outcome": {"Done": {"Forged": True}}}}
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
