"""The HTTP API of a deployment, for a caller with keys: signed requests, decoded answers."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from harness.deployment import Deployment, client
from harness.emulator import REGION
from harness.report import not_stopped

# An answer may be waited for on purpose, `Prefer: wait=20` at most.
ANSWER_S_MAX = 40


@dataclass(frozen=True)
class Answer:
    """The answer to a call."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ApiClient:
    """Calls the API as one caller; without keys the calls are not signed."""

    base: str
    keys: Credentials | None

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """GET."""
        return self.call("GET", path, None, headers or {})

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Answer:
        """POST of a JSON document, or of bytes as they are."""
        return self.call("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers or {})

    def call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """One call, whatever its status."""
        not_stopped()
        sent = {**headers, **({"Content-Type": "application/json"} if body is not None else {})}
        url = self.base + path
        if self.keys is not None:
            unsigned = AWSRequest(method=method, url=url, data=body or b"", headers=sent)
            SigV4Auth(self.keys, "execute-api", REGION).add_auth(unsigned)
            sent = dict(unsigned.headers)
        request = urllib.request.Request(url, data=body, headers=sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S_MAX) as response:
                return answer(response.status, response.read(), response.headers)
        except urllib.error.HTTPError as refused:
            return answer(refused.code, refused.read(), refused.headers)


def answer(status: int, body: bytes, headers: Any) -> Answer:
    """Decodes a response; a body that is no JSON stays text."""
    text = body.decode(errors="replace")
    try:
        decoded = json.loads(text) if text else None
    except ValueError:
        decoded = text
    return Answer(status, decoded, {name.lower(): value for name, value in headers.items()})


def caller(deployment: Deployment, name: str, *policy_outputs: str) -> ApiClient:
    """A user of the account, new unless there is one, who gets the rights of these deployed policies."""
    iam = client(deployment.emulator, "iam")
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_user(UserName=name)
    for output in policy_outputs:
        iam.attach_user_policy(UserName=name, PolicyArn=deployment.outputs[output])
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return ApiClient(deployment.api_url, Credentials(key["AccessKeyId"], key["SecretAccessKey"]))
