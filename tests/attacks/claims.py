"""Tokens of an issuer (JWT) that say what they may not, and issuers that do what they may not."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attacks.issuer import AUDIENCE, DISCOVERY
from attacks.jwts import Jwts
from attacks.secured import Secured
from attacks.wire import get, raw
from harness.report import Report, expect, expect_equal
from harness.serve import Server

# Unknown keys in one flood. They may cost one fetch, of two documents.
UNKNOWN = 100
WRONG_ANSWER_S_MAX = 15.0


class Claims(Jwts):
    """Their claims, which the right key signed."""

    def __init__(self, secured: Secured, scratch: Path) -> None:
        super().__init__(secured)
        self.scratch = scratch

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("an expired token, or one without an end, of the future or of an odd time is 401", self.times)
        report.check("a token of another issuer or for another API is 401", self.others)
        report.check("a sub that is no name, such as local or a text with brackets, is 401", self.subjects)
        report.check(
            "roles of another form or spelling are none: 401; unknown ones beside a role add nothing", self.roles
        )
        report.check("reply_channels of another form is 401, and an empty list allows no channel", self.channels)
        report.check(f"{UNKNOWN} tokens with unknown keys make one fetch at most", self.flood)
        report.check(
            "an issuer that redirects, floods, stalls or lies gives nobody in, and holds nothing up", self.wrong_issuers
        )

    def times(self) -> None:
        """Clocks may differ by a minute."""
        now = int(time.time())
        bad: list[dict[str, Any]] = [
            {"exp": exp} for exp in (now - 120, 0, -1, None, "", "soon", str(now + 600), [now + 600], True, {})
        ]
        bad += [{"nbf": now + 600}, {"nbf": 2**60}]
        self.expect_refused(*(self.issuer.token(**claims) for claims in bad))
        expect_equal("within the minute", self.status(self.issuer.token(exp=now - 20, nbf=now + 20)), 200)

    def others(self) -> None:
        """They are good, elsewhere."""
        url = self.issuer.url
        for issuer in (
            f"{url}/",
            f"{url}/other",
            "https://login.example",
            "",
            None,
            [url + "x"],
            1,
            url.upper(),
            f"{url}\0",
        ):
            self.expect_refused(self.issuer.token(iss=issuer))
        for audience in (
            "other",
            "",
            None,
            ["other"],
            [],
            f"{AUDIENCE} ",
            AUDIENCE.upper(),
            "order",
            "orders,other",
            {"orders": 1},
            1,
        ):
            self.expect_refused(self.issuer.token(aud=audience))

    def subjects(self) -> None:
        """The name owns orders, and stands beside what people type."""
        odd = (
            "local",
            "anonymous",
            "",
            " ",
            "a [root]",
            "a]",
            "[a",
            "a b",
            "a\nb",
            "é",
            "a\0",
            "a" * 129,
            7,
            None,
            ["vera"],
            {"a": 1},
        )
        self.expect_refused(*(self.issuer.token(sub=subject) for subject in odd))

    def roles(self) -> None:
        """Only the names of the roles are roles."""
        odd = (
            [],
            "",
            None,
            1,
            True,
            {"viewer": True},
            "Viewer",
            "VIEWER",
            ["viewer "],
            "viewer,administrator",
            ["*"],
            "admin root",
            [["viewer"]],
            "viewer\0",
        )
        self.expect_refused(*(self.issuer.token(roles=roles) for roles in odd))
        self.expect_refused(
            self.issuer.token(roles=["viewer", 1]), self.issuer.token(roles=None, scope="viewer", groups=["viewer"])
        )
        token = self.issuer.token(roles=["viewer", "root", "administrator*"])
        asked = raw(self.secured.port, get("/orders", f"Authorization: Bearer {token}"))
        expect_equal("a viewer", asked.status, 200)
        answer = self.secured.ask(token, "POST", "/configuration", {})
        expect_equal("and no administrator", answer.status, 403)

    def channels(self) -> None:
        """They limit what the orders of the token may name."""
        for channels in (1, {"shop": True}, [1], None):
            claims = self.issuer.claims(roles=["application"]) | {"reply_channels": channels}
            token = self.issuer.signed("RS256", {"alg": "RS256", "kid": "RS256"}, claims)
            expect_equal(f"{channels}", self.secured.ask(token, "POST", "/orders", {}).status, 401)
        for channels, channel in (
            ([], "shop"),
            ("", "shop"),
            (["shop"], "other"),
            ("shop", "other"),
            ("shopother", "shop"),
        ):
            token = self.issuer.token(roles=["application"], reply_channels=channels)
            answer = self.secured.ask(token, "POST", "/orders", {"ReplyChannel": channel})
            expect(answer.status in (400, 403), f"{channels}: {answer.status}")

    def flood(self) -> None:
        """Anybody can send them."""
        before = self.issuer.asked.total()
        with ThreadPoolExecutor(16) as pool:
            tokens = [self.issuer.token(header={"kid": f"unknown-{number}"}) for number in range(UNKNOWN)]
            expect_equal("their statuses", set(pool.map(self.status, tokens)), {401})
        fetched = self.issuer.asked.total() - before
        expect(fetched <= 2, f"{fetched} documents")
        expect_equal("a known one", self.status(self.issuer.token()), 200)

    def wrong_issuers(self) -> str:
        """Each has a server of its own, which it keeps from nothing."""
        url, wrong = self.issuer.url, self.issuer.wrong
        elsewhere = f"{url}/elsewhere"

        def says(name: str, **document: object) -> None:
            wrong[f"/{name}{DISCOVERY}"] = (200, {}, json.dumps({"issuer": f"{url}/{name}", **document}).encode())

        wrong[f"/moved{DISCOVERY}"] = (302, {"Location": elsewhere + DISCOVERY}, b"")
        wrong["/moved-keys/keys"] = (307, {"Location": f"{elsewhere}/keys"}, b"")
        wrong[f"/large{DISCOVERY}"] = (200, {}, b'{"a":"' + b"x" * 2_000_000 + b'"}')
        wrong["/endless/keys"] = (200, {}, [b" " * 65_536] * 2_000)
        wrong[f"/slow{DISCOVERY}"] = (200, {}, [b" "] * 1_000)
        wrong["/many/keys"] = (
            200,
            {},
            json.dumps({"keys": [{"kid": "x", "kty": "oct", "k": "eA"}] * 100 + self.issuer.keys.public()}).encode(),
        )
        says("other", jwks_uri=f"{url}/other/keys", issuer=f"{url}/elsewhere")
        says("plain", jwks_uri="http://192.0.2.1/keys")
        says("file", jwks_uri="file:///etc/passwd")
        says("user", jwks_uri="http://127.0.0.1@192.0.2.1/keys")
        says("nothing")
        names = [
            "moved",
            "moved-keys",
            "large",
            "endless",
            "slow",
            "many",
            "other",
            "plain",
            "file",
            "user",
            "nothing",
            "good",
        ]

        def asked(name: str) -> tuple[str, int, float]:
            with Server(
                self.secured.program, self.scratch / name, "--jwt-issuer", f"{url}/{name}", "--jwt-audience", AUDIENCE
            ) as server:
                began = time.monotonic()
                token = self.issuer.token(iss=f"{url}/{name}")
                status = raw(server.port, get("/overview", f"Authorization: Bearer {token}")).status
                return name, status, time.monotonic() - began

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(asked, names))
        for name, status, seconds in results:
            expect_equal(name, status, 200 if name == "good" else 401)
            expect(seconds < WRONG_ANSWER_S_MAX, f"{name}: {seconds:.1f} s")
        expect_equal("followed", [path for path in self.issuer.asked if path.startswith("/elsewhere")], [])
        return f"the longest took {max(seconds for _, _, seconds in results):.1f} s"
