"""Queues that are read from outside: a reply channel, and the alerts of an operator."""

from __future__ import annotations

import json
import threading
from typing import Any

from harness.deployment import Deployment, client, make_queue
from harness.report import until


class Inbox:
    """Keeps every event that came through one queue. May be read from several threads."""

    def __init__(self, deployment: Deployment, queue_url: str) -> None:
        self.queue_url = queue_url
        self._sqs = client(deployment.emulator, "sqs")
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def of_order(self, order_id: str) -> list[dict[str, Any]]:
        """The events about one order so far, as they came."""
        return [event for event in self.all() if event["data"].get("OrderID") == order_id]

    def all(self) -> list[dict[str, Any]]:
        """All events so far."""
        with self._lock:
            while messages := self._receive():
                for message in messages:
                    self._events.append(cloud_event(json.loads(message["Body"])))
                    self._sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
            return list(self._events)

    def _receive(self) -> list[dict[str, Any]]:
        received = self._sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
        return list(received.get("Messages", []))

    def expect_kinds(self, order_id: str, kinds: set[str], within_s: float = 20) -> list[dict[str, Any]]:
        """Waits until all these kinds of events came for an order; gives all of its events."""

        def came() -> list[dict[str, Any]]:
            events = self.of_order(order_id)
            return events if kinds <= {event["type"] for event in events} else []

        return until(f"{sorted(kinds)} about {order_id}", came, within_s)

    def expect_cause(self, cause: str, within_s: float = 20) -> None:
        """Waits until an alert of this cause came."""

        def came() -> bool:
            return any(event["type"] == "AlertBegan" and event["data"]["Cause"] == cause for event in self.all())

        until(f"an alert of {cause}", came, within_s)


def cloud_event(body: dict[str, Any]) -> dict[str, Any]:
    """The CloudEvent in a message: as it is, or in an SNS notification of an EventBridge event."""
    if body.get("Type") == "Notification":
        detail = json.loads(body["Message"])["detail"]
        return detail if isinstance(detail, dict) else json.loads(detail)
    return body


def subscribe_to_alerts(deployment: Deployment) -> Inbox:
    """An inbox for what the alert topic says."""
    return Inbox(deployment, subscribe(deployment, "operator-alerts", "detail-type"))


def subscribe(deployment: Deployment, name: str, member: str) -> str:
    """A queue for the messages of the alert topic that have this member; its URL."""
    url, arn = make_queue(deployment.emulator, name)
    sqs = client(deployment.emulator, "sqs")
    statement = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = {"Version": "2012-10-17", "Statement": [{**statement, "Resource": arn}]}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
    filters = {"FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps({member: [{"exists": True}]})}
    topic, sns = deployment.outputs["AlertTopicArn"], client(deployment.emulator, "sns")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=filters)
    return url
