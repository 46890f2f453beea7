"""A server that knows its callers in every way, with the services that its orders need, and the people who call it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from attacks.issuer import AUDIENCE, Issuer
from attacks.wire import Raw, call, post, raw
from harness.report import expect_equal, until
from harness.serve import Server, folder, run
from harness.stub import Answer, Call, Stub

ROLES = ("application", "viewer", "operator", "approver", "administrator")
# The callers by their tokens: one for each role, and a second application.
PEOPLE = {**{role: role for role in ROLES}, "other": "application"}
# The only address of which a proxy is believed.
PROXY = "127.0.0.2"
NAMED_BY = ("X-Forwarded-User", "X-Forwarded-Roles")
SETTINGS = """default = "paid"
[agents.kyc]
url = "{url}/kyc"
settles_within = "11s"
"""
# Nothing of its orders ends without a word from outside.
STEPS = """name = "paid"
version = 1
[[step]]
name = "check"
agent = "kyc"
wait_within = "1h"
"""


class Services(Stub):
    """Takes every call on with a 202, and undoes at once."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """Keeps the address for the result."""
        if "Callback-Url" in call.headers:
            self.addresses[call.key] = call.headers["Callback-Url"]
        return (200 if call.key.endswith("/undo") else 202), {}

    def token(self, order_id: str, step: str) -> str:
        """The token of the address that a call gave."""
        key = f"{order_id}/{step}"
        return until(f"a call of {key}", lambda: self.addresses.get(key)).split("/callbacks/")[1]


class Secured:
    """The server with everybody around it. Leaving its `with` stops all."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.tokens_file = scratch / "tokens.toml"
        self.tokens = {name: self.add(name, role) for name, role in PEOPLE.items()}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Secured:
        # What was started is stopped, also if the server does not start.
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def _start(self) -> None:
        self.services = self._stack.enter_context(Services())
        self.issuer = self._stack.enter_context(Issuer())
        config = folder(self.scratch / "folder", SETTINGS.format(url=self.services.url), {"paid-1": STEPS})
        options = ["--config", str(config), "--tokens", str(self.tokens_file)]
        options += ["--jwt-issuer", self.issuer.url, "--jwt-audience", AUDIENCE]
        options += ["--trusted-proxy", PROXY, "--trusted-header", NAMED_BY[0]]
        server = Server(self.program, self.scratch / "data", *options)
        self.server = self._stack.enter_context(server)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server.port

    def add(self, name: str, role: str) -> str:
        """A new token."""
        done = run(self.program, "token", "add", name, "--role", role, "--tokens", str(self.tokens_file))
        expect_equal(done.stderr, done.returncode, 0)
        return done.stdout.strip()

    def bearer(self, name: str | None) -> list[str]:
        """The header of a caller."""
        return [] if name is None else [f"Authorization: Bearer {self.tokens.get(name, name)}"]

    def ask(self, name: str | None, method: str, path: str, body: object = None, *headers: str) -> Raw:
        """A call by a caller, or by a token that is given itself."""
        lines = [*self.bearer(name), *headers]
        if method != "POST":
            return raw(self.port, call(method, path, *lines))
        return raw(self.port, post(path, body if isinstance(body, (str, bytes)) else json.dumps(body), *lines))

    def order(self, name: str = "application", key: str | None = None, **document: object) -> str:
        """The id of a new order, which is stored."""
        headers = [] if key is None else [f"Idempotency-Key: {key}"]
        answer = self.ask(name, "POST", "/orders", document, *headers)
        expect_equal(f"POST /orders: {answer.body}", answer.status, 202)
        order_id = str(answer.document["OrderID"])
        until("it is stored", lambda: self.ask("viewer", "GET", f"/orders/{order_id}").status == 200)
        return order_id
