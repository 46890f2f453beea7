"""`stepwarden serve` in a folder of its own, and an inventory service that does as a check tells it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# How long anything may take that a check waits for. Reached only when something is wrong.
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.05


def until(what: str, look: Callable[[], T | None]) -> T:
    """Looks again until there is something; the first that is true is the answer."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(LOOK_EVERY_S)
    raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain: {what}")


class Inventory:
    """Reserves and releases. An order whose document has a `Tag` in `refusing` is refused its release; one in `holding`
    is kept waiting for its answer until the tag is taken out."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        self.holding: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops it."""
        self.holding.clear()
        self._server.shutdown()
        self._server.server_close()

    def _handler(inventory) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (`self` is the handler's)
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                tag = call["Order"].get("Tag", "")
                if tag in inventory.holding:
                    until(f"{tag} is let go", lambda: tag not in inventory.holding)
                if self.path.endswith("/release") and tag in inventory.refusing:
                    self._answer(409, {"code": "stock-is-counted", "message": "no releases during stock-taking"})
                else:
                    self._answer(200, {"Reservation": f"R-{call['OrderID'][:8]}", "Shelf": "B7", "Price": 1})

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                # Who was kept waiting may have gone.
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class Server:
    """A running `stepwarden serve`."""

    def __init__(self, program: str, data: Path, inventory: Inventory, *options: str) -> None:
        self.data = data
        self._command = [program, "serve", "--data", str(data), "--inventory-url", inventory.url, *options]
        self._log = data.with_suffix(".log")
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.stand_ins = ""

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, the second time on the port that it had before, and waits until it answers."""
        self.port = self.port or free_port()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*self._command, "--port", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "RUST_LOG": "warn", "NO_COLOR": "1"},
            )
        until("stepwarden serve answers", self._answers)
        self.stand_ins = re.findall(r"stand-ins on (\S+)", self._log.read_text())[-1]

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise AssertionError(f"stepwarden serve ended: {self._log.read_text()}")
        try:
            return self.get("/health")["Status"] == "ok"
        except OSError:
            return False

    def stop(self) -> None:
        """Stops it, and waits until it is gone."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def get(self, path: str) -> Any:
        """GET of a JSON document."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as response:
            return json.load(response)

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Any:
        """POST of a JSON document."""
        return post(self.url + path, body, headers)

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""
        headers = {"Prefer": "wait=20"} if wait else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        answer: dict[str, Any] = self.post("/orders", document, headers)
        return answer if wait else self.seen(answer["OrderID"], lambda _: True)

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, once it is as it should be."""

        def look() -> dict[str, Any] | None:
            try:
                task: dict[str, Any] = self.get(f"/orders/{order_id}")
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return None
                raise
            return task if holds(task) else None

        return until(f"order {order_id} is as it should be", look)

    @contextmanager
    def console_program(self) -> Iterator[str]:
        """`stepwarden console` for this server; gives the address of its page, without the slash at its end."""
        command = [self._command[0], "console", "--api", self.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            try:
                assert process.stdout is not None
                told = process.stdout.readline()
                address = re.search(r"is at (\S+)/", told)
                assert address is not None, told
                yield address[1]
            finally:
                process.terminate()

    def switch(self, service: str, down: bool) -> None:
        """Takes a stand-in down, or up again, and waits until its health says so."""
        post(f"{self.stand_ins}/{service}/control", {"Down": down})
        if not down:
            until(f"{service} is well again", lambda: self.health(service) == "Closed")

    def health(self, service: str) -> str:
        """The state of a service."""
        services = {one["Service"]: one["State"] for one in self.get("/services")["Services"]}
        return str(services[service])


def post(url: str, body: object, headers: dict[str, str] | None = None) -> Any:
    """POST of a JSON document."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        text = response.read()
    return json.loads(text) if text else None


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
