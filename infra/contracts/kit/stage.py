"""What a scene is played on: the kit as scheduler on one side of the agent, and as remote service on the other."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from .contract import faults_of_reply
from .inbox import Inbox, Reply
from .queues import Queue
from .service import Answer, Call, Service

Request = dict[str, Any]

STEP = "charge-payment"
AGENT = "payment"
# Both are long, for a machine that does many other things. Only an agent that is wrong makes the kit wait so long.
BUDGET_MS = 30_000
# An answer that has not come after this has not come at all.
PATIENCE_S = 20.0
DEFERRALS_MAX = 5
# Longer than that the kit does not let an attempt wait that was given back.
DEFERRAL_S_MAX = 5.0

ORDER: dict[str, Any] = {
    "Customer": "Ada Lovelace",
    "Items": [{"SKU": "MUG-BLUE", "Quantity": 2, "Price": 12.5}],
    "Gift": False,
    "Note": None,
    "Total": 25,
}
OUTPUTS: dict[str, Any] = {"reserve-inventory": {"ReservationID": "r-7"}}


class Stage:
    """One scene's view of the world. Everything that it sends is remembered, to be held against what the agent does."""

    def __init__(self, service: Service, inbox: Inbox, requests: Queue, replies: Queue, has_high: bool) -> None:
        self.service, self.inbox, self.requests, self.reply_queue = service, inbox, requests, replies
        self.has_high = has_high
        self.sent: list[Request] = []
        """Every request, as often as it was sent."""
        self.messages: dict[str, str] = {}
        """What each message on the queue of requests was, by its id."""
        self.poison: dict[str, str] = {}
        """The same of those that no agent can read."""
        self.faults: list[str] = []
        self.skipped: str | None = None
        self.looks: list[Callable[[], None]] = []
        """What is looked at when the agent has nothing more to do."""

    # What the scheduler does

    def request(self, direction: str = "Forward", *, of: Request | None = None, **members: Any) -> Request:
        """A request, for a new order or for the order `of` another; `members` replace what it would say."""
        order_id = of["OrderID"] if of else str(uuid.uuid4())
        key = f"{order_id}/{STEP}"
        request = {
            "OrderID": order_id,
            "Step": STEP,
            "Agent": AGENT,
            "Direction": direction,
            "Attempt": of["Attempt"] + 1 if of else 1,
            "IdempotencyKey": key if direction == "Forward" else f"{key}/undo",
            "CompleteBy": time_text(time.time() + members.get("BudgetMs", BUDGET_MS) / 1000),
            "BudgetMs": BUDGET_MS,
            "Hops": 3,
            "Order": ORDER,
            "Outputs": OUTPUTS,
        }
        return {**request, **members}

    def next_attempt(self, request: Request, deferred: Reply) -> Request:
        """The attempt after one that was given back. It knows of the calls that may still be at work."""
        kept = {name: request[name] for name in ("SettlesWithinMs", "MayRunUntil") if name in request}
        until = deferred.member("MayRunUntil")
        return self.request(request["Direction"], of=request, **kept, **({"MayRunUntil": until} if until else {}))

    def send(self, *requests: Request) -> None:
        """Puts requests on the agent's queue, in one batch."""
        self.sent += requests
        ids = self.requests.send_batch([json.dumps(request, ensure_ascii=False) for request in requests])
        for message_id, request in zip(ids, requests, strict=True):
            self.messages[message_id] = f"{request['Direction']}, attempt {request['Attempt']}"

    def send_poison(self, what: str, body: str) -> None:
        """Puts something on the agent's queue that is no request."""
        self.poison[self.requests.send(body)] = what

    # What came of it

    def calls(self, request: Request) -> list[Call]:
        """The calls for this request's order so far."""
        return self.service.calls(request["OrderID"])

    def replies(self, request: Request) -> list[Reply]:
        """The replies to this request, or to another of the same attempt, so far. `Retrying` is no answer yet."""
        same = (request["Direction"], request["Attempt"])
        of_order = [reply for reply in self.inbox.replies(request["OrderID"]) if not reply.is_outcome("Retrying")]
        return [reply for reply in of_order if (reply.member("Direction"), reply.member("Attempt")) == same]

    def answer(self, request: Request, *, count: int = 1, within_s: float = PATIENCE_S) -> Reply | None:
        """The `count`-th reply to a request, which is a fault if it does not come. An attempt that the agent gives back
        is made again later, as the scheduler does.
        """
        for _ in range(DEFERRALS_MAX):
            self.wait_for_replies(request, count, within_s)
            replies = self.replies(request)
            if len(replies) < count:
                others = [reply for reply in self.inbox.replies(request["OrderID"]) if reply not in replies]
                wrong = f"; what came says {_whose(others[0])}" if others else ""
                self.fault(f"no reply to {whose(request)} in time{wrong}")
                return None
            reply = replies[count - 1]
            # Of what is not as the schema says no member can be relied upon.
            if not self.is_well_formed(reply) or not reply.is_outcome("Deferred"):
                return reply
            time.sleep(min(reply.outcome("Deferred")["WaitMs"] / 1000, DEFERRAL_S_MAX))
            request, count = self.next_attempt(request, reply), 1
            self.send(request)
        self.fault(f"{DEFERRALS_MAX} attempts were given back (Deferred), and none was made")
        return None

    def is_well_formed(self, reply: Reply) -> bool:
        """Whether a reply is as its schema says; what is not is a fault."""
        problems = faults_of_reply(reply.message)
        for problem in problems:
            self.fault(f"a reply is not as the schema says: {problem}")
        return not problems

    def wait_for_replies(self, request: Request, count: int, within_s: float) -> None:
        """Waits until so many replies came to a request."""
        self.wait(lambda: len(self.replies(request)) >= count, within_s)

    def expect(self, request: Request, outcome: str, **how: Any) -> Reply | None:
        """The same, which must have this outcome."""
        reply = self.answer(request, **how)
        if reply is not None and not reply.is_outcome(outcome):
            self.fault(f"the reply to {whose(request)} should be {outcome}, got {shown(reply.member('Outcome'))}")
        return reply

    def expect_silence(self, request: Request) -> None:
        """Until the end nothing is said to this request, and nothing called for it."""

        def look() -> None:
            if self.calls(request):
                self.fault(f"the service was called for {whose(request)}, which it must not be any more")
            if self.replies(request):
                self.fault(f"a reply was sent to {whose(request)}, to which the agent has to be silent")

        self.at_the_end(look)

    def wait(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Waits until something holds, and says whether it does."""
        deadline = time.monotonic() + within_s
        while not holds():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            with self.changed:
                self.changed.wait(min(left_s, 0.1))
        return True

    def linger(self, seconds: float) -> None:
        """Lets time pass, for what has to happen in it."""
        time.sleep(seconds)

    def at_the_end(self, look: Callable[[], None]) -> None:
        """Looks for what must not happen when the agent is through with all messages of all scenes: however slow it is,
        it cannot happen later.
        """
        self.looks.append(look)

    def script(self, request: Request, *answers: Answer) -> None:
        """What the service answers to calls for this request's order."""
        self.service.answers(request["OrderID"], *answers)

    def fault(self, words: str) -> None:
        """Something that the agent did wrong."""
        if words not in self.faults:
            self.faults.append(words)

    @property
    def changed(self) -> threading.Condition:
        """Notified at each call and each reply."""
        return self.service.changed


def time_text(at: float) -> str:
    """A time as messages write it."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def time_of(text: str) -> float:
    """The reverse."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def whose(request: Request) -> str:
    """A request in words."""
    return f"the {request['Direction']} request of attempt {request['Attempt']}"


def shown(value: object) -> str:
    """A value, short enough for a line."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _whose(reply: Reply) -> str:
    return f"Direction {shown(reply.member('Direction'))}, Attempt {shown(reply.member('Attempt'))}"
