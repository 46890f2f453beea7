"""What the three providers have in common: a server that counts its calls."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.report import describe


@dataclass(frozen=True)
class Call:
    """A POST."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return self.headers.get("idempotency-key", "")


@dataclass(frozen=True)
class Answer:
    """An answer, or none: then the connection is closed."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


class Keys:
    """Idempotency keys: one execution for each, and its answer for every repeat."""

    IN_USE = Answer(0, {})
    MISUSED = Answer(0, {"misused": True})

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[str, bytes], Answer | None]] = {}
        self._lock = threading.Lock()

    def once(self, call: Call, execute: Callable[[], Answer]) -> Answer:
        """The answer to a call. `IN_USE` while the first one is at work, `MISUSED` for another call with the key."""
        with self._lock:
            known = self._known.get(call.key)
            if known is None:
                self._known[call.key] = ((call.path, call.body), None)
        if known is not None:
            if known[0] != (call.path, call.body):
                return self.MISUSED
            return known[1] or self.IN_USE
        answer = execute()
        with self._lock:
            self._known[call.key] = ((call.path, call.body), answer)
        return answer


class Provider:
    """A service on a free port. Subclasses have `answer`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.times: list[float] = []
        self.statuses: Counter[int] = Counter()
        # Calls that no such provider would get from a right client.
        self.faults: list[str] = []
        self._server = Server(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, call: Call) -> Answer | None:
        """The answer to a call."""
        raise NotImplementedError

    def answered(self, call: Call) -> Answer | None:
        """The same, counted."""
        with self.lock:
            self.times.append(time.monotonic())
        try:
            answer = self.answer(call)
        except Exception as error:
            self.faults.append(f"{call}: {describe(error)}")
            answer = Answer(500, {})
        with self.lock:
            self.statuses[answer.status if answer else 0] += 1
        return answer


class Server(ThreadingHTTPServer):
    """Takes hundreds of connections at once."""

    daemon_threads = True
    request_queue_size = 512


def handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    """Passes POSTs to a provider."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            call = Call(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            answer = provider.answered(call)
            if answer is None:
                self.close_connection = True
                return
            data = json.dumps(answer.body).encode()
            head = [f"HTTP/1.1 {answer.status} Answer", f"Content-Length: {len(data)}"]
            headers = {"Content-Type": "application/json", **answer.headers}
            head += [f"{name}: {value}" for name, value in headers.items()]
            # A caller that was kept waiting may be gone.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write("\r\n".join([*head, "", ""]).encode() + data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def new_id(kind: str) -> str:
    """An id as providers make them, which says nothing about the order."""
    return f"{kind}_{secrets.token_hex(12)}"
