"""The pair of queues between the kit and the agent, and the queue for what the agent leaves."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# A message that an agent leaves comes back after so many seconds, and is given up after so many deliveries: short, so
# that the kit sees soon what was left, and longer than any call in its scenes.
VISIBILITY_S = 7
RECEIVES_MAX = 7
# After so long without a change nobody takes anything any more.
UNTOUCHED_S = 15.0


class Unfit(Exception):
    """The queues cannot be used. Says what to do."""


@dataclass(frozen=True)
class Queue:
    """One SQS queue."""

    client: Any
    url: str

    def send(self, body: str) -> str:
        """Sends one message, and gives its id."""
        return str(self.client.send_message(QueueUrl=self.url, MessageBody=body)["MessageId"])

    def send_batch(self, bodies: list[str]) -> list[str]:
        """Sends up to ten messages at once, and gives their ids."""
        entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
        answer = self.client.send_message_batch(QueueUrl=self.url, Entries=entries)
        if answer.get("Failed"):
            raise Unfit(f"{self.url} refused a message: {answer['Failed']}")
        ids = {int(entry["Id"]): str(entry["MessageId"]) for entry in answer["Successful"]}
        return [ids[n] for n in range(len(bodies))]

    def take(self, wait_s: int) -> list[dict[str, Any]]:
        """Receives and deletes up to ten messages."""
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s, AttributeNames=["All"]
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        for message in messages:
            self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def attributes(self) -> dict[str, str]:
        """All its attributes, as SQS has them."""
        answer: dict[str, str] = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])[
            "Attributes"
        ]
        return answer

    def held(self) -> tuple[int, int]:
        """How many messages are on it for whoever asks, and how many more that are hidden or delayed."""
        attributes = self.attributes()
        visible, *others = (
            int(attributes.get(f"ApproximateNumberOfMessages{kind}", 0)) for kind in ("", "NotVisible", "Delayed")
        )
        return visible, sum(others)

    def set_bytes_max(self, bytes_max: int) -> None:
        """Has it refuse messages that are larger."""
        self.client.set_queue_attributes(QueueUrl=self.url, Attributes={"MaximumMessageSize": str(bytes_max)})


def connect(endpoint_url: str | None) -> Any:
    """A client, with the caller's own credentials and region."""
    config = Config(retries={"mode": "standard", "max_attempts": 5}, max_pool_connections=50)
    return boto3.client("sqs", endpoint_url=endpoint_url, config=config)


def make(client: Any, prefix: str) -> dict[str, str]:
    """Makes queues as the kit needs them, and gives their URLs."""
    names = {name: f"{prefix}-{name}" for name in ("dead-letters", "requests", "replies", "replies-high")}
    urls = {"dead-letters": str(client.create_queue(QueueName=names["dead-letters"])["QueueUrl"])}
    arn = Queue(client, urls["dead-letters"]).attributes()["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES_MAX})
    shared = {"VisibilityTimeout": str(VISIBILITY_S)}
    with_redrive = {**shared, "RedrivePolicy": redrive}
    for name in ("requests", "replies", "replies-high"):
        attributes = with_redrive if name == "requests" else shared
        urls[name] = str(client.create_queue(QueueName=names[name], Attributes=attributes)["QueueUrl"])
    return urls


def dead_letters_of(requests: Queue) -> Queue:
    """The queue for what the agent left too often. Raises Unfit where the queue of requests is not made for the kit."""
    try:
        attributes = requests.attributes()
        policy = json.loads(attributes.get("RedrivePolicy", "{}"))
        if not policy:
            raise Unfit(f"{requests.url} has no dead-letter queue: make the queues with --make-queues PREFIX")
        visible_s, receives = int(attributes["VisibilityTimeout"]), int(policy["maxReceiveCount"])
        if visible_s > VISIBILITY_S or receives > RECEIVES_MAX:
            raise Unfit(
                f"{requests.url} hides a message for {visible_s} s and gives it up after {receives} deliveries; with"
                f" more than {VISIBILITY_S} s and {RECEIVES_MAX} the kit would wait too long: make others with"
                " --make-queues PREFIX"
            )
        name = policy["deadLetterTargetArn"].rsplit(":", 1)[1]
        return Queue(requests.client, str(requests.client.get_queue_url(QueueName=name)["QueueUrl"]))
    except (BotoCoreError, ClientError) as error:
        raise Unfit(f"{requests.url} cannot be read: {error}") from error


def must_be_empty(*queues: Queue) -> None:
    """Raises Unfit where something is left of an earlier run."""
    for queue in queues:
        if any(queue.held()):
            raise Unfit(
                f"{queue.url} is not empty: stop the agent, purge the queue, or make new ones with --make-queues"
            )


def wait_until_drained(queue: Queue, within_s: float) -> int:
    """Waits until nothing is left on the queue, or nobody takes anything, and gives how many messages are left. SQS's
    counts lag: one zero is none.
    """
    deadline, zeros, untouched_since, before = time.monotonic() + within_s, 0, time.monotonic(), (0, 0)
    while zeros < 3 and time.monotonic() < min(deadline, untouched_since + UNTOUCHED_S):
        held = queue.held()
        zeros = zeros + 1 if not any(held) else 0
        # Messages that anybody could have, and nobody takes.
        if held != before or held[0] == 0:
            untouched_since, before = time.monotonic(), held
        time.sleep(0.5)
    return 0 if zeros >= 3 else sum(queue.held())
