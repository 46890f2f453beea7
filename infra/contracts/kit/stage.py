"""What a scene is played on: the kit as scheduler on one side of the agent, and as remote service on the other."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from .inbox import Inbox, Reply
from .queues import Queue
from .service import Answer, Call, Service

Request = dict[str, Any]

STEP = "charge-payment"
BUDGET_MS = 20_000
# An answer that has not come after this has not come at all.
PATIENCE_S = 12.0
# After how long of nothing there is nothing.
SILENCE_S = 1.5
DEFERRALS_MAX = 5

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

    # What the scheduler does

    def request(self, direction: str = "Forward", *, of: Request | None = None, **members: Any) -> Request:
        """A request, for a new order or for the order `of` another; `members` replace what it would say."""
        order_id = of["OrderID"] if of else str(uuid.uuid4())
        key = f"{order_id}/{STEP}"
        request = {
            "OrderID": order_id,
            "Step": STEP,
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
        """The replies to this request, or to another of the same attempt, so far."""
        same = (request["Direction"], request["Attempt"])
        of_order = self.inbox.replies(request["OrderID"])
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
            deferral = replies[count - 1].outcome("Deferred")
            if not isinstance(deferral, dict):
                return replies[count - 1]
            time.sleep(min(float(deferral.get("WaitMs", 0)) / 1000, 5.0))
            request = self.request(request["Direction"], of=request)
            self.send(request)
        self.fault(f"{DEFERRALS_MAX} attempts were given back (Deferred), and none was made")
        return None

    def wait_for_replies(self, request: Request, count: int, within_s: float) -> None:
        """Waits until so many replies came to a request."""
        self.wait(lambda: len(self.replies(request)) >= count, within_s)

    def expect(self, request: Request, outcome: str, **how: Any) -> Reply | None:
        """The same, which must have this outcome."""
        reply = self.answer(request, **how)
        if reply is not None and not reply.is_outcome(outcome):
            self.fault(f"the reply to {whose(request)} should be {outcome}, got {shown(reply.member('Outcome'))}")
        return reply

    def expect_silence(self, request: Request, *, of_calls: bool = True) -> None:
        """Nothing is said to this request, and where `of_calls` nothing called for it."""
        if of_calls and self.calls(request):
            self.fault(f"the service was called for {whose(request)}, which it must not be any more")
        if self.replies(request):
            self.fault(f"a reply was sent to {whose(request)}, to which the agent has to be silent")

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

    def linger(self, seconds: float = SILENCE_S) -> None:
        """Lets time pass, for what must not happen."""
        time.sleep(seconds)

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
