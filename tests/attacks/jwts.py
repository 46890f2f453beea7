"""Tokens of an issuer (JWT) by other keys than its own, and issuers that do what they may not.

Which claims and headers a token may have is a matter of `serve/callers/tests`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.issuer import AUDIENCE, DISCOVERY, Keys, encoded, joined
from attacks.secured import Secured
from attacks.wire import get, raw
from harness.report import Suite, expect, expect_equal
from harness.serve import Server

KINDS = ("RS256", "ES256", "EdDSA")
# Unknown keys in one flood. They may cost one fetch, of two documents.
UNKNOWN = 100
WRONG_ANSWER_S_MAX = 15.0


class Jwts(Suite):
    """Callers by tokens of an issuer."""

    def __init__(self, secured: Secured, scratch: Path) -> None:
        self.secured, self.issuer, self.scratch = secured, secured.issuer, scratch

    def status(self, token: str) -> int:
        """The status of a read with this token."""
        return raw(self.secured.port, get("/overview", f"Authorization: Bearer {token}")).status

    def expect_refused(self, *tokens: str) -> None:
        """Each is of nobody."""
        for token in tokens:
            expect_equal(token[:200], self.status(token), 401)

    def test_hmac(self) -> None:
        """HMAC with the public key, or a key of the issuer that is no secret, is 401."""
        jwk, pem = self.issuer.keys.public()[0], self.issuer.keys.pem()
        der = base64.b64decode("".join(pem.decode().splitlines()[1:-1]))
        secrets = [pem, pem.strip(), pem.replace(b"\n", b"\r\n"), der, jwk["n"].encode(), json.dumps(jwk).encode()]
        for secret in (*secrets, b"", b"shared"):
            for algorithm, hashed in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
                for kid in ("RS256", "shared", "ES256"):
                    text = joined({"alg": algorithm, "kid": kid}, self.issuer.claims())
                    self.expect_refused(f"{text}.{encoded(hmac.digest(secret, text.encode(), hashed))}")

    def test_other_kind(self) -> None:
        """A key of another kind, for encryption, or for another algorithm is 401. Good tokens of each kind are taken."""
        for kind, kid in itertools.product(KINDS, KINDS):
            for algorithm in (*KINDS, "RS384", "PS256", "ES384", "RS512"):
                token = self.issuer.signed(kind, {"alg": algorithm, "kid": kid}, self.issuer.claims())
                expected = 200 if kind == kid == algorithm else 401
                expect_equal(f"{algorithm} by {kind}, which is called {kid}", self.status(token), expected)
        self.expect_refused(self.issuer.signed("RS256", {"alg": "RS256", "kid": "secret"}, self.issuer.claims()))

    def test_own_key(self) -> None:
        """A key that the token brings (jwk, jku, x5c, x5u) is 401, and nobody fetches it."""
        asked = len(self.issuer.calls)
        keys, url = Keys(), f"{self.issuer.url}/attacker/keys"
        public = keys.public()[0] | {"kid": "RS256"}
        chain = {"x5c": [encoded(keys.pem())]}
        for more in ({"jwk": public}, {"jku": url}, {"x5u": url}, chain, {"jku": "file:///etc/passwd"}):
            for kid in ({"kid": "RS256"}, {"kid": url}, {}):
                text = joined({"alg": "RS256", **kid, **more}, self.issuer.claims())
                self.expect_refused(f"{text}.{encoded(keys.signature('RS256', text.encode()))}")
        expect_equal("fetches of it", self.issuer.asked("/attacker"), 0)
        expect(len(self.issuer.calls) - asked <= 2, f"{self.issuer.calls[asked:]}")

    def test_bytes(self) -> None:
        """Zeros for a signature, one in another form, deep or broken JSON, and a token of 40 KB are 401."""
        claims, header = json.dumps(self.issuer.claims()), '{"alg":"RS256","kid":"RS256"}'
        for kind in KINDS:
            head, payload, signature = self.issuer.token(kind).split(".")
            size = len(base64.urlsafe_b64decode(signature + "=="))
            for made in (bytes(size), b"\xff" * size, bytes(size - 1) + b"\x01", bytes(size * 2)):
                self.expect_refused(f"{head}.{payload}.{encoded(made)}")
        text = joined({"alg": "ES256", "kid": "ES256"}, self.issuer.claims())
        r_and_s = self.issuer.keys.signature("ES256", text.encode())
        der = b"\x30\x44" + b"".join(b"\x02\x20" + part for part in (r_and_s[:32], r_and_s[32:]))
        self.expect_refused(f"{text}.{encoded(der)}", "a.b.c", "...", "a" * 20_000, "e30.e30.e30")
        for odd in ("[]", "null", '"x"', "{", claims + claims, "[" * 3_000, claims[:-1] + "," + '"a":' * 3_000):
            self.expect_refused(self.issuer.signed("RS256", header, odd))
        for odd in ("[]", "{}", '{"alg":["RS256"],"kid":"RS256"}', '{"alg":"none","alg":"RS256","kid":"RS256"}'):
            self.expect_refused(self.issuer.signed("RS256", odd, claims))
        expect(self.status(self.issuer.token(a="x" * 30_000)) in (401, 431), "a token of 40 KB")

    def test_flood(self) -> None:
        """A hundred tokens with unknown keys make one fetch at most."""
        before = len(self.issuer.calls)
        with ThreadPoolExecutor(16) as pool:
            tokens = [self.issuer.token(header={"kid": f"unknown-{number}"}) for number in range(UNKNOWN)]
            expect_equal("their statuses", set(pool.map(self.status, tokens)), {401})
        expect(len(self.issuer.calls) - before <= 2, f"{self.issuer.calls[before:]}")
        expect_equal("a known one", self.status(self.issuer.token()), 200)

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

        many = [{"kid": "x", "kty": "oct", "k": "eA"}] * 100 + self.issuer.keys.public()
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
