"""Tokens of an issuer (JWT): unsigned, signed with something else, for somebody else, of another time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from attacks.issuer import encoded, joined
from attacks.secured import Secured
from attacks.wire import get, raw
from harness.report import Report, expect, expect_equal

KINDS = ("RS256", "ES256", "EdDSA")


class Jwts:
    """Callers by tokens of an issuer."""

    def __init__(self, secured: Secured) -> None:
        self.secured, self.issuer = secured, secured.issuer

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("good tokens of each kind are taken, so that the others fail for their own reason", self.good)
        report.check("alg none, in any case, with a signature or without, is 401", self.unsigned)
        report.check("HMAC with the public key, or a key of the issuer that is no secret, is 401", self.hmac)
        report.check("a key of another kind, for encryption, or for another algorithm is 401", self.other_kind)
        report.check("a key that the token brings (jwk, jku, x5c, x5u) is 401, and nobody fetches it", self.own_key)
        report.check("a kid that is a path, a query, a list or missing is 401", self.kids)
        report.check("an altered token, zeros for a signature, or one in another form is 401", self.altered)
        report.check("critical headers, an unencoded body, and a token with other parts are 401", self.forms)

    def status(self, token: str) -> int:
        """The status of a read with this token."""
        return raw(self.secured.port, get("/overview", f"Authorization: Bearer {token}")).status

    def expect_refused(self, *tokens: str) -> None:
        """Each is of nobody."""
        for token in tokens:
            expect_equal(token[:200], self.status(token), 401)

    def good(self) -> None:
        """The first one fetches the keys."""
        for kind in KINDS:
            expect_equal(kind, self.status(self.issuer.token(kind)), 200)

    def unsigned(self) -> None:
        """The oldest of these attacks."""
        for algorithm in ("none", "None", "NONE", "nOnE", "", " none", "null"):
            for kid in ({}, {"kid": "RS256"}):
                text = joined({"alg": algorithm, "typ": "JWT", **kid}, self.issuer.claims())
                self.expect_refused(f"{text}.", text, f"{text}.{encoded(b'x')}")
        self.expect_refused(
            joined({"kid": "RS256"}, self.issuer.claims()) + ".", joined({"alg": None}, self.issuer.claims()) + "."
        )

    def hmac(self) -> None:
        """The public key is known to all."""
        jwk = self.issuer.keys.public()[0]
        pem = self.issuer.keys.pem()
        der = base64.b64decode("".join(pem.decode().splitlines()[1:-1]))
        secrets = [
            pem,
            pem.strip(),
            pem.replace(b"\n", b"\r\n"),
            der,
            jwk["n"].encode(),
            json.dumps(jwk).encode(),
            b"",
            b"shared",
        ]
        for secret in secrets:
            for algorithm, hashed in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
                for kid in ("RS256", "shared", "ES256"):
                    text = joined({"alg": algorithm, "kid": kid}, self.issuer.claims())
                    self.expect_refused(f"{text}.{encoded(hmac.digest(secret, text.encode(), hashed))}")

    def other_kind(self) -> None:
        """The key says the algorithm."""
        for kind in KINDS:
            for kid in KINDS:
                for algorithm in (*KINDS, "RS384", "PS256", "ES384", "RS512"):
                    token = self.issuer.signed(kind, {"alg": algorithm, "kid": kid}, self.issuer.claims())
                    expected = 200 if kind == kid == algorithm else 401
                    expect_equal(f"{algorithm} by {kind}, which is called {kid}", self.status(token), expected)
        self.expect_refused(self.issuer.signed("RS256", {"alg": "RS256", "kid": "secret"}, self.issuer.claims()))

    def own_key(self) -> None:
        """It is signed with a key of the attacker."""
        asked = self.issuer.asked.total()
        with_key = type(self.issuer.keys)()
        public = with_key.public()[0] | {"kid": "RS256"}
        url = f"{self.issuer.url}/attacker/keys"
        for more in (
            {"jwk": public},
            {"jku": url},
            {"x5u": url},
            {"x5c": [encoded(with_key.pem())]},
            {"jku": "file:///etc/passwd"},
        ):
            for kid in ({"kid": "RS256"}, {"kid": url}, {}):
                text = joined({"alg": "RS256", **kid, **more}, self.issuer.claims())
                self.expect_refused(f"{text}.{encoded(with_key.signature('RS256', text.encode()))}")
        expect_equal("fetches of it", [path for path in self.issuer.asked if "attacker" in path], [])
        expect(self.issuer.asked.total() - asked <= 2, f"{self.issuer.asked}")

    def kids(self) -> None:
        """It names a key in a list, and nothing else."""
        for kid in (
            "../../etc/passwd",
            "/dev/null",
            "' or '1'='1",
            "",
            "rs256",
            "RS256 ",
            "RS256\0",
            "*",
            ["RS256"],
            {"a": 1},
            0,
            None,
        ):
            self.expect_refused(self.issuer.token(header={"kid": kid}))
        self.expect_refused(self.issuer.signed("RS256", {"alg": "RS256"}, self.issuer.claims()))

    def altered(self) -> None:
        """What was signed counts, bit for bit."""
        for kind in KINDS:
            token = self.issuer.token(kind)
            header, payload, signature = token.split(".")
            other = joined("{}", self.issuer.claims(roles=["administrator"])).split(".")[1]
            size = len(base64.urlsafe_b64decode(signature + "=="))
            self.expect_refused(
                f"{header}.{other}.{signature}", f"{header}.{payload}.", f"{header}.{payload}.{signature[:-6]}"
            )
            for made in (bytes(size), b"\xff" * size, bytes(size - 1) + b"\x01", bytes(size * 2)):
                self.expect_refused(f"{header}.{payload}.{encoded(made)}")
            changed = ("B" if signature[10] == "A" else "A").join((signature[:10], signature[11:]))
            self.expect_refused(f"{header}.{payload}.{changed}", f"{token}=", f"{token}.", f".{token}", f"{token}!")
        text = joined({"alg": "ES256", "kid": "ES256"}, self.issuer.claims())
        r_and_s = self.issuer.keys.signature("ES256", text.encode())
        der = b"\x30\x44" + b"".join(b"\x02\x20" + part for part in (r_and_s[:32], r_and_s[32:]))
        self.expect_refused(f"{text}.{encoded(der)}")

    def forms(self) -> None:
        """As other standards have it."""
        self.expect_refused(
            self.issuer.token(header={"crit": ["exp"], "exp": 1}),
            self.issuer.token(header={"crit": ["b64"], "b64": False}),
        )
        claims, header = json.dumps(self.issuer.claims()), '{"alg":"RS256","kid":"RS256"}'
        for text in ("[]", "null", '"x"', "{", claims + claims, "[" * 3_000, claims[:-1] + "," + '"a":' * 3_000):
            self.expect_refused(self.issuer.signed("RS256", header, text))
        for text in (
            "[]",
            "{}",
            "null",
            '{"alg":["RS256"],"kid":"RS256"}',
            '{"alg":"none","alg":"RS256","kid":"RS256"}',
        ):
            self.expect_refused(self.issuer.signed("RS256", text, claims))
        self.expect_refused(
            "a.b.c", "..", "...", ".", "a" * 20_000, "e30.e30.e30", f"{encoded(b'{}')}.{encoded(b'{}')}."
        )
        expect(self.status(self.issuer.token(a="x" * 30_000)) in (401, 431), "a token of 40 KB")
