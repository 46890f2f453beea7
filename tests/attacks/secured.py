"""A server that knows its callers in every way, with the services that its orders need, and the people who call it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from attacks.issuer import AUDIENCE, Issuer
from attacks.wire import Raw, call, post, raw
from callbacks.webhooks import SCHEMES
from harness.report import expect_equal, until
from harness.serve import Server, folder, run
from harness.stub import Answer, Call, Stub

ROLES = ("application", "viewer", "operator", "approver", "administrator")
# The callers by their tokens: one for each role, a second application, and one that posts and approves.
PEOPLE = {role: [role] for role in ROLES} | {"other": ["application"], "both": ["application", "approver"]}
# The only address of which a proxy is believed.
PROXY = "127.0.0.2"
NAMED_BY = ("X-Forwarded-User", "X-Forwarded-Roles")
WORKFLOW = "paid"
SETTINGS = """default = "paid"
[reply_channels]
shop = "{url}/channel/shop"
other = "{url}/channel/other"
[agents.kyc]
url = "{url}/kyc"
settles_within = "11s"
"""
# One step of its own for each way to tell a result, and one for people.
STEPS = ["check:kyc", *(f"{scheme.name}:{scheme.agent}" for scheme in SCHEMES.values())]


def workflow() -> str:
    """The file of the workflow. Nothing of its orders ends without a word from outside."""
    lines = [f'name = "{WORKFLOW}"', "version = 1", 'refuse = ["Pin"]', 'index = ["/Email"]']
    for step in STEPS:
        name, agent = step.split(":")
        lines += ["[[step]]", f'name = "{name}"', f'agent = "{agent}"', 'wait_within = "1h"']
    lines += [
        "[[step]]",
        'name = "approve"',
        'kind = "approval"',
        'not_by = "/Order/RequestedBy"',
        'wait_within = "1h"',
    ]
    return "\n".join(lines) + "\n"


class Services(Stub):
    """Takes every call on with a 202, and undoes at once."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """A call of an agent, or a status message."""
        if "Callback-Url" in call.headers:
            self.addresses[call.key] = call.headers["Callback-Url"]
        return (200 if call.key.endswith("/undo") or call.path.startswith("/channel") else 202), {}

    def paths(self) -> list[str]:
        """What it was asked for."""
        return [call.path for call in self.calls]

    def token(self, order_id: str, step: str) -> str:
        """The token of the address that a call gave."""
        key = f"{order_id}/{step}"
        return until(f"a call of {key}", lambda: self.addresses.get(key)).split("/callbacks/")[1]


class Secured:
    """The server with everybody around it. Leaving its `with` stops all."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.tokens_file = scratch / "tokens.toml"
        self.socket = str(scratch / "api.sock")
        self.tokens = {name: self.add(name, roles) for name, roles in PEOPLE.items()}
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
        secrets = self.scratch / "secrets"
        secrets.mkdir(mode=0o700)
        tables = [scheme.settings(self.services.url, secrets) for scheme in SCHEMES.values()]
        settings = SETTINGS.format(url=self.services.url) + "".join(tables)
        config = folder(self.scratch / "folder", settings, {"paid-1": workflow()})
        options = ["--config", str(config), "--tokens", str(self.tokens_file), "--socket", self.socket]
        options += ["--jwt-issuer", self.issuer.url, "--jwt-audience", AUDIENCE]
        options += ["--trusted-proxy", f"{PROXY},unix", "--trusted-header", NAMED_BY[0]]
        server = Server(self.program, self.scratch / "data", *options)
        self.server = self._stack.enter_context(server)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server.port

    def add(self, name: str, roles: list[str]) -> str:
        """A new token. Applications may name one reply channel."""
        words = [word for role in roles for word in ("--role", role)]
        words += ["--channel", "shop"] if roles == ["application"] else []
        done = run(self.program, "token", "add", name, *words, "--tokens", str(self.tokens_file))
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

    def task(self, order_id: str) -> dict[str, Any]:
        """The order, as a viewer sees it."""
        return dict(self.ask("viewer", "GET", f"/orders/{order_id}").document)

    def step(self, order_id: str, name: str) -> dict[str, Any]:
        """A step of an order."""
        return next(step for step in self.task(order_id)["Steps"] if step["Name"] == name)
