"""Services of an attacker, which the server calls."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.hostile import Hostile, answer
from attacks.wire import get, raw
from harness.report import Suite, expect, expect_equal, until
from harness.serve import Server, folder

STEP = 'complete_within = "{within}"\nhorizon = "{within}"\nmax_failures = 1\non_exhausted = "hold"\non_rejected = "hold"\n'
WORKFLOW = 'name = "odd"\nversion = 1\n[[step]]\nname = "a"\nagent = "evil"\nundo = "none"\n'
HEALTH_S_MAX = 2.0
CALL_TIMEOUT_S = 3
SIDE_BY_SIDE = 6


class Services(Suite):
    """Each has a server of its own, whose orders it is to stop."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    @contextlib.contextmanager
    def serving(self, parts: Iterable[bytes], within: str = "20s") -> Iterator[tuple[Server, Hostile]]:
        """A server whose agent calls a service with this answer."""
        path = self.scratch / f"services-{time.monotonic_ns()}"
        with Hostile(parts) as hostile:
            timeouts = f'call_timeout = "{CALL_TIMEOUT_S}s"\nsettles_within = "11s"\n'
            settings = f'[agents.evil]\nurl = "{hostile.url}"\n{timeouts}'
            # Those of other orders, which stand-ins play.
            settings += "[agents.inventory]\n[agents.payment]\n[agents.shipping]\n"
            folder(path, settings, {"odd-1": WORKFLOW + STEP.format(within=within)})
            with Server(self.program, path / "data", "--config", str(path)) as server:
                yield server, hostile

    def order(self, server: Server) -> str:
        """An order of the service."""
        return str(server.order(wait=False, Workflow="odd")["OrderID"])

    def is_well(self, server: Server) -> None:
        """It answers, and orders of other services end."""
        began = time.monotonic()
        expect_equal("/health", raw(server.port, get("/health")).status, 200)
        expect(time.monotonic() - began < HEALTH_S_MAX, f"/health took {time.monotonic() - began:.1f} s")
        expect_equal("another order", server.order(Workflow="order", Item="mug")["ProcessState"], "Processed")

    def is_done(self, server: Server, order: str) -> bool:
        """Whether its step is done."""
        return bool(server.get(f"/orders/{order}")["Steps"][0]["ProcessState"] == "Processed")

    def test_slow(self) -> None:
        """A service that sends a byte now and then is given up, and other orders go on."""

        class Slow:
            """The same again for each call."""

            def __iter__(self) -> Iterator[bytes]:
                yield b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
                while True:
                    time.sleep(0.2)
                    yield b" "

        with self.serving(Slow()) as (server, _):
            began = time.monotonic()
            order = self.order(server)
            task = server.seen(order, lambda task: bool(task["Steps"][0].get("LastError")))
            expect(time.monotonic() - began < CALL_TIMEOUT_S + 5, f"{time.monotonic() - began:.0f} s")
            expect(not self.is_done(server, order), f"{task}")
            self.is_well(server)

    def test_malformed(self) -> None:
        """Malformed heads, lengths and chunks are no answer: no step is done by them."""

        def is_none(head: bytes) -> None:
            with self.serving([head]) as (server, hostile):
                order = self.order(server)
                until("it is called", lambda: hostile.requests)
                server.seen(order, lambda task: bool(task["Steps"][0].get("LastError")))
                expect(not self.is_done(server, order), f"{head[:80]!r}")

        heads = [
            *(b"\0" * 100, b"HTTP/1.1 200\n", b"HTTP/0.9 200 OK\r\n\r\n{}", b"{}", b"HTTP/1.1 000 OK\r\n\r\n{}"),
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 900_000 + b"\r\n\r\n{}",
            *answer(b"\xff\xfe", "200 OK"),
        ]
        # Each has servers of its own, and waits most of its time.
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            list(pool.map(is_none, heads))
