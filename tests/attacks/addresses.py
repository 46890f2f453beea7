"""Results that no service tells: forged addresses of calls."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from attacks.secured import Secured
from attacks.wire import Raw, call, post, raw
from harness.report import Report, expect, expect_equal, until

DONE = {"Outcome": "Done", "Output": {"Score": 7}}
EVIL = {"Outcome": "Done", "Output": {"Score": 666}}
# The head of a token: number of the key, order, direction. Then the step, and 32 bytes of signature.
DIRECTION_AT = 17
MAC_BYTES = 32
BODY_BYTES_MAX = 128 * 1024


class Addresses:
    """Callback addresses (rule 38)."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.id, self.token = "", ""

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        self.id = self.secured.order()
        self.token = self.secured.services.token(self.id, "check")
        report.check("a Host or a forwarded host of a request gets into no address", self.hosts)
        report.check("an address with any one character changed is 401", self.changed)
        report.check(
            "an address of another order, step, direction or key, by the same signature, is 401", self.of_others
        )
        report.check("an address in another form, cut, longer or made from nothing is 401 or 404", self.forms)
        report.check(
            "a result with further members, another outcome, twice as large or as a GET is refused", self.bodies
        )
        report.check("a caller's token adds nothing to an address, and is not needed", self.callers)
        report.check("the first result counts: a repeat with another body changes nothing", self.replay)
        report.check("no address and no key for addresses is in answers, log or data that a reader sees", self.secret)

    def hosts(self) -> None:
        """The service would post its result to the attacker."""
        for headers in (
            (),
            ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher", "Forwarded: host=evil.example"),
        ):
            lines = [*self.secured.bearer("application"), *headers]
            answer = raw(self.secured.port, post("/orders", "{}", *lines, host="localhost:1"))
            order = str(answer.document["OrderID"])
            self.secured.services.token(order, "check")
            address = self.secured.services.addresses[f"{order}/check"]
            expect(address.startswith(f"{self.secured.server.url}/callbacks/"), address)
            expect(f"location: /orders/{order}\r\n" in answer.text.lower(), answer.text)

    def tell(self, token: str, body: object, *headers: str) -> Raw:
        """A post to the address of a call."""
        return raw(
            self.secured.port,
            post(f"/callbacks/{token}", body if isinstance(body, str) else json.dumps(body), *headers),
        )

    def state(self, step: str, order: str | None = None) -> str:
        """The state of a step."""
        return str(self.secured.step(order or self.id, step)["ProcessState"])

    def expect_refused(self, tokens: list[str], *statuses: int) -> None:
        """None of them is an address, and the step waits."""
        for token in tokens:
            answer = self.tell(token, EVIL)
            expect(answer.status in (statuses or (401,)), f"{token}: {answer.status} {answer.body}")
        expect_equal("the step", self.state("check"), "Processing")

    def changed(self) -> None:
        """The last character has bits that stand for nothing."""
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        others = [letters[(letters.index(c) + 1) % 64] for c in self.token]
        self.expect_refused([self.token[:at] + other + self.token[at + 1 :] for at, other in enumerate(others)])
        self.expect_refused([self.token[:-1] + c for c in letters if c != self.token[-1]])

    def of_others(self) -> None:
        """Who has one address makes the others of it."""
        data = base64.urlsafe_b64decode(self.token + "=" * (-len(self.token) % 4))
        head, step, mac = data[: DIRECTION_AT + 1], data[DIRECTION_AT + 1 : -MAC_BYTES], data[-MAC_BYTES:]
        expect_equal("the step in it", step, b"check")
        other = bytes.fromhex(self.secured.order().replace("-", ""))
        made = [head[:1] + other + head[17:] + step + mac, head + b"stripe" + mac, head + b"approve" + mac, head + mac]
        made += [head[:DIRECTION_AT] + bytes([direction]) + step + mac for direction in (1, 2, 3, 4, 255)]
        made += [bytes([(head[0] + 1) % 256]) + head[1:] + step + mac, bytes([255]) + head[1:] + step + mac]
        made += [head + step + bytes(MAC_BYTES), head + step, mac, head + step + mac[:16], head + step + mac + mac]
        made += [
            head + step + hmac.digest(key, head + step, hashlib.sha256) for key in (b"", b"secret", bytes(32), mac)
        ]
        self.expect_refused([base64.urlsafe_b64encode(one).decode().rstrip("=") for one in made])

    def forms(self) -> None:
        """One address has one form."""
        token = self.token
        self.expect_refused(
            [token + "=", token + "==", token[:-1], token[1:], token + "A", token.swapcase(), token * 30, f"{token}%00"]
        )
        self.expect_refused(
            ["", "x", "%00", "..", f"{token}.", f"%{ord(token[0]):x}{token[1:]}", f"{token};x", "A" * 20_000]
        )
        self.expect_refused([f"{token}/", f"{token}/result", f"/{token}", f"{token}/heartbeat/", f"x/../{token}"], 404)

    def bodies(self) -> None:
        """By the right address."""
        for body in (
            {},
            {"Outcome": "done"},
            {"Outcome": "Undone"},
            DONE | {"Code": "x"},
            DONE | {"Step": "approve"},
            [DONE],
            "{",
            {"Outcome": "No"},
        ):
            expect_equal(f"{body}", self.tell(self.token, body).status, 400)
        for body in (
            {"Outcome": "No", "Code": "x" * 9_000},
            {"Outcome": "No", "Code": 1},
            '{"Outcome":"Done","Output":' + "[" * 90 + "]" * 90 + "}",
        ):
            expect_equal(f"{body}"[:60], self.tell(self.token, body).status, 400)
        expect_equal("large", self.tell(self.token, {"Outcome": "Done", "Output": "x" * BODY_BYTES_MAX}).status, 413)
        expect_equal("as HTML", self.tell(self.token, DONE, "Content-Type: text/html").status, 415)
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            expect_equal(method, raw(self.secured.port, call(method, f"/callbacks/{self.token}")).status, 405)
        expect_equal("of a page", self.tell(self.token, DONE, "Sec-Fetch-Site: cross-site").status, 403)
        expect_equal("the step", self.state("check"), "Processing")

    def callers(self) -> None:
        """An address proves itself."""
        forged = self.token[:20] + ("A" if self.token[20] != "A" else "B") + self.token[21:]
        expect_equal("an administrator", self.tell(forged, EVIL, *self.secured.bearer("administrator")).status, 401)
        expect_equal("nobody", self.tell(f"{self.token}/heartbeat", "", *self.secured.bearer("nobody")).status, 202)

    def replay(self) -> None:
        """Whoever sees it on its way sends another."""
        expect_equal("the first", self.tell(self.token, DONE).status, 202)
        until("it counts", lambda: self.state("check") == "Processed")
        for body in (EVIL, DONE, {"Outcome": "No", "Code": "evil"}):
            answer = self.tell(self.token, body)
            expect_equal(f"{body}", (answer.status, answer.document["Taken"]), (200, False))
        step = self.secured.step(self.id, "check")
        expect_equal("the step", (step["ProcessState"], step["Output"]), ("Processed", {"Score": 7}))

    def secret(self) -> None:
        """Who has one of them tells any result."""
        paths = [
            f"/orders/{self.id}",
            f"/orders/{self.id}/document",
            "/configuration",
            "/workflows",
            "/workflows/paid/1",
            "/metrics",
        ]
        paths += ["/services", "/alerts", "/dead-letters", "/overview", "/orders?with=index", "/numbers?last=30m"]
        texts = {path: self.secured.ask("administrator", "GET", path).text for path in paths}
        texts["log"] = self.secured.server.log()
        texts["audit"] = self.secured.run("audit", "--data", str(self.secured.server.data)).stdout.decode()
        expect(self.id in texts["audit"], texts["audit"][:200])
        texts["404"] = self.tell(f"{self.token}/nothing", DONE).text
        for place, text in texts.items():
            expect(
                self.token not in text and "CallbackKeys" not in text and '"Secret"' not in text,
                f"{place}: {text[:300]}",
            )
