"""An issuer of tokens (JWT) that can do everything wrong, and its tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from harness.stub import Answer, Call, Stub

AUDIENCE = "orders"
DISCOVERY = "/.well-known/openid-configuration"


def encoded(data: bytes) -> str:
    """Base64 for URLs, without its padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value: int) -> str:
    """A number of a key."""
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer(Stub):
    """Serves its two documents. Below `/NAME` is one that does something wrong, by `wrong`."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65_537, 2_048)
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
        return 200, {"keys": [self.public()]}

    def public(self) -> dict[str, str]:
        """Its key, as it shows it."""
        numbers = self._key.public_key().public_numbers()
        return {"kid": "RS256", "kty": "RSA", "use": "sig", "n": number(numbers.n), "e": number(numbers.e)}

    def claims(self, **changed: object) -> dict[str, Any]:
        """Those of a good token of a viewer; a claim that is `None` is left out."""
        now = int(time.time())
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "vera", "roles": ["viewer"], "iat": now, "exp": now + 600}
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, **changed: object) -> str:
        """A token with these claims changed."""
        parts = ({"alg": "RS256", "kid": "RS256"}, self.claims(**changed))
        text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{encoded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
