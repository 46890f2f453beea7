"""All that a check acts on and looks at: callers, queues, functions, what was told, what the services did."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.credentials import Credentials
from harness.api import ApiClient, caller
from harness.calls import Answer
from harness.deployment import Deployment, client
from harness.inbox import Inbox, subscribe_to_alerts
from harness.report import CheckFailed, expect, expect_equal, until
from ledger import Ledger

SETTLED = {"Processed", "Compensated", "Error"}
# A mark in every document. It must not come up in any log.
SECRET = "4111-1111-1111-1111"
# How long an order may take that nothing slows down; the machine may be busy.
ORDER_S_MAX = 45.0


# The random parts of the installations, the last one last.
INSTALLATION: list[str] = []


class World:
    """One deployment with everybody around it. May be used from several threads."""

    def __init__(self, deployment: Deployment, program: Path) -> None:
        """`program` is `stepwarden`, for the checks of its client commands."""
        self.deployment = deployment
        self.program = program
        self.sqs = client(deployment.emulator, "sqs")
        self.lambdas = client(deployment.emulator, "lambda")
        self.schedules = client(deployment.emulator, "scheduler")
        self.dynamo = client(deployment.emulator, "dynamodb")
        self.application = caller(deployment, "application", "ApplicationPolicyArn")
        self.operator = caller(deployment, "operator", "OperatorPolicyArn")
        self.stranger = ApiClient(deployment.api_url, None)
        self.forger = ApiClient(deployment.api_url, Credentials("AKIAFORGEDFORGEDFORG", "not-the-secret"))
        self.shop = Inbox(deployment, deployment.channel_url)
        self.alerts = subscribe_to_alerts(deployment)
        self.ledger = Ledger(deployment)
        # How each order is to end, for the audit.
        self.ends: dict[str, str] = {}
        # The orders of other workflows, whose services keep books of their own.
        self.own: set[str] = set()
        INSTALLATION.append(self._installation())

    def _installation(self) -> str:
        """The random part of the installation, which the first order with a key makes."""
        self.post("Processed")
        item = self.dynamo.get_item(
            TableName=self.deployment.table("Definitions"),
            Key={"Kind": {"S": "definition"}, "Key": {"S": "installation"}},
            ConsistentRead=True,
        )["Item"]
        return str(json.loads(item["Record"]["S"])["Text"])

    # ---- orders

    def post(self, end: str, stand_in: dict[str, Any] | None = None, /, **members: Any) -> str:
        """Posts an order that is to end in the state `end`, and gives its id."""
        order, key = document(stand_in, **members), {"Idempotency-Key": str(uuid.uuid4())}
        answer = patiently(lambda: self.application.post("/orders", order, key))
        expect(answer.status == 202, f"POST /orders: expected 202, found {answer.status} {answer.body}")
        return self.expect_end(answer.body["OrderID"], end)

    def expect_end(self, order_id: str, end: str) -> str:
        """Tells the audit how an order is to end."""
        self.ends[order_id] = end
        return order_id

    def expect_own(self, order_id: str, end: str) -> None:
        """Tells the audit how an order of another workflow is to end."""
        self.own.add(self.expect_end(order_id, end))

    def task(self, order_id: str) -> dict[str, Any] | None:
        """The task as the API shows it; nothing before it is stored."""
        answer = patiently(lambda: self.operator.get(f"/orders/{order_id}"))
        if answer.status == 404:
            return None
        expect_equal(f"status of GET /orders/{order_id}", answer.status, 200)
        return dict(answer.body)

    def reach(self, order_id: str, state: str, within_s: float = ORDER_S_MAX) -> dict[str, Any]:
        """Waits until an order is in a state; fails at once where it settles in another."""

        def look() -> dict[str, Any] | None:
            task = self.task(order_id)
            if task is None or task["ProcessState"] == state:
                return task
            if task["ProcessState"] in SETTLED and state in SETTLED:
                raise CheckFailed(f"{order_id}: expected {state}, found {brief(task)}")
            return None

        return until(f"order {order_id} is {state}", look, within_s)

    def reach_step(self, order_id: str, name: str, within_s: float = ORDER_S_MAX, **wanted: Any) -> dict[str, Any]:
        """Waits until a step shows these values, such as `ProcessState="Processing", Attempt=1`; gives the step."""

        def look() -> dict[str, Any] | None:
            task = self.task(order_id)
            shown = step(task, name) if task else {}
            return shown if task and all(shown.get(key) == value for key, value in wanted.items()) else None

        return until(f"{name} of {order_id} shows {wanted}", look, within_s)

    def command(self, order_id: str, action: str, reason: str) -> Answer:
        """An operator's wish, which must be taken. A resubmit has begun when this is done: until then the order is in
        `Error`, and who waits for its end would take that for it."""
        answer = self.operator.post(f"/orders/{order_id}/{action}", {"By": "ann", "Reason": reason})
        expect(answer.status == 202, f"{action} of {order_id}: expected 202, found {answer.status} {answer.body}")
        if action == "resubmit":
            until(f"{order_id} has left Error", lambda: self.state(order_id) not in (None, "Error"), ORDER_S_MAX)
        return answer

    def state(self, order_id: str) -> str | None:
        """In which state an order is, if there is one."""
        task = self.task(order_id)
        return task["ProcessState"] if task else None

    # ---- tables

    def items(self, table: str, **of: str) -> list[dict[str, Any]]:
        """All items of a table, or of an index of it."""
        of = of or {"ConsistentRead": True}
        pages = self.dynamo.get_paginator("scan").paginate(TableName=self.deployment.table(table), **of)
        return [item for page in pages for item in page["Items"]]

    def item(self, table: str, key: str, value: str) -> dict[str, Any]:
        """An item of a table by its key; nothing where there is none."""
        of: dict[str, Any] = {"TableName": self.deployment.table(table), "Key": {key: {"S": value}}}
        return dict(self.dynamo.get_item(**of, ConsistentRead=True).get("Item", {}))

    def change_task(self, order_id: str, change: str, more: dict[str, Any] | None = None, **values: object) -> None:
        """Changes the stored task of an order. Numbers and texts are the values of `:name`."""
        attributes = {f":{name}": {"S" if isinstance(value, str) else "N": str(value)} for name, value in values.items()}
        self.dynamo.update_item(
            TableName=self.deployment.table("Tasks"),
            Key={"OrderID": {"S": order_id}},
            UpdateExpression=change,
            ExpressionAttributeValues=attributes,
            **(more or {}),
        )

    # ---- queues

    def send(self, queue: str, lane: str, message: object) -> str:
        """Puts a message on a queue, on that of the scheduler as the agents would; gives its id."""
        sender = self.as_function("agents", "sqs") if queue == "scheduler" else self.sqs
        body = message if isinstance(message, str) else json.dumps(message)
        return str(sender.send_message(QueueUrl=self.deployment.queue(queue, lane), MessageBody=body)["MessageId"])

    def depth(self, queue: str, lane: str) -> dict[str, int]:
        """How many messages a queue holds: ready, in flight, delayed."""
        count = "ApproximateNumberOfMessages"
        names = {"ready": count, "in flight": f"{count}NotVisible", "delayed": f"{count}Delayed"}
        url = self.deployment.queue(queue, lane)
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names.values()))["Attributes"]
        return {word: int(attributes[name]) for word, name in names.items()}

    @contextmanager
    def visibility(self, queue: str, seconds: int, lane: str = "normal") -> Iterator[None]:
        """Within, a message of this lane of a queue that was not dealt with comes again so soon."""
        url = self.deployment.queue(queue, lane)
        before = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds)})
        try:
            yield
        finally:
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes=before)

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Within, each invocation gets one message of a normal lane, so that what it does is done for one order."""
        mappings = [self._source(name, self.deployment.queue(name)) for name in ("submission", "scheduler", "agents")]
        for mapping in mappings:
            self.lambdas.update_event_source_mapping(UUID=mapping["UUID"], BatchSize=1)
        try:
            yield
        finally:
            for mapping in mappings:
                self.lambdas.update_event_source_mapping(UUID=mapping["UUID"], BatchSize=mapping["BatchSize"])

    def _source(self, function: str, url: str) -> dict[str, Any]:
        # How a function takes messages from a queue.
        arn = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        listed = self.lambdas.list_event_source_mappings(FunctionName=self.deployment.live(function))
        return next(dict(one) for one in listed["EventSourceMappings"] if one["EventSourceArn"] == arn)

    @contextmanager
    def closed_lane(self, function: str, queue: str) -> Iterator[str]:
        """Within, nobody takes messages from a function's high lane; gives the queue's URL."""
        url = self.deployment.queue(queue, "high")
        mapping = self._source(function, url)["UUID"]
        self.lambdas.update_event_source_mapping(UUID=mapping, Enabled=False)
        try:
            yield url
        finally:
            self.lambdas.update_event_source_mapping(UUID=mapping, Enabled=True)

    # ---- functions

    def as_function(self, function: str, service: str) -> Any:
        """A client with the keys in the environment of a function's process."""
        emulator, name = self.deployment.emulator, self.deployment.function(function)
        # A function whose process was killed runs again with its next message; the checks beside this one send some.
        keys = until(f"{function} runs", lambda: emulator.function_processes(name), ORDER_S_MAX)[0].environment
        return client(emulator, service, keys)

    def supervise(self, **event: object) -> None:
        """Has a supervisor run once, to its end, called as its schedule does."""
        target = self.schedules.get_schedule(Name=self.deployment.function("supervisor"))["Target"]["Arn"]
        answer = self.lambdas.invoke(FunctionName=target, Payload=json.dumps(event).encode())
        text = answer["Payload"].read().decode(errors="replace")
        expect("FunctionError" not in answer, f"the supervisor failed: {text}")


def patiently(call: Callable[[], Answer]) -> Answer:
    """Calls again where the answer is 503, as it asks for: a busy machine is no fault of what is tried."""

    def answered() -> Answer | None:
        answer = call()
        return None if answer.status == 503 else answer

    return until("another answer than 503", answered, 20, pause_s=1.0)


def document(stand_in: dict[str, Any] | None = None, /, **members: Any) -> dict[str, Any]:
    """An order unlike any other; `stand_in` says how the services behave with it."""
    order = {"Item": "mug", "Quantity": 1, "Card": SECRET, "Reference": str(uuid.uuid4()), **members}
    return {**order, "StandIn": stand_in} if stand_in else order


def step(task: dict[str, Any], name: str) -> dict[str, Any]:
    """One step of a task."""
    return next(step for step in task["Steps"] if step["Name"] == name)


def brief(task: dict[str, Any]) -> str:
    """A task in a line, for a message about what went wrong."""
    steps = (f"{one['Name']} {one['Direction']} {one['ProcessState']} #{one['Attempt']}" for one in task["Steps"])
    return f"{task['ProcessState']} {json.dumps(task.get('Reason'))} ({', '.join(steps)})"
