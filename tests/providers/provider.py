"""What the three providers have in common: one execution for each idempotency key."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from harness.stub import Answer, Call


class Keys:
    """Idempotency keys: one execution for each, and its answer for every repeat."""

    IN_USE: Answer = (0, {})
    MISUSED: Answer = (0, {"misused": True})

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[str, bytes], Answer | None]] = {}
        self._lock = threading.Lock()

    def once(self, call: Call, execute: Callable[[], Answer]) -> Answer:
        """The answer to a call. `IN_USE` while the first one is at work, `MISUSED` for another call with the key."""
        with self._lock:
            known = self._known.get(call.key)
            if known is None:
                self._known[call.key] = ((call.path, call.body), None)
        if known is not None:
            if known[0] != (call.path, call.body):
                return self.MISUSED
            return known[1] or self.IN_USE
        answer = execute()
        with self._lock:
            self._known[call.key] = ((call.path, call.body), answer)
        return answer


def new_id(kind: str) -> str:
    """An id as providers make them, which says nothing about the order."""
    return f"{kind}_{secrets.token_hex(12)}"
