"""An issuer of tokens (JWT) that can do everything wrong, and its tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from harness.stub import Answer, Call, Stub

AUDIENCE = "orders"
DISCOVERY = "/.well-known/openid-configuration"


def encoded(data: bytes) -> str:
    """Base64 for URLs, without its padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value: int) -> str:
    """A number of a key."""
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Keys:
    """One key of each kind."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65_537, 2_048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()

    def public(self) -> list[dict[str, Any]]:
        """As the issuer shows them, and a secret that is for no signature."""
        of_rsa, of_ec = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        x, y = (encoded(value.to_bytes(32, "big")) for value in (of_ec.x, of_ec.y))
        of_ed = self.ed.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return [
            {"kid": "RS256", "kty": "RSA", "use": "sig", "n": number(of_rsa.n), "e": number(of_rsa.e)},
            {"kid": "ES256", "kty": "EC", "crv": "P-256", "x": x, "y": y},
            {"kid": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": encoded(of_ed)},
            {"kid": "shared", "kty": "oct", "alg": "HS256", "k": encoded(b"shared")},
            {"kid": "secret", "kty": "RSA", "use": "enc", "n": number(of_rsa.n), "e": number(of_rsa.e)},
        ]

    def signature(self, algorithm: str, data: bytes) -> bytes:
        """By the key of this algorithm."""
        if algorithm == "RS256":
            return self.rsa.sign(data, padding.PKCS1v15(), hashes.SHA256())
        if algorithm == "EdDSA":
            return self.ed.sign(data)
        r, s = decode_dss_signature(self.ec.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def pem(self) -> bytes:
        """The public key for RS256, as files have it."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.rsa.public_key().public_bytes(serialization.Encoding.PEM, form)


def joined(header: dict[str, Any] | str, claims: dict[str, Any] | str) -> str:
    """The signed part of a token; texts are taken as they are."""
    texts = [part if isinstance(part, str) else json.dumps(part) for part in (header, claims)]
    return ".".join(encoded(text.encode()) for text in texts)


class Issuer(Stub):
    """Serves its two documents. Below `/NAME` is one that does something wrong, by `wrong`."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.wrong: dict[str, Callable[[], Answer]] = {}
        super().__init__()

    def asked(self, path: str) -> int:
        """How often something below a path was asked for."""
        return sum(call.path.startswith(path) for call in self.calls)

    def answer(self, call: Call) -> Answer:
        """One of the documents, or what is wrong."""
        if call.path in self.wrong:
            return self.wrong[call.path]()
        name = call.path.removesuffix(DISCOVERY).removesuffix("/keys")
        if call.path.endswith(DISCOVERY):
            return 200, {"issuer": self.url + name, "jwks_uri": f"{self.url}{name}/keys"}
        return 200, {"keys": self.keys.public()}

    def claims(self, **changed: object) -> dict[str, Any]:
        """Those of a good token of a viewer; a claim that is `None` is left out."""
        now = int(time.time())
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "vera", "roles": ["viewer"], "iat": now, "exp": now + 600}
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, algorithm: str = "RS256", header: dict[str, Any] | None = None, **changed: object) -> str:
        """A token that is signed as its header says, with these claims changed."""
        return self.signed(algorithm, {"alg": algorithm, "kid": algorithm, **(header or {})}, self.claims(**changed))

    def signed(self, algorithm: str, header: dict[str, Any] | str, claims: dict[str, Any] | str) -> str:
        """A token by this key, whatever it says."""
        text = joined(header, claims)
        return f"{text}.{encoded(self.keys.signature(algorithm, text.encode()))}"
