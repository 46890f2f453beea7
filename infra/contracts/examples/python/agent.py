"""An agent for Stepwarden in Python, to copy: it carries out one step of orders at one remote service.

    python agent.py --requests URL [URL ...] --replies URL [--replies-high URL] --service http://localhost:8080/payment

What an agent has to keep to stands in ../../README.md; the comments here say where each rule is kept. For a
service of your own change service.py. Needs Python 3.10 and boto3.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import boto3
from botocore.config import Config

from service import Again, Conflict, Done, Failed, Service

WORKERS = 32
# No call starts when less than this is left until the deadline, and none takes longer.
MARGIN_S, CALL_S_MAX = 0.5, 10.0
# Shorter waits are spent here; for longer ones the message goes back to its queue, where waiting costs nothing.
WAIT_HERE_S_MAX = 1.0
# Truncated exponential back-off.
SLOT_S, SLOTS_MAX = 0.3, 5
# A call without an answer may have its effect for so long, where the request does not say otherwise.
SETTLES_WITHIN_MS = 30_000
# What cannot be read is shown to its queue again so soon, so that it is a dead letter soon.
UNREADABLE_S = 1

log = logging.getLogger("agent")


class Unreadable(Exception):
    """A message that is no request."""


@dataclass(frozen=True)
class Request:
    """What the scheduler asks for. Members that are not known are ignored: a later version may have more."""

    order_id: str
    step: str
    direction: str
    attempt: int
    idempotency_key: str
    complete_by: float
    budget_s: float
    settles_within_s: float
    may_run_until: float
    order: dict[str, Any]
    outputs: dict[str, Any]
    hops: int
    is_high: bool
    # What the workflow sends, if it says so; see "The request" in ../../README.md.
    body: Any
    encode: str
    path: str
    keep: Any

    @classmethod
    def read(cls, body: str) -> Request:
        """Reads a message's body, and takes nothing for granted. Raises Unreadable."""
        try:
            message = json.loads(body)
            direction, complete_by = member(message, "Direction", str), time_of(member(message, "CompleteBy", str))
            attempt, budget_ms = member(message, "Attempt", int), member(message, "BudgetMs", int)
            if direction not in ("Forward", "Undo") or attempt < 0 or budget_ms < 0:
                raise ValueError("Direction, Attempt or BudgetMs has a value that it cannot have")
            optional = {"SettlesWithinMs": SETTLES_WITHIN_MS, "MayRunUntil": "", "Outputs": {}, "Hops": 0, **message}
            until = member(optional, "MayRunUntil", str)
            return cls(
                order_id=member(message, "OrderID", str),
                step=member(message, "Step", str),
                direction=direction,
                attempt=attempt,
                idempotency_key=member(message, "IdempotencyKey", str),
                complete_by=complete_by,
                budget_s=budget_ms / 1000,
                settles_within_s=member(optional, "SettlesWithinMs", int) / 1000,
                may_run_until=time_of(until) if until else 0.0,
                order=member(message, "Order", dict),
                outputs=member(optional, "Outputs", dict),
                hops=member(optional, "Hops", int),
                is_high=message.get("Priority") == "high",
                body=message.get("Body"),
                encode=member({"Encode": "json", **message}, "Encode", str),
                path=member({"Path": "", **message}, "Path", str),
                keep=message.get("Keep"),
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise Unreadable(str(error)) from error


def member(message: Any, name: str, kind: type) -> Any:
    """A member of a message, which must be of this type. For Python True is an int; for JSON it is not."""
    value = message.get(name) if isinstance(message, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is missing or no {kind.__name__}")
    return value


def time_of(text: str) -> float:
    """A time in a message."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at.timestamp()


def time_text(at: float) -> str:
    """The reverse."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOTHING = object()


def kept(keep: Any, answer: Any) -> Any:
    """What a template keeps of an answer."""
    value = filled(keep, answer)
    return {} if value is NOTHING or value is None else value


def filled(template: Any, answer: Any) -> Any:
    """A template with what its pointers find; a member whose pointer finds nothing is left out."""
    if isinstance(template, dict):
        members = {name: filled(value, answer) for name, value in template.items()}
        return {name: value for name, value in members.items() if value is not NOTHING}
    if isinstance(template, list):
        return [value for value in (filled(value, answer) for value in template) if value is not NOTHING]
    if not isinstance(template, str) or not template.startswith("/"):
        return template
    for name in template[1:].split("/"):
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(answer, dict) and name in answer:
            answer = answer[name]
        elif isinstance(answer, list) and name.isdigit() and int(name) < len(answer):
            answer = answer[int(name)]
        else:
            return NOTHING
    return answer


class Agent:
    """Takes requests, calls the service, sends replies."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        config = Config(retries={"mode": "standard", "max_attempts": 5}, max_pool_connections=WORKERS + 4)
        self.service = Service(options.service, options.forward, options.undo)
        self.sqs = boto3.client("sqs", endpoint_url=options.endpoint_url, config=config)
        self.pool = ThreadPoolExecutor(WORKERS)
        self.free = threading.Semaphore(WORKERS)

    def run(self) -> None:
        """Serves both lanes alike, until the process is ended. Whatever it had in hand then comes back."""
        lanes = [threading.Thread(target=self.receive, args=(url,)) for url in self.options.requests]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()

    def receive(self, queue: str) -> None:
        """Takes as many messages as there are hands: while one waits here for its turn its time runs."""
        while True:
            self.free.acquire()
            hands = 1 + sum(self.free.acquire(blocking=False) for _ in range(9))
            messages: list[dict[str, Any]] = []
            try:
                answer = self.sqs.receive_message(
                    QueueUrl=queue,
                    MaxNumberOfMessages=hands,
                    WaitTimeSeconds=10,
                    AttributeNames=["ApproximateReceiveCount"],
                )
                messages = answer.get("Messages", [])
            except Exception:
                log.exception("nothing received")
                time.sleep(1)
            for _ in range(hands - len(messages)):
                self.free.release()
            for message in messages:
                self.pool.submit(self.handle, queue, message, time.time())

    def handle(self, queue: str, message: dict[str, Any], received_at: float) -> None:
        """One message. Whatever goes wrong hurts this one alone: it is not deleted, so it comes again."""
        try:
            request = Request.read(message["Body"])
            if not self.work(queue, message, request, received_at):
                return
            # Only now: had the reply not been sent, the message would be needed to send it again.
            self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        except Unreadable as problem:
            log.error("message %s is no request: %s", message["MessageId"], problem)
            self.unreadable(queue, message)
        except Exception:
            log.exception("message %s", message["MessageId"])
        finally:
            self.free.release()

    def unreadable(self, queue: str, message: dict[str, Any]) -> None:
        """Leaves it: what nobody can read belongs in the dead-letter queue, where an operator gets to see it."""
        self.hide(queue, message, UNREADABLE_S)

    def work(self, queue: str, message: dict[str, Any], request: Request, received_at: float) -> bool:
        """Carries a request out, and says whether its message is done with."""
        # The earlier of the two, by this machine's clock: so it does not matter whose clock is wrong.
        deadline = self.deadline(request, received_at)
        # A message does not remember how often it was tried, but how often it came.
        tries = int(message["Attributes"]["ApproximateReceiveCount"])
        # Until when a call may still have its effect: one of an earlier attempt, or of an earlier delivery.
        may_run_until = request.may_run_until
        if tries > 1:
            may_run_until = max(may_run_until, received_at + request.settles_within_s)
        while True:
            left_s = deadline - time.time()
            if left_s < MARGIN_S:
                return self.silence(request, "no time left for a call")
            called_at = time.time()
            answer = self.called(request, min(CALL_S_MAX, left_s))
            if isinstance(answer, Again) and answer.may_run:
                may_run_until = max(may_run_until, called_at + request.settles_within_s)
            if isinstance(answer, Conflict) and called_at < may_run_until:
                answer = Again("an earlier call is at work", answer.after_s)
            elif isinstance(answer, Conflict):
                # It is no call of this agent's; a copy of the request may be at work all the same.
                answer, may_run_until = answer.no, deadline + request.settles_within_s
            if not isinstance(answer, Again):
                return self.answer(request, answer, deadline, may_run_until)
            wait_s = self.back_off(answer, tries)
            tries += 1
            log.info("%s: again in %.1f s: %s", request.idempotency_key, wait_s, answer.problem)
            if time.time() + wait_s > deadline - MARGIN_S:
                return self.silence(request, "no time left for another call")
            if wait_s > WAIT_HERE_S_MAX:
                self.hide(queue, message, math.ceil(wait_s))
                return False
            time.sleep(wait_s)

    def deadline(self, request: Request, received_at: float) -> float:
        """Until when something may be said."""
        return min(request.complete_by, received_at + request.budget_s)

    def back_off(self, answer: Again, tries: int) -> float:
        """How long to wait before the next call: what the service asks for, or more."""
        exponent = random.randint(0, min(tries, SLOTS_MAX))
        return max(answer.after_s, SLOT_S * float(2**exponent - 1))

    def called(self, request: Request, timeout_s: float) -> Done | Failed | Again | Conflict:
        """One call, under a key that is the same over all attempts, so that the service does nothing twice."""
        body = {"OrderID": request.order_id, "Order": request.order, "Outputs": request.outputs}
        if request.encode != "json":
            return Failed("unsendable", "this agent sends JSON alone")
        if request.body is not None:
            body = request.body
        answer = self.service.call(request.direction, self.key(request), body, timeout_s, request.path)
        if isinstance(answer, Done) and request.keep is not None:
            return Done(kept(request.keep, answer.output))
        return answer

    def key(self, request: Request) -> str:
        """From the request, as it is."""
        return request.idempotency_key

    def answer(self, request: Request, answer: Done | Failed, deadline: float, may_run_until: float) -> bool:
        """Sends the reply, unless it is too late: then the attempt was counted, and another may be under way."""
        if time.time() >= deadline:
            return self.silence(request, "the answer came too late")
        if isinstance(answer, Done):
            outcome: dict[str, Any] = {"Done": answer.output}
        else:
            outcome = {"Failed": {"Code": answer.code, "Message": answer.message[:400]}}
        self.reply(request, outcome, may_run_until)
        return True

    def reply(self, request: Request, outcome: dict[str, Any], may_run_until: float) -> None:
        """Sends one reply, to the lane of its request. Raises where it was not taken."""
        reply: dict[str, Any] = {
            "OrderID": request.order_id,
            "Step": request.step,
            "Direction": request.direction,
            "Attempt": request.attempt,
            "Outcome": outcome,
            "Hops": request.hops + 1,
        }
        if may_run_until:
            # The undo of the step waits for it.
            reply["MayRunUntil"] = time_text(may_run_until)
        queue = (request.is_high and self.options.replies_high) or self.options.replies
        self.sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"Reply": reply}))

    def silence(self, request: Request, why: str) -> bool:
        """Says nothing and lets the message go; the supervisor will notice."""
        log.warning("%s, attempt %d: silent: %s", request.idempotency_key, request.attempt, why)
        return True

    def hide(self, queue: str, message: dict[str, Any], seconds: int) -> None:
        """Gives a message back to its queue, which shows it again after so many seconds."""
        handle = message["ReceiptHandle"]
        self.sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=seconds)


def main(make: type[Agent] = Agent) -> None:
    """Reads the command line and serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--requests", metavar="URL", nargs="+", required=True, help="queues of requests, one for each lane"
    )
    parser.add_argument("--replies", metavar="URL", required=True, help="the scheduler's queue")
    parser.add_argument("--replies-high", metavar="URL", help="the scheduler's queue for orders of high priority")
    parser.add_argument("--service", metavar="URL", required=True, help="base URL of the remote service")
    parser.add_argument("--forward", metavar="NAME", default="charge", help="operation that carries the step out")
    parser.add_argument("--undo", metavar="NAME", default="refund", help="operation that takes it back")
    parser.add_argument("--endpoint-url", metavar="URL", help="where SQS is, for an emulator")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    make(parser.parse_args()).run()


if __name__ == "__main__":
    main()
