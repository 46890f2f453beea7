"""A small service in Python. It keeps the rules for a service, and its books."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.stub import Answer, Call, Stub


class Service(Stub):
    """POST /do and /undo are the calls of a step. The first call of every seventh key fails, so that calls repeat. An
    order with `Decline` has the step declined whose key ends so."""

    def __init__(self) -> None:
        # How often each key was done, and undone.
        self.done: Counter[str] = Counter()
        self.undone: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._answers: dict[str, dict[str, Any]] = {}
        self._over: set[str] = set()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """One at a time."""
        with self.lock:
            return self._undo(call.key.removesuffix("/undo")) if call.path == "/undo" else self._do(call)

    def _undo(self, step: str) -> Answer:
        if step in self._answers and step not in self._over:
            self.undone[step] += 1
        self._over.add(step)
        return 200, {}

    def _do(self, call: Call) -> Answer:
        key = call.key
        if key in self._over:
            return 422, {"code": "undone", "detail": "it was undone before"}
        self._seen[key] += 1
        if len(self._seen) % 7 == 0 and self._seen[key] == 1:
            return 503, {"detail": "not now"}
        if key not in self._answers:
            decline = call.order.get("Decline")
            if decline and key.endswith(decline):
                return 422, {"code": "declined", "detail": "as the order says"}
            self.done[key] += 1
            self._answers[key] = {"Number": len(self._answers) + 1}
        return 200, self._answers[key]
