"""The HTTP API of a deployment, for a caller with keys: signed requests, decoded answers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from harness.calls import Answer, call, encoded
from harness.deployment import Deployment, client
from harness.emulator import REGION
from harness.report import not_stopped

# An answer may be waited for on purpose, `Prefer: wait=20` at most.
ANSWER_S_MAX = 40


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
        return self.call("POST", path, encoded(body), headers or {})

    def call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """One call, whatever its status."""
        not_stopped()
        sent = {"Content-Type": "application/json", **headers}
        if self.keys is not None:
            unsigned = AWSRequest(method=method, url=self.base + path, data=body or b"", headers=sent)
            SigV4Auth(self.keys, "execute-api", REGION).add_auth(unsigned)
            sent = dict(unsigned.headers)
        return call(method, self.base + path, body, sent, ANSWER_S_MAX)


def caller(deployment: Deployment, name: str, *policy_outputs: str) -> ApiClient:
    """A user of the account, new unless there is one, who gets the rights of these deployed policies."""
    iam = client(deployment.emulator, "iam")
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_user(UserName=name)
    for output in policy_outputs:
        iam.attach_user_policy(UserName=name, PolicyArn=deployment.outputs[output])
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return ApiClient(deployment.api_url, Credentials(key["AccessKeyId"], key["SecretAccessKey"]))
