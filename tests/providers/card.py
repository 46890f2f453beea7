"""A card provider in the style of Stripe's PaymentIntents, after its public documentation.

The payment method decides what happens to a payment, as with the documented test cards; see `Card`.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from harness.report import expect
from harness.stub import Answer, Call, Stub
from provider import Keys, new_id

AMOUNT_MIN = 50
# The work on a call whose caller lost its connection.
LOST_WORK_S = 1.5
PROCESSING_S = 2.0
OPEN = ("requires_confirmation", "requires_action", "processing", "requires_capture")


class Card:
    """Payment methods."""

    GOOD = "pm_card_visa"
    DECLINED = "pm_card_visa_chargeDeclined"
    ASKS_CUSTOMER = "pm_card_authenticationRequired"
    PROCESSING = "pm_card_processing"
    # The connection breaks, and the provider works on.
    LOST = "pm_card_lost"
    LOST_AND_DECLINED = "pm_card_lost_declined"
    # The same at the capture, whose work takes until `release` is called.
    CAPTURE_HELD = "pm_card_capture_held"
    # The hold was over before the capture.
    HOLD_EXPIRED = "pm_card_hold_expired"


@dataclass
class Intent:
    """A payment."""

    id: str
    order_id: str
    amount: int
    card: str
    status: str = "requires_confirmation"
    confirmed_at: float = 0.0
    charges: int = 0
    refunds: int = 0
    canceled: bool = False
    declines: list[str] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "id": self.id,
            "object": "payment_intent",
            "amount": self.amount,
            "client_secret": f"{self.id}_secret_hidden",
            "status": self.status,
            "metadata": {"order_id": self.order_id},
        }


class CardProvider(Stub):
    """The provider, with its books."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.intents: dict[str, Intent] = {}
        self._keys = Keys()
        self._lost: set[str] = set()
        self._held = threading.Event()
        super().__init__()

    def release(self) -> None:
        """Lets the held captures go on."""
        self._held.set()

    def answer(self, call: Call) -> Answer | None:
        if call.headers.get("authorization") != f"Bearer {self.secret}":
            return fault(401, "invalid_request_error", "Invalid API Key provided")
        expect(call.headers.get("content-type") == "application/x-www-form-urlencoded", f"no form: {call}")
        expect(0 < len(call.key) <= 255, f"no key: {call}")
        form = dict(parse_qsl(call.body.decode(), keep_blank_values=True))
        # Neither faults of the parameters nor conflicts are kept with the key.
        if (refused := self._refused(call.path, form)) is not None:
            return refused
        if self._loses(call):
            threading.Thread(target=self._once, args=(call, form, LOST_WORK_S), daemon=True).start()
            return None
        return self._once(call, form, 0.0)

    def _once(self, call: Call, form: dict[str, str], work_s: float) -> Answer:
        def execute() -> Answer:
            time.sleep(work_s)
            intent = self.intents.get(call.path.split("/")[3]) if call.path.count("/") > 3 else None
            if intent and intent.card == Card.CAPTURE_HELD and call.path.endswith("/capture"):
                self._held.wait()
            with self.lock:
                return self._execute(call.path, form)

        answer = self._keys.once(call, execute)
        if answer is Keys.IN_USE:
            return fault(409, "invalid_request_error", "at work on a call with this key", "idempotency_key_in_use")
        if answer is Keys.MISUSED:
            return fault(400, "idempotency_error", "the key was used with other parameters")
        return answer

    def _loses(self, call: Call) -> bool:
        """Whether the connection of this call breaks: the first one of some cards."""
        operation = call.path.rsplit("/", 1)[-1]
        intent = self.intents.get(call.path.split("/")[3]) if operation in ("confirm", "capture") else None
        if intent is None:
            return False
        lost = {"confirm": (Card.LOST, Card.LOST_AND_DECLINED), "capture": (Card.CAPTURE_HELD,)}[operation]
        with self.lock:
            is_first = call.key not in self._lost
            self._lost.add(call.key)
        return is_first and intent.card in lost

    def _refused(self, path: str, form: dict[str, str]) -> Answer | None:
        if path == "/v1/payment_intents":
            if not form.get("amount", "").isdigit() or not form.get("currency") or not form.get("metadata[order_id]"):
                return fault(400, "invalid_request_error", "a parameter is missing", "parameter_missing")
            if int(form["amount"]) < AMOUNT_MIN:
                return fault(400, "invalid_request_error", "the amount is too small", "amount_too_small")
            return None
        if path == "/v1/refunds":
            if "payment_intent" not in form:
                return fault(400, "invalid_request_error", "a parameter is missing", "parameter_missing")
            return None if form["payment_intent"] in self.intents else missing()
        found = re.fullmatch(r"/v1/payment_intents/([^/]+)/(confirm|capture|cancel)", path)
        if found is None:
            return fault(404, "invalid_request_error", "Unrecognized request URL")
        return None if found[1] in self.intents else missing()

    def _execute(self, path: str, form: dict[str, str]) -> Answer:
        if path == "/v1/payment_intents":
            expect(form["capture_method"] == "manual" and form["payment_method_types[0]"] == "card", str(form))
            made = Intent(new_id("pi"), form["metadata[order_id]"], int(form["amount"]), form["payment_method"])
            self.intents[made.id] = made
            return 200, made.shown()
        if path == "/v1/refunds":
            return self._refund(self.intents[form["payment_intent"]])
        _, _, _, intent_id, operation = path.split("/")
        intent = self.intents[intent_id]
        if intent.status == "processing" and time.monotonic() > intent.confirmed_at + PROCESSING_S:
            intent.status = "requires_capture"
        match operation:
            case "confirm" if intent.status == "requires_confirmation":
                return self._confirm(intent)
            case "capture" if intent.status == "requires_capture" and intent.card == Card.HOLD_EXPIRED:
                return fault(400, "invalid_request_error", "the hold has expired", "charge_expired_for_capture", intent)
            case "capture" if intent.status == "requires_capture":
                expect(int(form["amount_to_capture"]) == intent.amount, str(form))
                intent.status = "succeeded"
                intent.charges += 1
                return 200, intent.shown()
            case "cancel" if intent.status in OPEN or intent.status == "requires_payment_method":
                intent.status, intent.canceled = "canceled", True
                return 200, intent.shown()
        text = f"a payment that is {intent.status} has no {operation}"
        return fault(400, "invalid_request_error", text, "payment_intent_unexpected_state", intent)

    def _confirm(self, intent: Intent) -> Answer:
        intent.confirmed_at = time.monotonic()
        if intent.card in (Card.DECLINED, Card.LOST_AND_DECLINED):
            intent.status = "requires_payment_method"
            return fault(402, "card_error", "Your card was declined.", "card_declined", intent)
        other = {Card.ASKS_CUSTOMER: "requires_action", Card.PROCESSING: "processing"}
        intent.status = other.get(intent.card, "requires_capture")
        return 200, intent.shown()

    def _refund(self, intent: Intent) -> Answer:
        if intent.charges == 0:
            # The documentation has no code for it.
            answer = fault(400, "invalid_request_error", "This payment has no successful charge to refund.")
            answer[1]["error"]["param"] = "payment_intent"
            return answer
        if intent.refunds == intent.charges:
            return fault(400, "invalid_request_error", "the charge has been refunded", "charge_already_refunded")
        intent.refunds += 1
        return 200, {"id": new_id("re"), "object": "refund", "amount": intent.amount, "status": "succeeded"}


def missing() -> Answer:
    """An unknown payment."""
    return fault(404, "invalid_request_error", "No such payment_intent", "resource_missing")


def fault(status: int, kind: str, message: str, code: str | None = None, intent: Intent | None = None) -> Answer:
    """An error."""
    error: dict[str, Any] = {"type": kind, "message": message}
    if code is not None:
        error["code"] = code
    if intent is not None:
        error["payment_intent"] = intent.shown()
    return status, {"error": error}
