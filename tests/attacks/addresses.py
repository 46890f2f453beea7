"""Addresses of calls (rule 38): where they lead, and who sees them."""

from __future__ import annotations

from attacks.secured import Secured
from attacks.wire import post, raw
from harness.report import Suite, expect


class Addresses(Suite):
    """Callback addresses."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.id = secured.order()
        self.token = secured.services.token(self.id, "check")

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
