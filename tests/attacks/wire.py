"""Raw HTTP/1.1: requests that no client library sends."""

from __future__ import annotations

import datetime
import re
import socket
from dataclasses import dataclass

ANSWER_S_MAX = 60.0


@dataclass(frozen=True)
class Raw:
    """An answer: its status, 0 if there was none, and all its bytes."""

    status: int
    text: str


def tomorrow() -> str:
    """A time for `NotBefore`: an order with it does not settle."""
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    return later.strftime("%Y-%m-%dT%H:%M:%SZ")


def raw(port: int, request: bytes, within_s: float = ANSWER_S_MAX) -> Raw:
    """Sends bytes and reads until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=within_s) as connection:
        connection.sendall(request)
        received = bytearray()
        while more := connection.recv(65_536):
            received += more
    text = received.decode(errors="replace")
    status = re.match(r"HTTP/1\.[01] (\d{3}) ", text)
    return Raw(int(status[1]) if status else 0, text)


def get(path: str, *headers: str, host: str | None = "localhost", version: str = "1.1") -> bytes:
    """A GET after which the server closes."""
    lines = [f"GET {path} HTTP/{version}", *([f"Host: {host}"] if host else []), *headers, "Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode()


def post(path: str, body: str, *headers: str, host: str | None = "localhost") -> bytes:
    """A POST after which the server closes."""
    length = f"Content-Length: {len(body.encode())}"
    lines = [f"POST {path} HTTP/1.1", *([f"Host: {host}"] if host else []), *headers, length, "Connection: close"]
    return "\r\n".join([*lines, "", body]).encode()
