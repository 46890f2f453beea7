"""The services of the night, and the place where its alerts go. They keep books of their own.

    python services.py

Prints its port, and that of a mail server. One process on one core answers some 10,000 calls a second.

POST /SERVICE/do, /SERVICE/undo  the calls of a step, with an Idempotency-Key
POST /control                    {"Service": NAME, "Mode": "up" or "down"}; {"Mended": true}; {"ByHand": KEY}
POST /alerts, /team              take an alert, and a text for a team as Slack has it
GET  /books, /keys, /alerts      counts by service; every key with what became of it; the alerts
GET  /told                       the first lines of the texts, and the subjects of the e-mails
GET  /times                      how many milliseconds each service took for its answers, by call

The member `Stub` of an order names calls that go wrong, such as {"stock/do": "refuse"}: until the
service is mended, or for good with "refuse for good". A service that is down answers 503. One in twenty calls is slow.
"""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from collections import Counter
from email import message_from_string, policy
from typing import Any

SERVICES = ("stock", "payment", "carrier")
# The calls of one key in twenty are slow.
SLOW_EACH, SLOW_MS = 20, 150


class Books:
    """What the services did, by idempotency key."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.undone: set[str] = set()
        self.by_hand: set[str] = set()
        self.refused: set[str] = set()
        self.bodies: dict[str, int] = {}
        # By service and call: the milliseconds by key and status. A call that was repeated counts once.
        self.times: dict[str, dict[tuple[str, int], int]] = {}
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in SERVICES}
        self.down: set[str] = set()
        self.is_mended = False
        self.alerts: list[Any] = []
        self.told: dict[str, list[str]] = {"team": [], "mail": []}

    def call(self, service: str, operation: str, key: str, body: bytes) -> tuple[int, Any]:
        """The answer to a call."""
        counts = self.counts[service]
        counts[f"{operation} calls"] += 1
        # The same key must have the same body (rule 4 of the design).
        if self.bodies.setdefault(key, zlib.crc32(body)) != zlib.crc32(body):
            counts["other bodies"] += 1
        if service in self.down:
            counts["calls while down"] += 1
            return 503, {"detail": "down"}
        step = key.removesuffix("/undo")
        wrong = wish_of(service, operation, body)
        if wrong and (wrong == "refuse for good" or not self.is_mended):
            if key not in self.refused:
                counts[f"{operation} refused"] += 1
            self.refused.add(key)
            return 422, {"code": f"{service}-says-no", "message": f"{service} refuses to {operation} this"}
        if operation == "undo":
            if key not in self.undone:
                counts["undo done"] += 1
            self.undone.add(key)
            return 200, {}
        if f"{step}/undo" in self.undone or f"{step}/undo" in self.by_hand:
            counts["do after undo"] += 1
            return 422, {"code": "undone", "message": "it was undone before"}
        if key not in self.done:
            counts["do done"] += 1
        self.done.add(key)
        return 200, {"ID": f"{service[0]}-{key[:8]}"}

    def control(self, wish: dict[str, Any]) -> tuple[int, Any]:
        """Changes what the services do."""
        if service := wish.get("Service"):
            (self.down.add if wish["Mode"] == "down" else self.down.discard)(service)
        if wish.get("Mended"):
            self.is_mended = True
        if key := wish.get("ByHand"):
            self.by_hand.add(key)
        return 200, {}

    def answer(self, method: str, path: str, key: str, body: bytes) -> tuple[int, Any]:
        """The answer to any request."""
        if method == "GET":
            if path == "/books":
                return 200, self.counts
            if path == "/alerts":
                return 200, self.alerts
            if path == "/told":
                return 200, self.told
            if path == "/times":
                return 200, {name: list(times.values()) for name, times in self.times.items()}
            return 200, {"Done": sorted(self.done), "Undone": sorted(self.undone), "ByHand": sorted(self.by_hand)}
        if path == "/control":
            return self.control(json.loads(body))
        if path == "/alerts":
            self.alerts.append(json.loads(body))
            return 200, {}
        if path == "/team":
            self.told["team"].append(json.loads(body)["text"].splitlines()[0])
            return 200, {}
        _, service, operation = path.split("/")
        return self.call(service, operation, key, body)


def wish_of(service: str, operation: str, body: bytes) -> str:
    """What an order wants of a call."""
    return str(json.loads(body)["Order"].get("Stub", {}).get(f"{service}/{operation}", ""))


class Connection(asyncio.Protocol):
    """A connection with one request after the other."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers each whole request."""
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            line, *headers = self._read[:end].decode("latin-1").split("\r\n")
            named = {name.lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
            whole = end + 4 + int(named.get("content-length", 0))
            if len(self._read) < whole:
                return
            body, self._read = self._read[end + 4 : whole], self._read[whole:]
            method, path, _ = line.split(" ")
            self._handle(method, path, named.get("idempotency-key", ""), body)

    def _handle(self, method: str, path: str, key: str, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        status, answered = self._books.answer(method, path, key, body)
        if path.count("/") < 2 or status == 503:
            self._answer(status, answered)
            return

        def finish() -> None:
            times = self._books.times.setdefault(path[1:], {})
            times[key, status] = math.floor(1_000 * (loop.time() - began))
            self._answer(status, answered)

        if zlib.crc32(key.encode()) % SLOW_EACH:
            finish()
        else:
            loop.call_later(SLOW_MS / 1_000, finish)

    def _answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        self._transport.write(head.encode() + text)


async def take_mail(books: Books, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A connection of SMTP. Takes every e-mail."""
    writer.write(b"220 mail\r\n")
    while line := (await reader.readline()).decode().strip():
        if line == "DATA":
            writer.write(b"354 go on\r\n")
            text = (await reader.readuntil(b"\r\n.\r\n")).decode()
            books.told["mail"].append(str(message_from_string(text, policy=policy.default)["Subject"]))
        writer.write(b"250 mail\r\n")
        if line == "QUIT":
            break
    writer.close()


async def serve() -> None:
    """Serves until the process ends."""
    books = Books()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(books), "127.0.0.1", 0, backlog=1024)
    mail = await asyncio.start_server(lambda reader, writer: take_mail(books, reader, writer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], mail.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
