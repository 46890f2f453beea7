"""A bank that takes payments on, and tells their results later."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from callbacks.webhooks import SCHEMES, Headers, Scheme, event
from harness.calls import call
from harness.report import STOPPED
from harness.stub import Answer, Call, Stub

# Calls of the program at once, of which each waits for an answer.
CALLERS = 32
AGAIN_EVERY_S = 0.2
UNDO = "/undo"
# The path of the courier, which the bank's server plays as well.
COURIER = "/courier"


@dataclass
class Payment:
    """What the bank knows under one key."""

    url: str | None
    # How its result is signed, if an event tells it and not a post to the address.
    scheme: Scheme | None = None
    taken_on: int = 0
    result: dict[str, Any] | None = None
    is_stopped: bool = False
    told: list[int] = field(default_factory=list)


def draw(key: str, what: str, of: int) -> int:
    """A number below `of`, the same for the same key in every run."""
    return int.from_bytes(hashlib.sha256(f"{what} {key}".encode()).digest()[:4], "big") % of


def unsigned(_body: bytes) -> Headers:
    """No further headers."""
    return {}


class Bank(Stub):
    """The service. Leaving its `with` stops it."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is the longest time of a payment."""
        self.seconds = seconds
        self.charged: Counter[str] = Counter()
        self.refunded: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.lost: set[str] = set()
        self._payments: dict[str, Payment] = {}
        self._jobs = ThreadPoolExecutor(CALLERS, "bank")
        self._clock: list[threading.Timer] = []
        super().__init__()

    def __exit__(self, *_: object) -> None:
        for timer in self._clock:
            timer.cancel()
        self._jobs.shutdown(wait=False, cancel_futures=True)
        super().__exit__()

    def address(self, key: str) -> str:
        """The address that the call with this key gave."""
        with self.lock:
            url = self._payments[key].url
        assert url is not None
        return url

    def scheme(self, key: str) -> Scheme | None:
        """How the events about the call with this key are signed, if there are any."""
        with self.lock:
            return self._payments[key].scheme

    def webhook(self, key: str, scheme: Scheme) -> str:
        """The address that the events of this scheme go to, at the API of the call with this key."""
        return f"{self.address(key).split('/callbacks/')[0]}/webhooks/{scheme.agent}"

    def answer(self, call: Call) -> Answer:
        """The answer to a call. A repeat of one that is decided gets its result."""
        key, url, scheme = call.key, call.headers["Callback-Url"], SCHEMES.get(call.path.split("/")[1])
        if call.path.startswith(COURIER):
            return courier(key)
        if key.endswith(UNDO):
            return self._refund(key)
        with self.lock:
            payment = self._payments.setdefault(key, Payment(url, scheme))
            payment.taken_on += 1
            if payment.is_stopped:
                return 409, {"code": "refunded"}
            if payment.url != url:
                return 422, {"code": "another-address", "message": f"{payment.url} before, {url} now"}
            if payment.result is not None:
                return self._as_answer(payment.result)
            if payment.taken_on > 1 and key in self.lost:
                self._decide(key, payment)
                assert payment.result is not None
                return self._as_answer(payment.result)
            is_first = payment.taken_on == 1
        if is_first:
            self._take_on(key)
        return 202, {}

    def _take_on(self, key: str) -> None:
        way = draw(key, "way", 20)
        if way == 0:
            # Told never: only a repeated call learns of it.
            self.lost.add(key)
        elif way == 1:
            # Told before the answer to the call.
            self._tell(key, 1)
        else:
            seconds = self.seconds * draw(key, "time", 1_000) / 1_000
            self._later(seconds, lambda: self._tell(key, 2 if way < 5 else 1))
            if way == 5:
                self._later(seconds / 2, lambda: self._tell_of(key, None))

    def _later(self, seconds: float, work: Any) -> None:
        timer = threading.Timer(seconds, lambda: self._jobs.submit(work))
        timer.daemon = True
        self._clock.append(timer)
        timer.start()

    def _decide(self, key: str, payment: Payment) -> None:
        if draw(key, "no", 10) == 0:
            payment.result = {"Outcome": "No", "Code": "card-declined", "Message": "the bank said no"}
        else:
            self.charged[key] += 1
            payment.result = {"Outcome": "Done", "Output": {"PaymentID": key[:8], "Card": "4111111111111111"}}

    def _tell(self, key: str, times: int) -> None:
        with self.lock:
            payment = self._payments[key]
            if payment.is_stopped:
                return
            if payment.result is None:
                self._decide(key, payment)
            result = payment.result
        for _ in range(times):
            self._tell_of(key, result)

    def _tell_of(self, key: str, result: dict[str, Any] | None) -> None:
        """Tells a result, or without one that the payment goes on: to the address of the call, or by an event."""
        scheme = self.scheme(key)
        if scheme is not None:
            url = self.webhook(key, scheme)
            self._post(url, event(key, result), "event" if result else "working", scheme.signed)
        elif result is not None:
            self._post(self.address(key), json.dumps(result).encode(), "result")
        else:
            self._post(f"{self.address(key)}/heartbeat", b"", "heartbeat")

    def _post(self, url: str, body: bytes, what: str, sign: Callable[[bytes], Headers] = unsigned) -> None:
        """Posts until there is an answer that says that it arrived."""
        while not STOPPED.is_set():
            try:
                status = call("POST", url, body, sign(body)).status
            except OSError:
                status = 0
            with self.lock:
                self.told[f"{what} {status}"] += 1
            if status in (200, 202):
                return
            time.sleep(AGAIN_EVERY_S)

    def _refund(self, key: str) -> Answer:
        of = key.removesuffix(UNDO)
        with self.lock:
            payment = self._payments.setdefault(of, Payment(None))
            payment.is_stopped = True
            if self.charged[of] and not self.refunded[of]:
                self.refunded[of] += 1
        return 200, {}

    @staticmethod
    def _as_answer(result: dict[str, Any]) -> Answer:
        if result["Outcome"] == "Done":
            return 200, result["Output"]
        return 402, {"code": result["Code"]}


def courier(key: str) -> Answer:
    """Refuses one parcel in twenty."""
    is_refused = not key.endswith(UNDO) and draw(key, "parcel", 20) == 0
    return (422, {"code": "no-such-address"}) if is_refused else (200, {})
