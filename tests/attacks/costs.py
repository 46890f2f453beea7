"""Requests that are meant to cost much: searches of large, deep documents."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attacks.wire import get, post, raw
from harness.report import Report, expect, expect_equal, until
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
TICKS = os.sysconf("SC_CLK_TCK")


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


class Costs:
    """The CPU time of requests."""

    def __init__(self, server: Server, cpu_ms_max: float) -> None:
        self.server, self.cpu_ms_max = server, cpu_ms_max
        self.ids: list[str] = []

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        size = f"{DOCUMENTS} documents of {BYTES // 1024} KiB"
        report.check(f"flat ones first: {size}", lambda: self.fill(4))
        flat_ms = report.check("a search of them", self.search_ms)
        report.check(f"{size}, {LEVELS} levels deep", lambda: self.fill(LEVELS))
        report.check(
            f"a search of deep documents costs at most {NESTED_MAX:.0f} times one of flat ones",
            lambda: self.is_linear(float((flat_ms or "0").split()[0])),
        )
        report.check(f"no read costs more than {self.cpu_ms_max:.0f} ms of CPU", self.reads)
        report.check(f"no post costs more than {self.cpu_ms_max:.0f} ms of CPU", self.posts)
        report.check("the pages of a search have every order", self.pages)
        report.check(f"beside {SEARCHERS} searches /health answers within 1 s and an order ends", self.beside)

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
            before = self.cpu_ms()
            time.sleep(0.5)
            return self.cpu_ms() - before <= 30

        until("the process is quiet", is_quiet)

    def cpu_ms(self) -> float:
        """The CPU time of the process so far."""
        assert self.server.process is not None
        fields = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / TICKS

    def cost_ms(self, path: str, body: object = None) -> float:
        """The CPU time of a GET, or of a POST of this body."""
        request = get(path) if body is None else post(path, json.dumps(body))
        before = self.cpu_ms()
        for _ in range(REPEATS):
            answer = raw(self.server.port, request)
            expect(0 < answer.status < 500, f"{path}: {answer.text[:500]}")
        return (self.cpu_ms() - before) / REPEATS

    def search_ms(self) -> str:
        """The CPU time of a search for nothing."""
        return f"{self.cost_ms('/orders?value=nothing'):.1f} ms"

    def is_linear(self, flat_ms: float) -> str:
        """Compares with the flat ones."""
        deep_ms = self.cost_ms("/orders?value=nothing")
        # The clock of the process has ticks of 10 ms.
        bound_ms = NESTED_MAX * flat_ms + 10
        expect(0 < deep_ms <= bound_ms, f"{deep_ms:.1f} ms, {flat_ms:.1f} ms for the flat ones")
        return f"{deep_ms:.1f} ms, {flat_ms:.1f} ms for the flat ones"

    def reads(self) -> str:
        """All of them, and the searches that read most."""
        return self.worst([(path, None) for path in costly_reads(self.ids[0])])

    def posts(self) -> str:
        """The largest body of each kind."""
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

    def pages(self) -> str:
        """A search for what is in all, and one for what is in one."""
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

    def beside(self) -> str:
        """Searches without a pause."""
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
