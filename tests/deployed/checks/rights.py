"""Each function, with the very keys that its process holds, is refused what is not its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from harness.report import CheckFailed, expect, not_stopped
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


def every_function_keeps_to_its_role(world: World) -> None:
    """What is granted works, so the keys are good; what is not is refused."""
    wrong = []
    for function in ("api", "submission", "scheduler", "agents", "supervisor", "stand-ins"):
        not_stopped()
        hands = hands_of(world, function)
        allowed = dict(granted(function, hands))
        for name, call in allowed.items():
            if refused(call):
                wrong.append(f"{function} was refused what it needs: {name}")
        forbidden = dict(denied(function, hands))
        expect(len(forbidden) >= 4, f"forbidden calls of {function} are known")
        for name, call in forbidden.items():
            if not refused(call):
                wrong.append(f"{function} was granted what is not its work: {name}")
    if wrong:
        raise CheckFailed("\n".join(wrong))


def granted(function: str, hands: Hands) -> Iterator[tuple[str, Callable[[], object]]]:
    """One harmless call that a function's work needs."""
    if function in ("api", "scheduler", "supervisor"):
        yield "GetItem on Tasks", hands.reads("Tasks")
        if function == "api":
            yield "Scan of Leases", hands.scans("Leases")
        if function == "supervisor":
            yield "Scan of the index of Tasks", hands.scans("Tasks", IndexName="watch")
    elif function == "submission":
        yield "GetItem on Orders", hands.reads("Orders")
        yield "UpdateItem on Tasks", hands.updates("Tasks")
    elif function != "stand-ins":
        yield f"ReceiveMessage from {function}", hands.receives(function)
    if function == "agents":
        yield "GetItem on Tasks", hands.reads("Tasks")


def denied(function: str, hands: Hands) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that a function has no business to make."""
    yield "DeleteItem on Tasks", hands.deletes("Tasks")
    # What is left of an order whose task has expired.
    if function != "supervisor":
        yield "DeleteItem on Orders", hands.deletes("Orders")
    yield "Scan of Orders", hands.scans("Orders")
    yield "Scan of Tasks", hands.scans("Tasks")
    if function != "api":
        yield "Scan of Leases", hands.scans("Leases")
    if function not in ("submission", "scheduler", "supervisor"):
        yield "UpdateItem on Tasks", hands.updates("Tasks")
        yield "PutEvents", hands.publishes()
    # An order that is erased.
    if function != "scheduler":
        yield "UpdateItem on Orders", hands.updates("Orders")
    yield "Scan of Index", hands.scans("Index")
    yield "Scan of Memos", hands.scans("Memos")
    yield "Scan of DeadLetters", hands.scans("DeadLetters")
    if function not in ("submission", "supervisor"):
        yield "PutItem on Orders", hands.puts("Orders")
        yield "PutItem on Tasks", hands.puts("Tasks")
    # A job of the supervisor posts orders again.
    if function not in ("api", "supervisor"):
        yield "SendMessage to submission", hands.sends("submission")
    if function in ("agents", "stand-ins"):
        yield "GetItem on Orders", hands.reads("Orders")
    # An agent looks whether its order wants the call still.
    if function == "stand-ins":
        yield "GetItem on Tasks", hands.reads("Tasks")
    if function not in ("submission", "scheduler"):
        yield "SendMessage to agents", hands.sends("agents")
    if function != "agents":
        yield "ReceiveMessage from agents", hands.receives("agents")
    if function != "scheduler":
        yield "ReceiveMessage from scheduler", hands.receives("scheduler")


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
