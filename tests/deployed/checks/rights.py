"""Each function, with the very keys that its process holds, is refused what is not its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from harness.report import CheckFailed, not_stopped
from world import World

REFUSALS = {"AccessDenied", "AccessDeniedException"}
# An id that no order has.
NOBODY = {"OrderID": {"S": "00000000-0000-7000-8000-000000000000"}}


@dataclass(frozen=True)
class Hands:
    """What a function can reach, with its own keys."""

    world: World
    dynamo: Any
    sqs: Any
    events: Any

    def reads(self, table: str) -> Callable[[], object]:
        """GetItem."""
        return lambda: self.dynamo.get_item(TableName=self.world.deployment.table(table), Key=NOBODY)

    def puts(self, table: str) -> Callable[[], object]:
        """PutItem."""
        return lambda: self.dynamo.put_item(TableName=self.world.deployment.table(table), Item=NOBODY)

    def updates(self, table: str) -> Callable[[], object]:
        """UpdateItem, of what is not there."""
        name = self.world.deployment.table(table)
        condition = {"ConditionExpression": "attribute_exists(OrderID)", "UpdateExpression": "REMOVE Nothing"}
        return lambda: self.dynamo.update_item(TableName=name, Key=NOBODY, **condition)

    def deletes(self, table: str) -> Callable[[], object]:
        """DeleteItem."""
        return lambda: self.dynamo.delete_item(TableName=self.world.deployment.table(table), Key=NOBODY)

    def scans(self, table: str, **of: str) -> Callable[[], object]:
        """Scan of a table, or of an index."""
        return lambda: self.dynamo.scan(TableName=self.world.deployment.table(table), Limit=1, **of)

    def sends(self, queue: str) -> Callable[[], object]:
        """SendMessage to a queue's normal lane."""
        return lambda: self.sqs.send_message(QueueUrl=self.world.deployment.queue(queue), MessageBody="not for you")

    def receives(self, queue: str) -> Callable[[], object]:
        """ReceiveMessage from a queue's high lane, where the least is disturbed if it is granted."""
        url = self.world.deployment.queue(queue, "high")
        return lambda: self.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)

    def publishes(self) -> Callable[[], object]:
        """PutEvents on the alert bus."""
        entry = {"Source": "forged", "DetailType": "forged", "Detail": "{}"}
        bus = self.world.deployment.outputs["EventBusName"]
        return lambda: self.events.put_events(Entries=[{**entry, "EventBusName": bus}])


# Harmless calls that the work of a function needs.
NEEDED: dict[str, Callable[[Hands], dict[str, Callable[[], object]]]] = {
    "api": lambda hands: {"Tasks": hands.reads("Tasks"), "Leases": hands.scans("Leases")},
    "submission": lambda hands: {"Orders": hands.reads("Orders"), "Tasks": hands.updates("Tasks")},
    "scheduler": lambda hands: {"Tasks": hands.reads("Tasks"), "its queue": hands.receives("scheduler")},
    "agents": lambda hands: {"Tasks": hands.reads("Tasks"), "its queue": hands.receives("agents")},
    "supervisor": lambda hands: {"Tasks": hands.reads("Tasks"), "watch": hands.scans("Tasks", IndexName="watch")},
    "stand-ins": lambda _: {},
}
# Calls, each with the functions that have business to make it.
CALLS: list[tuple[str, Callable[[Hands], Callable[[], object]], set[str]]] = [
    ("DeleteItem on Tasks", lambda hands: hands.deletes("Tasks"), set()),
    # What is left of an order whose task has expired.
    ("DeleteItem on Orders", lambda hands: hands.deletes("Orders"), {"supervisor"}),
    ("Scan of Orders", lambda hands: hands.scans("Orders"), set()),
    ("Scan of Tasks", lambda hands: hands.scans("Tasks"), set()),
    ("Scan of Leases", lambda hands: hands.scans("Leases"), {"api"}),
    ("UpdateItem on Tasks", lambda hands: hands.updates("Tasks"), {"submission", "scheduler", "supervisor"}),
    ("PutEvents", lambda hands: hands.publishes(), {"submission", "scheduler", "supervisor"}),
    # An order that is erased.
    ("UpdateItem on Orders", lambda hands: hands.updates("Orders"), {"scheduler"}),
    ("Scan of Index", lambda hands: hands.scans("Index"), set()),
    ("Scan of Memos", lambda hands: hands.scans("Memos"), set()),
    ("Scan of DeadLetters", lambda hands: hands.scans("DeadLetters"), set()),
    ("PutItem on Orders", lambda hands: hands.puts("Orders"), {"submission", "supervisor"}),
    ("PutItem on Tasks", lambda hands: hands.puts("Tasks"), {"submission", "supervisor"}),
    # A job of the supervisor posts orders again.
    ("SendMessage to submission", lambda hands: hands.sends("submission"), {"api", "supervisor"}),
    ("GetItem on Orders", lambda hands: hands.reads("Orders"), {"api", "submission", "scheduler", "supervisor"}),
    # An agent looks whether its order wants the call still.
    ("GetItem on Tasks", lambda hands: hands.reads("Tasks"), set(NEEDED) - {"stand-ins"}),
    ("SendMessage to agents", lambda hands: hands.sends("agents"), {"submission", "scheduler"}),
    ("ReceiveMessage from agents", lambda hands: hands.receives("agents"), {"agents"}),
    ("ReceiveMessage from scheduler", lambda hands: hands.receives("scheduler"), {"scheduler"}),
]


def every_function_keeps_to_its_role(world: World) -> None:
    """What is granted works, so the keys are good; what is not is refused."""
    wrong = []
    for function, needed in NEEDED.items():
        not_stopped()
        hands = hands_of(world, function)
        for name, call in needed(hands).items():
            if refused(call):
                wrong.append(f"{function} was refused what it needs: {name}")
        for name, made, of in CALLS:
            if function not in of and not refused(made(hands)):
                wrong.append(f"{function} was granted what is not its work: {name}")
    if wrong:
        raise CheckFailed("\n".join(wrong))


def refused(call: Callable[[], object]) -> bool:
    """Whether a call is refused for want of a right. What fails for another reason was let through."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] in REFUSALS
    return False


def hands_of(world: World, function: str) -> Hands:
    """Clients with the keys in the environment of a function's process."""
    return Hands(world, *(world.as_function(function, service) for service in ("dynamodb", "sqs", "events")))
