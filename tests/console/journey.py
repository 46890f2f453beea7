"""The example of a journey, with its days made seconds, and its services: one tells the hotel's result later."""

from __future__ import annotations

import json
import re
import shutil
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness import tools
from harness.serve import Server

EXAMPLE = tools.ROOT / "infra" / "examples" / "parallel"
CONFIRMED_AFTER_S = 0.5


class Bookings:
    """Plays every agent of the example. It takes a hotel on with a 202, and posts the result to the call's address."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.confirmed: list[str] = []
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._server.server_close()

    def _confirm(self, address: str) -> None:
        body = json.dumps({"Outcome": "Done", "Output": {"booking": "H-1"}}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10):
            self.confirmed.append(address)

    def _handler(bookings) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (`self` is the handler's)
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                address = self.headers.get("Callback-Url")
                if address and call.get("kind") == "hotel" and self.path.endswith("/book"):
                    threading.Timer(CONFIRMED_AFTER_S, bookings._confirm, [address]).start()
                    self._answer(202, {})
                else:
                    self._answer(200, {"booking": "B-1", "payment": "P-1"})

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def folder(into: Path, bookings: Bookings, decided_within: str) -> Path:
    """A copy of the example: its services are one here, and a day is a second; a decision is awaited for this time."""
    shutil.copytree(EXAMPLE, into)
    settings = into / "stepwarden.toml"
    settings.write_text(re.sub(r'url = "http://localhost:\d+"', f'url = "{bookings.url}"', settings.read_text()))
    [workflow] = (into / "workflows").glob("*.toml")
    text = workflow.read_text().replace('wait_within = "3d"', f'wait_within = "{decided_within}"')
    text = re.sub(r'wait_within = "(\d+)d"', r'wait_within = "\1s"', text).replace('wait = "10s"', 'wait = "1s"')
    workflow.write_text(text)
    return into


def journey(server: Server, total: float, customer: str = "Ada Lovelace") -> dict[str, Any]:
    """Posts a journey, and waits until it is stored."""
    order = json.loads((EXAMPLE / "order.json").read_text())
    return server.order(wait=False, **{**order, "Total": total, "Customer": customer})


def asked(server: Server, total: float = 1_200) -> dict[str, Any]:
    """A journey that waits for an approval."""
    order = journey(server, total)
    is_asked = lambda task: "approve" in task.get("Actions", [])  # noqa: E731
    return server.seen(order["OrderID"], is_asked)
