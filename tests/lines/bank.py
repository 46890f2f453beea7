"""A bank that charges an order, and refunds all of it or the part of a line. It keeps its books to the last digit."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from harness.stub import Answer, Call, Stub

UNDO = "/undo"


class Bank(Stub):
    """The service. Leaving its `with` stops it."""

    def __init__(self) -> None:
        # By order.
        self.charged: dict[str, Decimal] = {}
        self.receipts: dict[str, Any] = {}
        # By the key of the call: what was refunded, once each.
        self.refunds: dict[str, Decimal] = {}
        self._calls: Counter[str] = Counter()
        self._bodies: dict[str, bytes] = {}
        super().__init__()

    def left(self, order_id: str) -> Decimal:
        """What is left of the charge of an order."""
        refunds = (amount for key, amount in self.refunds.items() if key.startswith(f"{order_id}/"))
        return self.charged.get(order_id, Decimal(0)) - sum(refunds)

    def answer(self, call: Call) -> Answer | None:
        """The answer to a call. The first call of some orders fails; the first refund of a line has no answer."""
        if call.method == "GET":
            # It asks whether the payment covers a line.
            return 200, {}
        with self.lock:
            body = json.loads(call.body, parse_float=Decimal)
            self._calls[call.key] += 1
            if self._bodies.setdefault(call.key, call.body) != call.body:
                raise ValueError(f"{call.key}: {self._bodies[call.key]!r} before")
            is_first, order_id = self._calls[call.key] == 1, call.key.split("/")[0]
            if call.path.endswith("/receipt"):
                return self._receipt(call.key, order_id, body)
            if call.key.endswith(UNDO):
                self._refund(call.key, order_id, body)
                return None if is_first and "amount" in body else (200, {})
            if f"{call.key}{UNDO}" in self._calls:
                return 422, {"code": "undone"}
            if is_first and body["number"] % 9 == 0:
                return 503, {}
            self.charged.setdefault(order_id, Decimal(body["amount"]))
            return 200, {"payment": f"pay-{order_id}"}

    def _refund(self, key: str, order_id: str, body: dict[str, Any]) -> None:
        """The refund of a line has an amount; that of the order gives back what is left."""
        if order_id in self.charged and key not in self.refunds:
            amount = Decimal(body["amount"]) if "amount" in body else self.left(order_id)
            if amount > self.left(order_id):
                raise ValueError(f"{key}: {amount} of {self.left(order_id)}")
            self.refunds[key] = amount

    def _receipt(self, key: str, order_id: str, body: dict[str, Any]) -> Answer:
        """The last step of an order, or its undo. Some are refused."""
        if key.endswith(UNDO):
            self.receipts.pop(order_id, None)
        elif f"{key}{UNDO}" in self._calls or body["refuse"]:
            return 422, {"code": "no-such-address"}
        else:
            self.receipts[order_id] = body["parcels"]
        return 200, {}
