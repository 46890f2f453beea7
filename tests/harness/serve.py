"""A running `stepwarden serve`, and calls of its API."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.process import Process, free_port
from harness.report import expect, until

ANSWER_S_MAX = 180.0


class Server:
    """A running `stepwarden serve`. Leaving its `with` stops it; started again, it has the same port and data."""

    def __init__(self, program: Path, data: Path, *options: str, variables: dict[str, str] | None = None) -> None:
        """`data` is the folder of its store; its log is a file beside that. `variables` are added to its environment."""
        self.program = program
        self.data = data
        self._options = options
        self._variables = variables or {}
        self.port = 0
        self.process: Process | None = None

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.port = self.port or free_port()
        command = [str(self.program), "serve", "--data", str(self.data), "--port", str(self.port), *self._options]
        environment = {**os.environ, "RUST_LOG": "warn", "NO_COLOR": "1", **self._variables}
        self.process = Process(command, self.data.with_suffix(".log"), env=environment)
        self.process.start(self._answers)

    def stop(self) -> None:
        """Stops it, and waits until it is gone."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Ends it by SIGKILL, and starts it again."""
        assert self.process is not None and self.process.pid is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.stop()
        self.start()

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.is_running()

    def log(self) -> str:
        """Its output."""
        return self.process.text() if self.process is not None else ""

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """One call of its API: status and decoded body of the answer."""
        return ask(method, self.url + path, body, headers)

    def get(self, path: str) -> Any:
        """GET of a JSON document. Any other status than 2xx fails the check."""
        return successful("GET", self.url + path)

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Any:
        """POST of a JSON document. Any other status than 2xx fails the check."""
        return successful("POST", self.url + path, body, headers)

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""
        headers = {"Prefer": "wait=20"} if wait else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        answer: dict[str, Any] = self.post("/orders", document, headers)
        return answer if wait else self.seen(answer["OrderID"], lambda _: True)

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

        def look() -> dict[str, Any] | None:
            status, task = self.ask("GET", f"/orders/{order_id}")
            if status == 404:
                return None
            expect(status == 200, f"GET /orders/{order_id}: {status} {task}")
            found: dict[str, Any] = task
            return found if holds(found) else None

        return until(f"order {order_id} is as expected", look)

    def health(self, service: str) -> str:
        """The state of a service."""
        services = {one["Service"]: one["State"] for one in self.get("/services")["Services"]}
        return str(services[service])

    def switch(self, service: str, down: bool) -> None:
        """Takes a stand-in down, or up again, and waits until the health of its service shows that it is up."""
        stand_ins = re.findall(r"stand-ins on (\S+)", self.log())[-1]
        successful("POST", f"{stand_ins}/{service}/control", {"Down": down})
        if not down:
            until(f"{service} is healthy again", lambda: self.health(service) == "Closed")

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            return False


def ask(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """One call: status and decoded body of the answer, nothing for an empty body."""
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S_MAX) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        status, text = refused.code, refused.read()
    return status, json.loads(text) if text else None


def successful(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    """The decoded body of a call that must succeed."""
    status, answer = ask(method, url, body, headers)
    expect(200 <= status < 300, f"{method} {url}: {status} {answer}")
    return answer
