"""Dead letters: messages that were delivered too often are settled with their orders."""

from __future__ import annotations

from typing import Any

from harness.report import expect, expect_equal, until
from world import World

# The deliveries that a queue allows, and those after which a function gives up what nobody can read.
RECEIVES_MAX = 1_000
UNREADABLE_RECEIVES_MAX = 50


def an_order_that_could_not_be_stored_is_held(world: World) -> None:
    """Its submission is delivered too often. It is stored in Error and an operator is alerted, who resubmits it."""
    with world.closed_lane("submission", "submission") as queue:
        order_id = world.post("Processed", None, Priority="high")
        receives = 0
        while take_and_drop(world, queue, expected=receives == 0):
            receives += 1
            expect(receives <= RECEIVES_MAX, f"a dead letter after {RECEIVES_MAX} deliveries at most")
        expect_equal("deliveries", receives, RECEIVES_MAX)
        task = world.reach(order_id, "Error")
    expect_equal("reason", task["Reason"]["Code"], "dead-letter")
    world.alerts.expect_kinds(order_id, {"OrderNeedsOperator"})
    record = next(letter for letter in letters(world) if letter.get("OrderID") == order_id)
    expect_equal("fate and queue", (record["Outcome"], record["Queue"]), ("Stored", "Submission"))
    world.command(order_id, "resubmit", "the store is back")
    world.reach(order_id, "Processed")


def take_and_drop(world: World, queue: str, *, expected: bool) -> bool:
    """Receives what is on a queue and does nothing with it; whether there was anything."""

    def receive() -> Any:
        return world.sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0).get("Messages")

    return bool(until("a submission is on its queue", receive, 10) if expected else receive())


def what_nobody_can_read_is_written_down(world: World) -> None:
    """Poison on the submission and the scheduler queue fails again and again. Then its function gives it up, and the
    supervisor settles it."""
    poison = {"Submission": "this is no order", "Scheduler": '{"Wake": {"OrderID": 7}}'}
    for queue, body in poison.items():
        name = queue.lower()
        with world.closed_lane(name, name) as url:
            world.send(name, "high", body)
            for _ in range(UNREADABLE_RECEIVES_MAX - 1):
                until("it is on its queue", lambda url=url: take_and_drop(world, url, expected=False), 10)
    settled = until("both are settled", lambda: found if len(found := of(world, poison)) == 2 else None, 60)
    fates = {(letter["Queue"], letter["Outcome"]) for letter in settled}
    expect_equal("fates", fates, {("Submission", "Unreadable"), ("Scheduler", "Unreadable")})
    messages = {letter["MessageID"] for letter in settled}

    def alerted() -> bool:
        told = [event for event in world.alerts.all() if event["type"] == "DeadLetterUnreadable"]
        return messages <= {event["data"]["MessageID"] for event in told}

    until("operators were told of both", alerted, 20)


def of(world: World, poison: dict[str, str]) -> list[dict[str, Any]]:
    """The letters with this poison, by the queues that it was sent to."""
    sizes = {queue: len(body) for queue, body in poison.items()}
    return [letter for letter in letters(world) if letter.get("BodyBytes") == sizes.get(letter.get("Queue", ""), 0)]


def letters(world: World) -> list[dict[str, Any]]:
    """What became of dead letters, the last settled first."""
    answer = world.operator.get("/dead-letters?limit=100")
    expect_equal("status of GET /dead-letters", answer.status, 200)
    return list(answer.body["DeadLetters"])
