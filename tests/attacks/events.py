"""Events that no provider sent: forged, altered, old, and about the steps of others."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

from attacks.addresses import BODY_BYTES_MAX, DONE, EVIL
from attacks.secured import Secured
from attacks.wire import Raw, call, get, post, raw
from callbacks.webhooks import SCHEMES, Headers, Scheme, event
from harness.report import Report, expect, expect_equal, until

SIGNATURES_MAX = 8


class Events:
    """Webhooks (rule 41)."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.id = ""

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        self.id = self.secured.order()
        for scheme in SCHEMES.values():
            name = scheme.name
            report.check(
                f"{name}: an event that is unsigned, or signed with another secret, is 401",
                lambda scheme=scheme: self.unsigned(scheme),
            )
            report.check(
                f"{name}: an event with one byte changed, or its signature in another form, is 401",
                lambda scheme=scheme: self.altered(scheme),
            )
            report.check(
                f"{name}: forged headers twice, and too many signatures, are 401", lambda scheme=scheme: self.doubled(scheme)
            )
            report.check(
                f"{name}: a genuine event counts once, and a repeat of it changes nothing",
                lambda scheme=scheme: self.once(scheme),
            )
        report.check("an old, future, negative or odd time of an event is 401, where it is signed", self.times)
        report.check("a provider tells no result of another provider's step, nor on another's path", self.other_agents)
        report.check(
            "an event about an order, step or key that is none, or an injected one, changes nothing", self.odd_keys
        )
        report.check("a webhook of no agent, by a dotted path or another method is 404 or 405", self.odd_paths)
        report.check(
            "a signed event of a page of another site or another Host, or too large, is refused", self.odd_senders
        )

    def state(self, step: str) -> str:
        """The state of a step."""
        return str(self.secured.step(self.id, step)["ProcessState"])

    def send(self, scheme: Scheme, body: bytes, headers: Headers | list[str], agent: str | None = None) -> Raw:
        """An event."""
        lines = headers if isinstance(headers, list) else [f"{name}: {value}" for name, value in headers.items()]
        return raw(self.secured.port, post(f"/webhooks/{agent or scheme.agent}", body, *lines))

    def event(self, scheme: Scheme) -> bytes:
        """An event that would end the step of this scheme."""
        return event(f"{self.id}/{scheme.name}", EVIL)

    def expect_forged(self, scheme: Scheme, body: bytes, headers: Headers | list[str]) -> None:
        """It is not believed."""
        answer = self.send(scheme, body, headers)
        expect_equal(f"{headers}"[:200], answer.status, 401)

    def unsigned(self, scheme: Scheme) -> None:
        """By somebody who knows the order."""
        body = self.event(scheme)
        for headers in ({}, scheme.forged(body), scheme.sign(scheme.secret, b"", int(time.time()))):
            self.expect_forged(scheme, body, headers)
        for other in SCHEMES.values():
            if other is not scheme:
                self.expect_forged(scheme, body, other.signed(body))
        for secret in (
            "",
            "whsec_",
            "whsec_AAAA",
            scheme.secret.upper() if scheme.secret.islower() else "whsec_" + "A" * 32,
        ):
            self.expect_forged(scheme, body, scheme.sign(secret, body, int(time.time())))
        expect_equal("the step", self.state(scheme.name), "Processing")

    def altered(self, scheme: Scheme) -> None:
        """The bytes are signed, and not what they mean."""
        body = self.event(scheme)
        for other in (
            body + b" ",
            b" " + body,
            body.replace(b'": "', b'":"'),
            body.replace(b"666", b"667"),
            body[:-1],
            b"",
            b"{}",
        ):
            self.expect_forged(scheme, other, scheme.signed(body))
        changes: list[Callable[[str], str]] = [
            lambda v: v[:-2],
            lambda v: v + "A",
            str.upper,
            lambda v: v.replace("v1", "v0"),
            lambda v: v.replace("v1", "v1a"),
        ]
        changes += [
            lambda v: v.replace("sha256=", "sha1="),
            lambda v: v.replace("sha256=", ""),
            lambda _: "",
            lambda v: v.split(",")[0],
            lambda v: v.replace(",", ";"),
        ]
        for change in changes:
            headers = scheme.signed(body)
            name = next(name for name in headers if "signature" in name.lower())
            if change(headers[name]) != headers[name]:
                self.expect_forged(scheme, body, headers | {name: change(headers[name])})
        expect_equal("the step", self.state(scheme.name), "Processing")

    def doubled(self, scheme: Scheme) -> None:
        """One right signature counts, and no number of guesses does."""
        body = self.event(scheme)
        bad = [f"{name}: {value}" for name, value in scheme.forged(body).items()]
        # A bad signature beside a good one spoils nothing (rule 41), so what is forged alone must not count.
        self.expect_forged(scheme, body, bad + bad)
        headers, name = scheme.signed(body), next(iter(scheme.signed(body)))
        if scheme.name == "stripe":
            time_part, signature = headers[name].split(",")
            guesses = ",".join(["v1=" + "0" * 64] * SIGNATURES_MAX)
            self.expect_forged(scheme, body, {name: f"{time_part},{guesses},{signature}"})
            self.expect_forged(scheme, body, {name: f"t=1,{time_part},{signature}"})
        if scheme.name == "standard-webhooks":
            guesses = " ".join(["v1," + base64.b64encode(bytes(32)).decode()] * SIGNATURES_MAX)
            self.expect_forged(
                scheme, body, headers | {"webhook-signature": f"{guesses} {headers['webhook-signature']}"}
            )
        expect_equal("the step", self.state(scheme.name), "Processing")

    def once(self, scheme: Scheme) -> None:
        """Recorded on its way, it comes again."""
        body = event(f"{self.id}/{scheme.name}", DONE)
        headers = scheme.signed(body)
        expect_equal("the event", self.send(scheme, body, headers).status, 202)
        until("it counts", lambda: self.state(scheme.name) == "Processed")
        before = self.secured.step(self.id, scheme.name)
        for repeated, signed in ((body, headers), (self.event(scheme), scheme.signed(self.event(scheme)))):
            answer = self.send(scheme, repeated, signed)
            expect_equal("a repeat", (answer.status, answer.document["Taken"]), (200, False))
        expect_equal("the step", self.secured.step(self.id, scheme.name), before)

    def times(self) -> None:
        """Five minutes are allowed."""
        self.id = self.secured.order()
        now = int(time.time())
        for scheme in (scheme for scheme in SCHEMES.values() if scheme.has_time):
            body = self.event(scheme)
            for age in (-400, 400, now, now + 1, -(2**40), -(2**62), -(2**64)):
                self.expect_forged(scheme, body, scheme.sign(scheme.secret, body, now - age))
            for odd in (f"+{now}", f"{now}.0", f"0x{now:x}", "", "now", f"{now}e0", "-1"):
                good = scheme.signed(body)
                self.expect_forged(
                    scheme,
                    body,
                    {
                        name: value.replace(str(now), odd) if str(now) in value else odd
                        for name, value in good.items()
                        if name != "webhook-signature"
                    }
                    | {name: value for name, value in good.items() if name == "webhook-signature"},
                )
            expect_equal("the step", self.state(scheme.name), "Processing")

    def other_agents(self) -> None:
        """All of them are known to the attacker but for one secret."""
        for scheme in SCHEMES.values():
            for other in (other for other in SCHEMES.values() if other is not scheme):
                body = self.event(other)
                answer = self.send(scheme, body, scheme.signed(body))
                expect_equal("of another step", (answer.status, answer.document["Taken"]), (200, False))
                expect_equal("on another path", self.send(scheme, body, scheme.signed(body), other.agent).status, 401)
            body = event(f"{self.id}/check", EVIL)
            expect_equal("of a service", self.send(scheme, body, scheme.signed(body)).document["Taken"], False)
            body = event(f"{self.id}/approve", EVIL)
            expect_equal("of people", self.send(scheme, body, scheme.signed(body)).document["Taken"], False)
        states = {step["Name"]: step["ProcessState"] for step in self.secured.task(self.id)["Steps"]}
        expect_equal("the steps", set(states.values()), {"Processing"})

    def odd_keys(self) -> None:
        """What it names comes from outside."""
        scheme = SCHEMES["github"]
        for key in (
            "",
            "/",
            "x/pay",
            f"{self.id}",
            f"{self.id}/",
            f"{self.id}/nothing",
            f"{self.id}/github/undo",
            f"{self.id}/github/undo/undo",
            f"/{self.id}/github",
            f"{self.id}/github\0",
            f"{self.id}/../{self.id}/github",
            f"{self.id}/GITHUB",
            "a" * 50_000,
            "\ud800",
        ):
            body = event(key, EVIL)
            answer = self.send(scheme, body, scheme.signed(body))
            expect_equal(f"{key!r}"[:80], (answer.status, answer.document["Taken"]), (200, False))
        for body in (b"{", b"[]", b"\xff", b'{"type":"payment.succeeded"}', b"[" * 100 + b"]" * 100):
            expect(self.send(scheme, body, scheme.signed(body)).status in (200, 400), f"{body!r}")
        expect_equal("the step", self.state("github"), "Processing")

    def odd_paths(self) -> None:
        """Webhooks know no callers, so nothing else may be behind them."""
        scheme = SCHEMES["github"]
        body = self.event(scheme)
        own = scheme.agent
        odd = ["", "kyc", "nobody", "..", "../orders", "%2e%2e/orders", f"{own}/", f"{own}/..", f"{own}%00"]
        for agent in (*odd, own.upper(), f"%6c{own[1:]}"):
            answer = raw(
                self.secured.port,
                post(f"/webhooks/{agent}", body, *(f"{n}: {v}" for n, v in scheme.signed(body).items())),
            )
            expect(answer.status == 404, f"{agent}: {answer.status}")
        for method in ("GET", "HEAD", "PUT", "OPTIONS", "TRACE"):
            expect_equal(method, raw(self.secured.port, call(method, f"/webhooks/{scheme.agent}")).status, 405)
        expect_equal("without callers", raw(self.secured.port, get("/webhooksx")).status, 404)

    def odd_senders(self) -> None:
        """Signed as it should be."""
        scheme = SCHEMES["github"]
        body = self.event(scheme)
        lines = [f"{name}: {value}" for name, value in scheme.signed(body).items()]
        path = f"/webhooks/{scheme.agent}"
        expect_equal("another Host", raw(self.secured.port, post(path, body, *lines, host="evil.example")).status, 421)
        large = body[:-1] + b" " * BODY_BYTES_MAX + b"}"
        expect_equal("large", self.send(scheme, large, scheme.signed(large)).status, 413)
        expect_equal("the step", self.state("github"), "Processing")
