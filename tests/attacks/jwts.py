"""Issuers of tokens (JWT) that do what they may not. Which tokens are good is a matter of `serve/callers/tests`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.issuer import AUDIENCE, DISCOVERY
from attacks.secured import Secured
from attacks.wire import get, raw
from harness.report import Suite, expect, expect_equal
from harness.serve import Server

WRONG_ANSWER_S_MAX = 15.0


class Jwts(Suite):
    """Callers by tokens of an issuer."""

    def __init__(self, secured: Secured, scratch: Path) -> None:
        self.secured, self.issuer, self.scratch = secured, secured.issuer, scratch

    def test_wrong_issuers(self) -> str:
        """An issuer that redirects, floods, stalls or lies gives nobody in, and holds nothing up."""
        url, wrong = self.issuer.url, self.issuer.wrong
        elsewhere = f"{url}/elsewhere"

        def says(name: str, **document: object) -> None:
            wrong[f"/{name}{DISCOVERY}"] = lambda: (200, {"issuer": f"{url}/{name}", **document})

        def parts(part: bytes, count: int) -> Iterator[bytes]:
            for _ in range(count):
                yield part
                time.sleep(0.02)

        many = [{"kid": "x", "kty": "oct", "k": "eA"}] * 100 + [self.issuer.public()]
        wrong[f"/moved{DISCOVERY}"] = lambda: (302, {}, {"Location": elsewhere + DISCOVERY})
        wrong["/moved-keys/keys"] = lambda: (307, {}, {"Location": f"{elsewhere}/keys"})
        wrong[f"/large{DISCOVERY}"] = lambda: (200, {"a": "x" * 2_000_000})
        wrong["/endless/keys"] = lambda: (200, parts(b" " * 65_536, 2_000))
        wrong[f"/slow{DISCOVERY}"] = lambda: (200, parts(b" ", 1_000))
        wrong["/many/keys"] = lambda: (200, {"keys": many})
        says("other", jwks_uri=f"{url}/other/keys", issuer=f"{url}/elsewhere")
        says("plain", jwks_uri="http://192.0.2.1/keys")
        says("file", jwks_uri="file:///etc/passwd")
        says("user", jwks_uri="http://127.0.0.1@192.0.2.1/keys")
        says("nothing")

        def asked(name: str) -> tuple[str, int, float]:
            options = ("--jwt-issuer", f"{url}/{name}", "--jwt-audience", AUDIENCE)
            with Server(self.secured.program, self.scratch / name, *options) as server:
                began = time.monotonic()
                token = self.issuer.token(iss=f"{url}/{name}")
                status = raw(server.port, get("/overview", f"Authorization: Bearer {token}")).status
                return name, status, time.monotonic() - began

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(asked, [*(path.split("/")[1] for path in wrong), "good"]))
        for name, status, seconds in results:
            expect_equal(name, status, 200 if name == "good" else 401)
            expect(seconds < WRONG_ANSWER_S_MAX, f"{name}: {seconds:.1f} s")
        expect_equal("followed", self.issuer.asked("/elsewhere"), 0)
        return f"the longest took {max(seconds for _, _, seconds in results):.1f} s"
