"""Requests that are meant to cost much: searches of large, deep documents."""

from __future__ import annotations

import gzip
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from attacks.wire import get, post, raw
from harness.report import Suite, expect, expect_equal, until
from harness.serve import Server, ask

DOCUMENTS = 216
BYTES = 112 * 1024
LEVELS = 55
REPEATS = 4
# A nested document costs hardly more than a flat one of its size; 55 times as much if each level is read again.
NESTED_MAX = 3.0
SEARCHERS = 8
SEARCHED_S = 6.0
POSTERS = 8
BOMB_BYTES = 100 * 1024 * 1024


def nested(number: int, levels: int) -> dict[str, Any]:
    """A document of the size, so deep, with its own mark at the bottom."""
    words: Any = [{"mark": f"mark-{number}"}, *["y"] * ((BYTES - 12 * levels) // 5)]
    for _ in range(levels - 3):
        words = {"a": words}
    return {"a": words, "CorrelationID": "the-same"}


def costly_reads(order_id: str) -> list[str]:
    """All reads, and the searches that read most."""
    deep = "/a" * (LEVELS - 2)
    paths = ["/orders", "/orders?value=nothing", f"/orders?field={deep}/0/mark", f"/orders?field={deep}/0/mark&value=x"]
    paths += ["/orders?correlation=the-same", "/orders?with=index", "/orders?with=index&value=y&limit=100"]
    paths += ["/orders?limit=100", "/orders?reason=nothing", "/orders?since=2000-01-01T00:00:00Z&value=nothing"]
    paths += ["/overview", "/numbers?last=30d", "/metrics", "/services", "/alerts", "/bulk", "/dead-letters"]
    paths += ["/leases", "/workflows", "/configuration", "/openapi.json", "/ready", "/health", "/"]
    paths += [f"/orders/{order_id}", f"/orders/{order_id}/document"]
    return paths


def costly_posts() -> list[tuple[str, object]]:
    """The largest body of each kind, with its path."""
    large = nested(0, LEVELS)
    keys = {"a" * 8 + str(n): n for n in range(6_000)}
    long = {"Name": "stepwarden.toml", "Text": "x = 1\n" * 14_000}
    file = {"By": "eve", "Reason": "x", "DryRun": True, "Files": [long]}
    return [("/orders", large), ("/orders", keys), ("/orders", {"a": ["y"] * 26_000}), ("/configuration", file)]


class Costs(Suite):
    """The CPU time of requests."""

    def __init__(self, server: Server, cpu_ms_max: float) -> None:
        self.server, self.cpu_ms_max = server, cpu_ms_max
        self.ids: list[str] = []
        self.flat_ms = 0.0

    def fill(self, levels: int) -> None:
        """Posts documents, and waits until nothing is done about them any more."""

        def one(number: int) -> str:
            body = nested(number, levels)
            status, answer = ask("POST", f"{self.server.url}/orders", body)
            expect(status == 202, f"{status} {answer}")
            return str(answer["OrderID"])

        with ThreadPoolExecutor(POSTERS) as pool:
            self.ids = list(pool.map(one, range(DOCUMENTS)))
        self.settle()

    def settle(self) -> None:
        """Waits until every order has ended and the process is quiet."""
        states = ("Pending", "Processing", "Compensating")
        until("all have ended", lambda: not any(self.server.get(f"/orders?state={s}&limit=1")["Orders"] for s in states))

        def is_quiet() -> bool:
            before = self.server.cpu_ms()
            time.sleep(0.5)
            return self.server.cpu_ms() - before <= 30

        until("the process is quiet", is_quiet)

    def cost_ms(self, path: str, body: object = None) -> float:
        """The CPU time of a GET, or of a POST of this body."""
        request = get(path) if body is None else post(path, json.dumps(body))
        before = self.server.cpu_ms()
        for _ in range(REPEATS):
            answer = raw(self.server.port, request)
            expect(0 < answer.status < 500, f"{path}: {answer.text[:500]}")
        return (self.server.cpu_ms() - before) / REPEATS

    def test_flat(self) -> str:
        """Flat documents, of 112 KiB each, are searched."""
        self.fill(4)
        self.flat_ms = self.cost_ms("/orders?value=nothing")
        return f"{self.flat_ms:.1f} ms"

    def test_deep(self) -> str:
        """A search of deep documents costs at most three times one of flat ones."""
        self.fill(LEVELS)
        deep_ms = self.cost_ms("/orders?value=nothing")
        words = f"{deep_ms:.1f} ms, {self.flat_ms:.1f} ms for the flat ones"
        # The clock of the process has ticks of 10 ms.
        expect(0 < deep_ms <= NESTED_MAX * self.flat_ms + 10, words)
        return words

    def test_reads(self) -> str:
        """No read costs more CPU time than it may. These are all, and the searches that read most."""
        return self.worst([(path, None) for path in costly_reads(self.ids[0])])

    def test_posts(self) -> str:
        """No post costs more CPU time than it may. These are the largest of each kind."""
        return self.worst(costly_posts())

    def worst(self, requests: list[tuple[str, object]]) -> str:
        """The most expensive of them."""
        costs = []
        for path, body in requests:
            costs.append((self.cost_ms(path, body), path[:60]))
            if body is not None:
                self.settle()
        costs.sort(reverse=True)
        words = ", ".join(f"{path} {ms:.0f} ms" for ms, path in costs[:4])
        expect(costs[0][0] <= self.cpu_ms_max, words)
        return words

    def test_bomb(self) -> None:
        """A compressed body of 100 MiB is not unpacked: 400. Nobody asked for it, so it is JSON or nothing."""
        packed = gzip.compress(b"[" * BOMB_BYTES, 9)
        for coding in ("gzip", "deflate", "br", "gzip, gzip"):
            answer = raw(self.server.port, post("/orders", packed, f"Content-Encoding: {coding}"))
            expect_equal(coding, answer.status, 400)

    def test_pages(self) -> str:
        """The pages of a search have every order."""
        for query, expected in (("value=y", 2 * DOCUMENTS), ("value=mark-7", 2)):
            found, calls, cursor = set(), 0, ""
            while True:
                page = self.server.get(f"/orders?{query}&limit=100{cursor}")
                found |= {order["OrderID"] for order in page["Orders"]}
                calls += 1
                if "NextCursor" not in page:
                    break
                cursor = f"&cursor={page['NextCursor']}"
            expect(len(found) >= expected, f"{query}: {len(found)} of {expected}")
        return f"{calls} calls for one order among {2 * DOCUMENTS}"

    def test_beside(self) -> str:
        """Beside eight searches without a pause /health answers within 1 s, and an order ends."""
        over = time.monotonic() + SEARCHED_S

        def searches() -> None:
            while time.monotonic() < over:
                self.server.ask("GET", "/orders?value=nothing")

        threads = [threading.Thread(target=searches) for _ in range(SEARCHERS)]
        for thread in threads:
            thread.start()
        longest_s, asked = 0.0, 0
        while time.monotonic() < over:
            began = time.monotonic()
            expect_equal("/health", self.server.ask("GET", "/health")[0], 200)
            longest_s, asked = max(longest_s, time.monotonic() - began), asked + 1
            time.sleep(0.02)
        task = self.server.order(Item="mug")
        for thread in threads:
            thread.join()
        expect(longest_s <= 1.0, f"the longest of {asked} took {longest_s:.2f} s")
        expect_equal("the order", task["ProcessState"], "Processed")
        return f"the longest of {asked} took {1000 * longest_s:.0f} ms"
