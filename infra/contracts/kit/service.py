"""The remote service that the agent under test calls: it does what a scene says, and remembers who called when."""

from __future__ import annotations

import email.utils
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What the service answers to one call."""

    status: int = 200
    body: bytes | None = None
    """None: a receipt that is the same for the same key."""
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    """How long it takes to answer."""
    retry_at_s: float | None = None
    """`Retry-After` is a date that comes so many seconds after the call, or up to one more: HTTP writes whole ones."""
    is_cut: bool = False
    """The connection is closed without an answer."""


DONE = Answer()
CUT = Answer(is_cut=True)
PAGE = Answer(200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"})


def rejected(code: str) -> Answer:
    """No for good, with a problem as body."""
    body = json.dumps({"type": code, "code": code, "title": "No", "detail": "no, and no again"}).encode()
    return Answer(422, body, {"Content-Type": "application/problem+json"})


def busy(status: int, retry_after_s: int | None = None) -> Answer:
    """Come again, not before so many seconds."""
    return Answer(status, b"{}", {} if retry_after_s is None else {"Retry-After": str(retry_after_s)})


def elsewhere(status: int) -> Answer:
    """A redirect, to a page."""
    return Answer(status, PAGE.body, {**PAGE.headers, "Location": "/sign-in"})


def retry_at(call: Call, seconds: float) -> float:
    """The date in `Retry-After` for this call."""
    return float(math.ceil(call.at + seconds))


def receipt(key: str) -> dict[str, str]:
    """What the service answers unless a scene says otherwise."""
    return {"Receipt": hashlib.sha256(key.encode()).hexdigest()[:16]}


@dataclass(frozen=True)
class Call:
    """One call, as the service saw it."""

    at: float
    path: str
    key: str | None
    body: Any
    """The body's JSON; None if it is none."""
    order_id: str


class Service:
    """All calls, and what is answered to those for each order."""

    def __init__(self, port: int) -> None:
        """Listens on this port of 127.0.0.1; on a free one for 0."""
        self.changed = threading.Condition()
        self._calls: list[Call] = []
        self._answers: dict[str, list[Answer]] = {}
        self._is_away = False
        self._server = self._listen(port)
        self.port = int(self._server.server_address[1])

    def answers(self, order_id: str, *answers: Answer) -> None:
        """What is answered to calls for this order, one after the other; to all that follow, the last."""
        with self.changed:
            self._answers[order_id] = list(answers)

    def calls(self, order_id: str) -> list[Call]:
        """The calls for this order so far."""
        with self.changed:
            return [call for call in self._calls if call.order_id == order_id]

    def strays(self, known: set[str]) -> list[Call]:
        """The calls for orders that nobody asked for."""
        with self.changed:
            return [call for call in self._calls if call.order_id not in known]

    def away(self) -> None:
        """Nobody listens any more, and open connections break at the next call."""
        self._is_away = True
        self._server.shutdown()
        self._server.server_close()

    def back(self) -> None:
        """Listens again."""
        self._is_away = False
        self._server = self._listen(self.port)

    def close(self) -> None:
        """Ends."""
        self._server.shutdown()
        self._server.server_close()

    def handle(self, path: str, key: str | None, body: bytes) -> Answer | None:
        """Writes a call down, and gives what to answer; None: nothing."""
        if self._is_away:
            return None
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        order_id = content.get("OrderID") if isinstance(content, dict) else None
        # An agent that calls in its own words is known by its key.
        order_id = order_id if isinstance(order_id, str) else (key or "")[:36]
        with self.changed:
            answers = self._answers.get(order_id, [DONE])
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            call = Call(time.time(), path, key, content, order_id)
            self._calls.append(call)
            self.changed.notify_all()
        if answer.retry_at_s is not None:
            date = email.utils.formatdate(retry_at(call, answer.retry_at_s), usegmt=True)
            answer = replace(answer, headers={**answer.headers, "Retry-After": date})
        return None if answer.is_cut else answer

    def _listen(self, port: int) -> ThreadingHTTPServer:
        server = _Server(("127.0.0.1", port), _handler(self.handle))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # All scenes call at once. A connection beyond the queue is reset, and the agent under test would be blamed for it.
    request_queue_size = 512


def _handler(handle: Callable[[str, str | None, bytes], Answer | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            key = self.headers.get("Idempotency-Key")
            answer = handle(self.path, key, self._body())
            if answer is None:
                self.close_connection = True
                return
            time.sleep(answer.after_s)
            self._write(answer, key)

        def do_GET(self) -> None:
            """Where those end up who follow a redirect."""
            self._write(PAGE, None)

        def _write(self, answer: Answer, key: str | None) -> None:
            body = json.dumps(receipt(key or "")).encode() if answer.body is None else answer.body
            try:
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the agent gave the call up

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def log_message(self, *_: object) -> None:
            """Says nothing: the report does."""

    return Handler
