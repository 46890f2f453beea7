"""A server that answers the command line with what it likes."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterable

JSON = "application/json"


class Hostile:
    """Sends these bytes to whoever connects, and keeps what it was sent. Leaving its `with` stops it."""

    def __init__(self, answer: Iterable[bytes]) -> None:
        self.parts = answer
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Hostile:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A close alone does not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            received = b""
            while not is_whole(received) and (more := connection.recv(65_536)):
                received += more
            self.requests.append(received.decode(errors="replace"))
            for part in self.parts:
                connection.sendall(part)


def is_whole(request: bytes) -> bool:
    """Whether head and body are here."""
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


def answer(document: object, status: str = "200 OK", *headers: str, kind: str = JSON) -> list[bytes]:
    """An answer with a body: a JSON document, or bytes as they are."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return ["\r\n".join([*lines, "", ""]).encode("latin-1") + body]


def problem(status: str, **members: object) -> list[bytes]:
    """A problem document."""
    return answer(
        {"type": "about:blank", "status": int(status[:3]), **members}, status, kind="application/problem+json"
    )
