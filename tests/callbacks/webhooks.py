"""Events of a bank that are signed, each provider in its own way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Headers = dict[str, str]


def standard(secret: str, body: bytes, at: int) -> Headers:
    """Standard Webhooks."""
    identifier = f"msg_{hashlib.sha256(body).hexdigest()[:16]}"
    signed = f"{identifier}.{at}.".encode() + body
    signature = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256")
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def stripe(secret: str, body: bytes, at: int) -> Headers:
    """The header Stripe-Signature."""
    signature = hmac.digest(secret.encode(), f"{at}.".encode() + body, "sha256").hex()
    return {"Stripe-Signature": f"t={at},v1={signature}"}


def github(secret: str, body: bytes, _at: int) -> Headers:
    """The header X-Hub-Signature-256."""
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"}


@dataclass(frozen=True)
class Scheme:
    """One way to sign. Its name is that of an agent's service as well."""

    name: str
    secret: str
    sign: Callable[[str, bytes, int], Headers]

    @property
    def agent(self) -> str:
        """The agent whose payments it confirms."""
        return f"lender-{self.name}"

    @property
    def workflow(self) -> str:
        """The workflow of those orders."""
        return f"paid-by-{self.name}"

    def settings(self, url: str, folder: Path) -> str:
        """The table of the agent, whose secret is in a file in this folder."""
        file = folder / self.name
        file.write_text(f"{self.secret}\n")
        return (
            f'[agents.{self.agent}]\nurl = "{url}/{self.name}"\nsettles_within = "11s"\n'
            'forward.status = { 200 = "done" }\n'
            f'[agents.{self.agent}.webhook]\nsecret = "file:{file}"\nscheme = "{self.name}"\n'
            'key = "/data/metadata/key"\nevent = "/type"\ndone = ["payment.succeeded"]\nno = ["payment.failed"]\n'
            'working = ["payment.processing"]\ncode = "/data/failure_code"\nmessage = "/data/failure_message"\n'
            'output = "/data/payment"\n'
        )

    def signed(self, body: bytes) -> Headers:
        """The headers of an event that is sent now."""
        return self.sign(self.secret, body, int(time.time()))


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", standard),
        Scheme("stripe", "of-the-suite-stripe", stripe),
        Scheme("github", "of-the-suite-github", github),
    )
}


def event(key: str, result: dict[str, Any] | None) -> bytes:
    """The body of an event: a result as a callback would tell it, or that the payment is being processed."""
    data: dict[str, Any] = {"metadata": {"key": key}}
    if result is None:
        name = "payment.processing"
    elif result["Outcome"] == "Done":
        name = "payment.succeeded"
        data["payment"] = result.get("Output", {})
    else:
        name = "payment.failed"
        data |= {"failure_code": result["Code"], "failure_message": result.get("Message")}
    return json.dumps({"type": name, "data": data}).encode()
