"""A small service in Python. It keeps the rules for a service, and its books.

    python service.py

Prints its port. POST /do and /undo are the calls of a step; GET /books has what it did, by key. The first call of
every seventh key fails, so that calls repeat.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOCK = threading.Lock()
SEEN: dict[str, int] = {}
DONE: dict[str, dict[str, int]] = {}
UNDONE: set[str] = set()
BOOKS: dict[str, dict[str, int]] = {"done": {}, "undone": {}}


def call(path: str, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a call."""
    if path == "/undo":
        step = key.removesuffix("/undo")
        if step in DONE and step not in UNDONE:
            BOOKS["undone"][step] = BOOKS["undone"].get(step, 0) + 1
        UNDONE.add(step)
        return 200, {}
    if key in UNDONE:
        return 422, {"code": "undone", "detail": "it was undone before"}
    SEEN[key] = SEEN.get(key, 0) + 1
    if len(SEEN) % 7 == 0 and SEEN[key] == 1:
        return 503, {"detail": "not now"}
    if key not in DONE:
        order = json.loads(body)["Order"]
        if order.get("Decline") and key.endswith(order["Decline"]):
            return 422, {"code": "declined", "detail": "as the order says"}
        BOOKS["done"][key] = BOOKS["done"].get(key, 0) + 1
        DONE[key] = {"Number": len(DONE) + 1}
    return 200, DONE[key]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Logs nothing."""

    def do_GET(self) -> None:
        """Answers with the books."""
        with LOCK:
            self._answer(200, BOOKS)

    def do_POST(self) -> None:
        """Carries a step out, or takes it back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with LOCK:
            status, answer = call(self.path, self.headers["Idempotency-Key"], body)
        self._answer(status, answer)

    def _answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(ThreadingHTTPServer):
    """Callers may be killed."""

    def handle_error(self, *_: object) -> None:
        """Logs nothing."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
