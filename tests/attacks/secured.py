"""A server that knows its callers in every way, with the services that its orders need, and the people who call it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from attacks.issuer import AUDIENCE, Issuer
from attacks.wire import Raw, call, post, raw
from callbacks.webhooks import SCHEMES
from harness.report import expect_equal, until
from harness.serve import Server
from harness.stub import Quiet, Stub

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
    """Takes every call on with a 202, and undoes at once. Keeps what it was sent."""

    def __init__(self) -> None:
        services = self
        self.addresses: dict[str, str] = {}
        self.paths: list[str] = []

        class Handler(Quiet):
            """Answers each call."""

            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                """A call of an agent, or a status message."""
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                services.paths.append(self.path)
                key = self.headers.get("Idempotency-Key", "")
                if "Callback-Url" in self.headers:
                    services.addresses[key] = self.headers["Callback-Url"]
                is_done = key.endswith("/undo") or self.path.startswith("/channel")
                self.send_response(200 if is_done else 202)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        super().__init__(Handler)

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
        self.services = Services()
        self._stack.callback(self.services.close)
        self.issuer = self._stack.enter_context(Issuer())
        folder, secrets = self.scratch / "folder", self.scratch / "secrets"
        (folder / "workflows").mkdir(parents=True)
        secrets.mkdir(mode=0o700)
        tables = [scheme.settings(self.services.url, secrets) for scheme in SCHEMES.values()]
        (folder / "stepwarden.toml").write_text(SETTINGS.format(url=self.services.url) + "".join(tables))
        (folder / "workflows" / "paid-1.toml").write_text(workflow())
        options = ["--config", str(folder), "--tokens", str(self.tokens_file), "--socket", self.socket]
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

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        """Runs the command line to its end."""
        environment = {**os.environ, "NO_COLOR": "1", **variables}
        command = [str(self.program), *words]
        return subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)

    def add(self, name: str, roles: list[str]) -> str:
        """A new token. Applications may name one reply channel."""
        words = [word for role in roles for word in ("--role", role)]
        words += ["--channel", "shop"] if roles == ["application"] else []
        done = self.run("token", "add", name, *words, "--tokens", str(self.tokens_file))
        expect_equal(f"{done.stderr!r}", done.returncode, 0)
        return done.stdout.decode().strip()

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
