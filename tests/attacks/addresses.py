"""Addresses of calls (rule 38): where they lead, and who sees them. The suite `callbacks` forges them."""

from __future__ import annotations

import json

from attacks.secured import Secured
from attacks.wire import call, post, raw
from callbacks.webhooks import SCHEMES, event
from harness.report import Suite, expect, expect_equal

DONE = {"Outcome": "Done", "Output": {"Score": 7}}
BODY_BYTES_MAX = 128 * 1024


class Addresses(Suite):
    """Callback addresses and webhooks."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.id = secured.order()
        self.token = secured.services.token(self.id, "check")

    def tell(self, token: str, body: str, *headers: str) -> int:
        """The status of a post to the address of a call."""
        return raw(self.secured.port, post(f"/callbacks/{token}", body, *headers)).status

    def test_hosts(self) -> None:
        """A Host or a forwarded host of a request gets into no address. The service would post its result there."""
        forwarded = ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher", "Forwarded: host=evil.example")
        for headers in ((), forwarded):
            lines = [*self.secured.bearer("application"), *headers]
            answer = raw(self.secured.port, post("/orders", "{}", *lines, host="localhost:1"))
            order = str(answer.document["OrderID"])
            self.secured.services.token(order, "check")
            address = self.secured.services.addresses[f"{order}/check"]
            expect(address.startswith(f"{self.secured.server.url}/callbacks/"), address)
            expect(f"location: /orders/{order}\r\n" in answer.text.lower(), answer.text)

    def test_forms(self) -> None:
        """An address in another form is 401 or 404, and one by another method, in a page or too large is refused."""
        token, done = self.token, json.dumps(DONE)
        for odd in (f"{token}=", f"{token}==", token.swapcase(), token * 30, f"{token}%00", "%00", "..", f"{token}."):
            expect_equal(odd, self.tell(odd, done), 401)
        for odd in (f"%{ord(token[0]):x}{token[1:]}", f"{token};x", "A" * 20_000):
            expect_equal(odd, self.tell(odd, done), 401)
        for odd in (f"{token}/", f"{token}/result", f"/{token}", f"{token}/heartbeat/", f"x/../{token}"):
            expect_equal(odd, self.tell(odd, done), 404)
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            expect_equal(method, raw(self.secured.port, call(method, f"/callbacks/{token}")).status, 405)
        expect_equal("of a page", self.tell(token, done, "Sec-Fetch-Site: cross-site"), 403)
        expect_equal("as HTML", self.tell(token, done, "Content-Type: text/html"), 415)
        expect_equal("large", self.tell(token, json.dumps({**DONE, "Output": "x" * BODY_BYTES_MAX})), 413)
        expect_equal("the step", self.secured.step(self.id, "check")["ProcessState"], "Processing")

    def test_senders(self) -> None:
        """A signed event of another Host, by a dotted path or another method is refused, and has nothing behind it."""
        scheme = SCHEMES["github"]
        body = event(f"{self.id}/{scheme.name}", DONE)
        lines = [f"{name}: {value}" for name, value in scheme.signed(body).items()]
        agent = scheme.agent
        path = f"/webhooks/{agent}"
        expect_equal("another Host", raw(self.secured.port, post(path, body, *lines, host="evil.example")).status, 421)
        for odd in ("..", "../orders", "%2e%2e/orders", f"{agent}/..", f"{agent}%00", agent.upper(), f"%6c{agent[1:]}"):
            expect_equal(odd, raw(self.secured.port, post(f"/webhooks/{odd}", body, *lines)).status, 404)
        for method in ("HEAD", "PUT", "OPTIONS", "TRACE"):
            expect_equal(method, raw(self.secured.port, call(method, path)).status, 405)
        expect_equal("the step", self.secured.step(self.id, scheme.name)["ProcessState"], "Processing")

    def test_callers(self) -> None:
        """A caller's token adds nothing to an address, and is not needed."""
        forged = self.token[:20] + ("A" if self.token[20] != "A" else "B") + self.token[21:]
        expect_equal("an administrator", self.tell(forged, "{}", *self.secured.bearer("administrator")), 401)
        expect_equal("nobody", self.tell(f"{self.token}/heartbeat", "", *self.secured.bearer("nobody")), 202)

    def test_secret(self) -> None:
        """No address and no key for addresses is in answers, log or data that a reader sees."""
        paths = [f"/orders/{self.id}", f"/orders/{self.id}/document", "/configuration", "/workflows", "/metrics"]
        paths += ["/services", "/alerts", "/dead-letters", "/overview", "/orders?with=index", "/numbers?last=30m"]
        texts = {path: self.secured.ask("administrator", "GET", path).text for path in [*paths, "/workflows/paid/1"]}
        texts["log"] = self.secured.server.log()
        texts["audit"] = self.secured.server.run("audit", "--data", str(self.secured.server.data)).stdout
        expect(self.id in texts["audit"], texts["audit"][:200])
        texts["404"] = raw(self.secured.port, post(f"/callbacks/{self.token}/nothing", "{}")).text
        for place, text in texts.items():
            found = [word for word in (self.token, "CallbackKeys", '"Secret"') if word in text]
            expect(not found, f"{place}: {text[:300]}")
