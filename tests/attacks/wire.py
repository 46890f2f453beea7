"""Raw HTTP/1.1: requests that no client library sends."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import socket
from dataclasses import dataclass
from typing import Any

ANSWER_S_MAX = 60.0
# The end of a head after which the server closes.
CLOSE = "Connection: close\r\n"


@dataclass(frozen=True)
class Raw:
    """An answer: its status, 0 if there was none, and all its bytes."""

    status: int
    text: str

    @property
    def statuses(self) -> list[int]:
        """The statuses of all answers that came, in their order."""
        return [int(status) for status in re.findall(r"HTTP/1\.[01] (\d{3}) ", self.text)]

    @property
    def head(self) -> str:
        """The head of the answer, in lower case."""
        return self.text.partition("\r\n\r\n")[0].lower()

    @property
    def body(self) -> str:
        """What comes after the head."""
        return self.text.partition("\r\n\r\n")[2]

    @property
    def document(self) -> Any:
        """The body, which has to be JSON."""
        return json.loads(self.body)


def tomorrow() -> str:
    """A time for `NotBefore`: an order with it does not settle."""
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    return later.strftime("%Y-%m-%dT%H:%M:%SZ")


def raw(port: int, request: bytes, within_s: float = ANSWER_S_MAX, source: str = "127.0.0.1") -> Raw:
    """Sends bytes from an address of this machine, and reads until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=within_s, source_address=(source, 0)) as connection:
        return exchange(connection, request)


def exchange(connection: socket.socket, request: bytes) -> Raw:
    """Sends bytes, and reads until the server closes or resets the connection."""
    received = bytearray()
    # A server that refuses the beginning of a request does not read its rest.
    with contextlib.suppress(ConnectionError):
        connection.sendall(request)
    with contextlib.suppress(ConnectionError):
        while more := connection.recv(65_536):
            received += more
    text = received.decode(errors="replace")
    status = re.match(r"HTTP/1\.[01] (\d{3}) ", text)
    return Raw(int(status[1]) if status else 0, text)


def get(path: str, *headers: str, host: str | None = "localhost", version: str = "1.1") -> bytes:
    """A GET after which the server closes."""
    return call("GET", path, *headers, host=host, version=version)


def call(method: str, path: str, *headers: str, host: str | None = "localhost", version: str = "1.1") -> bytes:
    """A call without a body, after which the server closes. Each character is one byte."""
    lines = [f"{method} {path} HTTP/{version}", *([f"Host: {host}"] if host else []), *headers, "Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def post(path: str, body: str | bytes, *headers: str, host: str | None = "localhost") -> bytes:
    """A POST after which the server closes."""
    data = body.encode() if isinstance(body, str) else body
    return call("POST", path, *headers, f"Content-Length: {len(data)}", host=host) + data
