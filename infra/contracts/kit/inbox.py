"""The replies that the agent sends, collected as they come."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

from .contract import NESTING_MAX
from .queues import Queue, Unfit

# The members around an output, and to spare: what is deeper nobody reads.
LEVELS_MAX = NESTING_MAX + 8


@dataclass(frozen=True)
class Reply:
    """One message on a queue of replies."""

    sent_at: float
    """By the queue's clock."""
    is_high: bool
    """It came on the queue of high priority."""
    message: Any
    """Its JSON; None if it is none."""
    text: str

    def member(self, name: str) -> Any:
        """A member of the reply; None if it is not there."""
        inner = self.message.get("Reply") if isinstance(self.message, dict) else None
        return inner.get(name) if isinstance(inner, dict) else None

    def outcome(self, name: str) -> Any:
        """What stands under `Done`, `Failed` or `Deferred`; None if the outcome is another."""
        outcome = self.member("Outcome")
        return outcome.get(name) if isinstance(outcome, dict) else None

    def is_outcome(self, name: str) -> bool:
        """Whether the outcome is this one: of `Done`, what stands there may be null."""
        outcome = self.member("Outcome")
        return isinstance(outcome, dict) and name in outcome


class Inbox:
    """Takes replies off their queues until it is closed."""

    def __init__(self, changed: threading.Condition, replies: Queue, high: Queue | None) -> None:
        """`changed` is notified at each reply."""
        self._changed = changed
        self._replies: list[Reply] = []
        self._is_closed = threading.Event()
        self._problem: Exception | None = None
        queues = [(replies, False)] + ([(high, True)] if high else [])
        self.queues = [queue for queue, _ in queues]
        self._threads = [threading.Thread(target=self._collect, args=queue, daemon=True) for queue in queues]
        for thread in self._threads:
            thread.start()

    def replies(self, order_id: str) -> list[Reply]:
        """The replies for this order so far. Raises Unfit where a queue of replies cannot be read any more: then what
        is missing here is not missing because of the agent.
        """
        with self._changed:
            if self._problem is not None:
                raise Unfit(f"the queues of replies cannot be read any more: {self._problem!r}") from self._problem
            return [reply for reply in self._replies if reply.member("OrderID") == order_id]

    def strays(self, known: set[str]) -> list[Reply]:
        """The replies for orders that nobody asked for."""
        with self._changed:
            return [reply for reply in self._replies if str(reply.member("OrderID")) not in known]

    def close(self) -> None:
        """Stops collecting."""
        self._is_closed.set()
        for thread in self._threads:
            thread.join()

    def _collect(self, queue: Queue, is_high: bool) -> None:
        while not self._is_closed.is_set():
            taken: list[Reply] = []
            problem: Exception | None = None
            try:
                taken = [_read(message, is_high) for message in queue.take(1)]
            except Exception as error:  # whatever it is: a thread that ended in silence would look like a silent agent
                problem = error
            with self._changed:
                self._replies += taken
                self._problem = self._problem or problem
                self._changed.notify_all()
            if problem is not None:
                return


def _read(message: dict[str, Any], is_high: bool) -> Reply:
    try:
        content = json.loads(message["Body"], parse_constant=_refuse)
    except (ValueError, RecursionError):
        content = None
    if _levels(content) > LEVELS_MAX:
        content = None
    sent_at = int(message["Attributes"]["SentTimestamp"]) / 1000
    return Reply(sent_at, is_high, content, message["Body"])


def _refuse(word: str) -> None:
    """NaN and Infinity: Python reads them, and nobody else."""
    raise ValueError(f"{word} is no JSON")


def _levels(value: Any) -> int:
    """How deep a value is nested. Without recursion, for which it may be too deep."""
    levels, inside = 0, [value]
    while inside := [
        inner
        for outer in inside
        if isinstance(outer, (dict, list))
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        levels += 1
    return levels
