"""A carrier with OAuth 2 client credentials and a limit of calls, and a shop's own stock service."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote_plus

from harness.report import expect
from harness.stub import Answer, Call, Stub
from provider import Keys, new_id

UNDELIVERABLE = "0000"
SOLD_OUT = "SOLD-OUT"
# As the example says.
CALLS_PER_S = 20.0


@dataclass
class Shipment:
    """A parcel."""

    id: str
    canceled: bool = False


class Carrier(Stub):
    """Ships for callers with a token."""

    def __init__(self, secret: str, token_s: float, revoked_after_s: float) -> None:
        """Every second token ends after `revoked_after_s`, though it was to last for `token_s`."""
        self.secret = secret
        self.shipments: dict[str, list[Shipment]] = {}
        self.tokens_given = 0
        self._called_at = 0.0
        self._token_s = token_s
        # A bucket of one second.
        self._allowed = CALLS_PER_S
        self._revoked_after_s = revoked_after_s
        self._tokens: dict[str, float] = {}
        self._keys = Keys()
        super().__init__()

    def answer(self, call: Call) -> Answer | None:
        if call.path == "/oauth/token":
            return self._token(call)
        with self.lock:
            now = time.monotonic()
            self._allowed = min(CALLS_PER_S, self._allowed + (now - self._called_at) * CALLS_PER_S)
            self._called_at = now
            if self._allowed < 1:
                return 429, {"code": "too_many_calls"}, {"Retry-After": "1"}
            self._allowed -= 1
            if now > self._tokens.get(call.headers.get("authorization", ""), 0.0):
                return 401, {"code": "token_expired"}, {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        answer = self._keys.once(call, lambda: self._execute(call))
        if answer is Keys.IN_USE:
            return 409, {"code": "in_use"}
        return (422, {"code": "key_misused"}) if answer is Keys.MISUSED else answer

    def _token(self, call: Call) -> Answer:
        form = parse_qs(call.body.decode())
        # RFC 6749 has both parts percent-encoded before the base64.
        pair = base64.b64decode(call.headers.get("authorization", "").removeprefix("Basic ")).decode()
        is_shop = [unquote_plus(part) for part in pair.split(":")] == ["shop", self.secret]
        if not is_shop or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client"}
        token = new_id("token")
        with self.lock:
            self.tokens_given += 1
            is_revoked = self.tokens_given % 2 == 0
            lasts_s = self._revoked_after_s if is_revoked else self._token_s
            self._tokens[f"Bearer {token}"] = time.monotonic() + lasts_s
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": int(self._token_s)}

    def _execute(self, call: Call) -> Answer:
        if call.path == "/v1/shipments":
            body = json.loads(call.body)
            if body["address"]["PostalCode"] == UNDELIVERABLE:
                return 422, {"code": "address_undeliverable", "message": "we do not go there"}
            shipment = Shipment(new_id("shp"))
            with self.lock:
                self.shipments.setdefault(body["reference"], []).append(shipment)
            return 201, {"id": shipment.id, "reference": body["reference"]}
        path, _, query = call.path.partition("?")
        *_, reference = path.split("/")
        expect((call.method, query, call.body) == ("DELETE", "reason=cancelled", b""), f"no cancellation: {call}")
        with self.lock:
            known = self.shipments.get(reference, [])
            for shipment in known:
                shipment.canceled = True
        return (200, {"canceled": True}) if known else (404, {"code": "shipment_not_found"})


class Stock(Stub):
    """Reserves and releases, as JSON; the release of nothing succeeds."""

    def __init__(self) -> None:
        self.reserved: dict[str, int] = {}
        self._keys = Keys()
        super().__init__()

    def answer(self, call: Call) -> Answer | None:
        answer = self._keys.once(call, lambda: self._execute(call))
        if answer is Keys.IN_USE:
            return 409, {"code": "in_use"}
        return (422, {"code": "key_misused"}) if answer is Keys.MISUSED else answer

    def _execute(self, call: Call) -> Answer:
        body = json.loads(call.body)
        with self.lock:
            if call.path == "/v1/releases":
                self.reserved.pop(body["order"], None)
                return 200, {}
            expect(call.path == "/v1/reservations", call.path)
            if any(item["SKU"] == SOLD_OUT for item in body["items"]):
                return 422, {"code": "sold_out", "message": "none is left"}
            self.reserved[body["order"]] = self.reserved.get(body["order"], 0) + 1
            return 201, {"reservation": new_id("res")}
