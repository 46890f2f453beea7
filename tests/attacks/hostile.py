"""A server that answers the command line with what it likes."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable

from attacks.listener import Listener

JSON = "application/json"


class Hostile(Listener):
    """Sends these bytes to whoever connects, and keeps what it was sent."""

    def __init__(self, answer: Iterable[bytes]) -> None:
        super().__init__()
        self.parts = answer
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
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
