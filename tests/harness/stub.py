"""A service of a test, on a free port: it keeps the calls that it gets, and answers each as its class says."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from harness.report import describe

S = TypeVar("S", bound="Stub")
# A status; a body, which is JSON, or bytes as they are, or parts that come one by one until the connection is closed; and
# headers.
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass(frozen=True)
class Call:
    """A request."""

    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return str(self.headers.get("Idempotency-Key", ""))

    @property
    def order(self) -> dict[str, Any]:
        """The document of the order that it is made for."""
        return dict(json.loads(self.body).get("Order", {}))


class Stub:
    """Serves from its making until it is closed. Leaving its `with` closes it. Subclasses have `answer`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: list[Call] = []
        # How often each status was answered, with 0 where there was no answer.
        self.statuses: Counter[int] = Counter()
        # What went wrong in `answer`, which the caller got a 500 for.
        self.faults: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = stub._answered(Call(self.command, self.path, self.headers, body))
                if answer is None:
                    self.close_connection = True
                    return
                status, content, *more = answer
                headers = more[0] if more else {}
                if "content-type" not in map(str.lower, headers):
                    headers = {**headers, "Content-Type": "application/json"}
                if isinstance(content, Iterator):
                    self.close_connection = True
                else:
                    content = [content if isinstance(content, bytes) else json.dumps(content).encode()]
                    headers = {**headers, "Content-Length": str(len(content[0]))}
                # A caller that was kept waiting may be gone.
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for part in content:
                        self.wfile.write(part)

            do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, call: Call) -> Answer | None:
        """The answer to a call. Without one the connection is closed."""
        raise NotImplementedError

    def _answered(self, call: Call) -> Answer | None:
        with self.lock:
            self.calls.append(call)
        try:
            answer = self.answer(call)
        except Exception as error:
            self.faults.append(f"{call}: {describe(error)}")
            answer = 500, {}
        with self.lock:
            self.statuses[answer[0] if answer else 0] += 1
        return answer


class Server(ThreadingHTTPServer):
    """Takes hundreds of connections at once."""

    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_: object) -> None:
        """A caller that was killed leaves its connections."""
