"""Connections that are meant to keep others out."""

from __future__ import annotations

import contextlib
import random
import resource
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from attacks.wire import tomorrow
from harness.report import Report, expect, until
from harness.serve import Server

# Files that this process needs beside the hostile connections.
OTHER_FILES = 200
PIPELINED = 60
WATCHED_S = 20.0
# Within this time a client that takes nothing of its answer is closed: 10 s, and one more look.
SLOW_READER_S_MAX = 45.0
SLOW_READERS = 20
HALF_HEAD_S_MAX = 45.0
ANSWERS_MIN = 50
# So many callers that are known post orders.
CALLERS = 16
# The addresses of the hostile connections.
ATTACKERS = 4
# The orders that were posted beside them have ended.
ENDED_S_MAX = 120.0

Ask = Callable[[], tuple[int, Any]]


class Crowd:
    """Many hostile connections, and known callers beside them."""

    def __init__(self, server: Server, connections: int, answer_ms_max: float, orders_per_s: int) -> None:
        self.server, self.answer_ms_max, self.orders_per_s = server, answer_ms_max, orders_per_s
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.count = connections if hard == resource.RLIM_INFINITY else min(connections, hard - OTHER_FILES)
        self.open: list[socket.socket] = []
        self.posted: list[str] = []

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check(f"a client that takes nothing is closed within {SLOW_READER_S_MAX:.0f} s", self.slow_readers)
        report.check(f"a half head is closed within {HALF_HEAD_S_MAX:.0f} s", self.half_heads)
        asked = f"/health, overview and {self.orders_per_s} orders a second"
        bound = f"{asked} are answered within {self.answer_ms_max:.0f} ms at p99"
        for name, requests in self.kinds().items():
            report.check(
                f"beside {self.count:,} {name}, {bound}",
                lambda requests=requests: self.beside(requests),
            )

    def kinds(self) -> dict[str, list[bytes]]:
        """What the connections send, in turn."""
        order = self.server.order(wait=False, NotBefore=tomorrow(), Item="x" * 100_000)
        head = "Host: localhost\r\n"
        wait = f"GET /orders/{order['OrderID']} HTTP/1.1\r\n{head}Prefer: wait=20\r\n\r\n".encode() * PIPELINED
        read = f"GET /orders/{order['OrderID']}/document HTTP/1.1\r\n{head}\r\n".encode() * PIPELINED
        half = f"POST /orders HTTP/1.1\r\n{head}X: ".encode()
        body = f"POST /orders HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\n{{".encode()
        return {
            "connections with 60 pipelined waits": [wait],
            "hostile connections of all kinds": [b"", half, body, wait, read],
        }

    def connect(self, request: bytes) -> socket.socket:
        """A connection that sends this and reads nothing."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(30)
        # No address may have all connections, and that of the known callers is none of them.
        connection.bind((f"127.0.0.{random.randint(2, 1 + ATTACKERS)}", 0))
        connection.connect(("127.0.0.1", self.server.port))
        connection.setblocking(False)
        # What does not fit is not sent: the server has enough of it.
        with contextlib.suppress(BlockingIOError):
            connection.send(request)
        return connection

    def beside(self, requests: list[bytes]) -> str:
        """Opens the connections, opens anew those that are closed, and is a known caller meanwhile."""
        stop, answers = threading.Event(), dict[str, list[float]]()
        self.posted.clear()
        attack = threading.Thread(target=self.attack, args=(requests, stop))
        attack.start()
        try:
            until("they are open", lambda: len(self.open) >= self.count, within_s=120)
            began = time.monotonic()
            with ThreadPoolExecutor(CALLERS) as pool:
                times = [began + number / self.orders_per_s for number in range(int(WATCHED_S * self.orders_per_s))]
                orders = [pool.submit(self.order_at, due) for due in times]
                while time.monotonic() < began + WATCHED_S or len(answers["overview"]) < ANSWERS_MIN:
                    for name, ask in self.asked().items():
                        answers.setdefault(name, []).append(answered(name, ask, time.monotonic())[0])
                    time.sleep(0.02)
                answers["order"] = [order.result() for order in orders]
            # While the connections are still there.
            until("all orders are processed", self.have_ended, ENDED_S_MAX)
        finally:
            stop.set()
            attack.join()
            for connection in self.open:
                connection.close()
            self.open.clear()
        words = []
        for name, times in answers.items():
            times.sort()
            p99, count = times[-1 - len(times) // 100], len(times)
            words.append(f"{name}: {count} answers, p99 {p99:.0f} ms")
            expect(p99 <= self.answer_ms_max and count >= ANSWERS_MIN, words[-1])
        task = self.server.order(Item="mug")
        expect(task["ProcessState"] == "Processed", f"{task}")
        return "\n".join(words)

    def have_ended(self) -> bool:
        """Whether all orders that were posted are processed."""
        while self.posted:
            if self.server.get(f"/orders/{self.posted[-1]}")["ProcessState"] != "Processed":
                return False
            self.posted.pop()
        return True

    def asked(self) -> dict[str, Ask]:
        """What an operator asks for, each on a connection of its own."""
        return {
            "/health": lambda: self.server.ask("GET", "/health"),
            "overview": lambda: self.server.ask("GET", "/overview"),
        }

    def order_at(self, due: float) -> float:
        """Posts an order at a time; gives the milliseconds from then to its answer."""
        time.sleep(max(0.0, due - time.monotonic()))
        passed_ms, answer = answered("order", lambda: self.server.ask("POST", "/orders", {"Item": "mug"}), due)
        self.posted.append(answer["OrderID"])
        return passed_ms

    def attack(self, requests: list[bytes], stop: threading.Event) -> None:
        """Keeps the connections open until it is stopped."""
        number = 0
        while not stop.is_set():
            while len(self.open) < self.count and not stop.is_set():
                with contextlib.suppress(OSError):
                    self.open.append(self.connect(requests[number % len(requests)]))
                number += 1
            for connection in [one for one in self.open if is_closed(one)]:
                connection.close()
                self.open.remove(connection)
            stop.wait(1.0)

    def slow_readers(self) -> str:
        """They ask for more than the buffers of both systems hold, and read nothing."""
        order = self.server.order(wait=False, NotBefore=tomorrow(), Item="x" * 100_000)
        path = f"/orders/{order['OrderID']}/document"
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 400
        return self.all_closed([self.connect(request) for _ in range(SLOW_READERS)], SLOW_READER_S_MAX)

    def half_heads(self) -> str:
        """They send a byte each second, so that something always comes."""
        connections = [self.connect(b"GET / HTTP/1.1\r\nX: ") for _ in range(SLOW_READERS)]
        return self.all_closed(connections, HALF_HEAD_S_MAX, b"x")

    def all_closed(self, connections: list[socket.socket], within_s: float, sent: bytes = b"") -> str:
        """Waits until the server has closed all of them."""
        began = time.monotonic()
        try:
            while rest := [one for one in connections if not is_closed(one)]:
                expect(time.monotonic() - began < within_s, f"{len(rest)} of {len(connections)} are still held")
                for one in rest if sent else []:
                    with contextlib.suppress(OSError):
                        one.send(sent)
                time.sleep(1)
        finally:
            for one in connections:
                one.close()
        return f"after {time.monotonic() - began:.0f} s"


def answered(name: str, ask: Ask, due: float) -> tuple[float, Any]:
    """The milliseconds from a time until the answer, which has to be good, and its body."""
    status, answer = ask()
    expect(status in (200, 202), f"{name}: {status} {answer}")
    return 1000 * (time.monotonic() - due), answer


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it, also if there is something to read before the end."""
    watched = select.poll()
    watched.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    return bool(watched.poll(0))
