"""The orders and the backups of the suite `backup`."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.report import Report, expect, expect_equal, until
from harness.serve import Server, folder
from workflows.run import SHOP, workflow
from workflows.service import Service

POSTERS = 8
# Long documents, so that a backup is taken in the middle of the load.
PAD_BYTES = 40_000
DECLINED_EACH = 7
ENDED = ("Processed", "Compensated")


def configured(service: Service, path: Path) -> Path:
    """A configuration folder for one service that plays all three agents."""
    agents = "".join(f'\n[agents.{agent}]\nurl = "{service.url}"\n' for _, agent, _ in SHOP)
    return folder(path, f'default = "shop"\n{agents}', {"shop-1": workflow("shop", 1, SHOP)["Text"]})


class Run:
    """The checks, one after the other, on one server."""

    def __init__(self, program: Path, service: Service, scratch: Path, orders: int) -> None:
        """`orders` is the number of orders in each part; `scratch` is a folder for all files."""
        self.service, self.part = service, orders
        self.backup = scratch / "backup"
        config = str(configured(service, scratch / "folder"))
        self.server = Server(program, scratch / "data", "--config", config)
        self.copy = Server(program, scratch / "copy", "--config", config)
        self.paused = Server(program, scratch / "copy", "--config", config, "--paused")
        # The server that customers post to.
        self.system = self.server
        # All numbers that were posted, and the ids of the orders that were accepted.
        self.posted: set[int] = set()
        self.ids: dict[int, str] = {}
        self.manifest: dict[str, Any] = {}
        self.states: dict[str, str] = {}

    def all(self, report: Report) -> None:
        """The checks."""
        with self.server:
            report.check(f"{self.part} orders, one in {DECLINED_EACH} declined", self.post_first)
            report.check("a backup that is stopped leaves nothing", self.stop_backup)
            report.check("a backup in the middle of the load", self.back_up)
            report.check("kill -9 of the server in the middle of later orders", self.kill_for_good)
        report.check("restored on another path, it has the orders of that moment", self.restore)
        report.check("paused, it calls no service", self.start_paused)
        with self.copy:
            report.check("every order ends, once everything is posted again", self.all_end)
            report.check("each effect once: the service's books and the orders agree", self.books_agree)

    def post_first(self) -> str:
        """The orders before the backup."""
        with ThreadPoolExecutor(POSTERS) as pool:
            list(pool.map(self.post, range(self.part)))
        return f"{len(self.ids)} orders"

    def stop_backup(self) -> None:
        """By SIGTERM, as it computes the checksum."""
        line = [str(self.server.program), "backup", str(self.backup), "--data", str(self.server.data)]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as backup:
            assert backup.stderr is not None
            expect(any(said.startswith("computing") for said in backup.stderr), "it ended before")
            backup.terminate()
            backup.communicate()
        expect_equal("exit status", backup.returncode, 128 + signal.SIGTERM)
        expect_equal("what is left", list(self.backup.parent.glob("*backup*")), [])

    def post(self, number: int, is_over: threading.Event | None = None) -> None:
        """Posts one order until it is accepted, under the same key every time. Gives up once the load is over."""
        # The service declines the step whose key ends so.
        declined = {"Decline": "/ship"} if number % DECLINED_EACH == 0 else {}
        document = {"Number": number, "Pad": f"{number:08}" * (PAD_BYTES // 8), **declined}
        self.posted.add(number)

        def accepted() -> str | None:
            try:
                status, answer = self.system.ask("POST", "/orders", document, {"Idempotency-Key": f"order-{number}"})
            except OSError:
                # The server is killed: whether it took the order is not known.
                return "unknown" if is_over is not None and is_over.is_set() else None
            return str(answer["OrderID"]) if status in (200, 202) else None

        order_id = until(f"order {number} is accepted", accepted)
        if order_id != "unknown":
            expect_equal(f"the id of order {number}", order_id, self.ids.setdefault(number, order_id))

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        """Posts further orders as long as the block runs, at most those of one part."""
        is_over = threading.Event()
        first = max(self.posted) + 1

        def post(poster: int) -> None:
            for number in range(first + poster, first + self.part, POSTERS):
                if is_over.is_set():
                    return
                self.post(number, is_over)

        with ThreadPoolExecutor(POSTERS) as pool:
            posted = [pool.submit(post, poster) for poster in range(POSTERS)]
            try:
                begun = len(self.ids) + POSTERS
                until("the load has begun", lambda: len(self.ids) > begun, pause_s=0.02)
                yield
            finally:
                is_over.set()
        for one in posted:
            one.result()

    def back_up(self) -> str:
        """The load goes on, also while it copies."""
        words = ("backup", str(self.backup), "--data", str(self.server.data), "-o", "json")
        with self.load():
            done = self.server.run(*words)
        expect_equal(f"exit status: {done.stderr}", done.returncode, 0)
        self.manifest = json.loads(done.stdout)
        again = self.server.run(*words)
        expect_equal(f"a second one of the same name: {again.stderr}", again.returncode, 2)
        return f"{self.manifest['Bytes'] // 1_000_000} MB, transaction {self.manifest['Transaction']}"

    def kill_for_good(self) -> str:
        """Many of the last orders are under way."""
        with self.load():
            self.server.end()
        return f"{len(self.ids)} orders were accepted, {len(self.posted)} posted"

    def restore(self) -> str:
        """By the command, which refuses a second time; the doctor finds nothing wrong."""
        words = ("restore", str(self.backup), "--data", str(self.copy.data))
        restored = self.server.run(*words, "-o", "json")
        expect_equal(f"exit status: {restored.stderr}", restored.returncode, 0)
        told = json.loads(restored.stdout)
        expect_equal("the backup", told["Backup"], self.manifest)
        expect_equal("the transaction", told["Transaction"], self.manifest["Transaction"])
        expect(told["OrdersUnderWay"] > 0, f"the backup was taken in the middle: {told}")
        again = self.server.run(*words)
        expect_equal(f"a second restore: {again.stderr}", again.returncode, 2)
        looked = self.server.run("doctor", "--data", str(self.copy.data))
        expect("database: sound" in looked.stdout, looked.stdout + looked.stderr)
        return f"{told['OrdersUnderWay']} orders were under way"

    def start_paused(self) -> str:
        """The restored orders are there, some of them open."""
        before = Counter(self.service.done), Counter(self.service.undone)
        with self.paused:
            known = [self.paused.ask("GET", f"/orders/{order_id}") for order_id in self.ids.values()]
            expect_equal("ready", self.paused.ask("GET", "/ready")[0], 503)
        expect_equal("the books", (self.service.done, self.service.undone), before)
        there = Counter(task["ProcessState"] for status, task in known if status == 200)
        missing = sum(status == 404 for status, _ in known)
        expect(missing > 0, "orders came after the backup")
        return f"{dict(there)}; {missing} came after the backup"

    def all_end(self) -> str:
        """Customers do not know which of their orders are missing: they post each again."""
        self.system = self.copy
        with ThreadPoolExecutor(POSTERS) as pool:
            list(pool.map(self.post, sorted(self.posted)))
            ended = pool.map(lambda order_id: self.copy.seen(order_id, is_ended), self.ids.values())
            self.states = {task["OrderID"]: task["ProcessState"] for task in ended}
        expected = Counter(ENDED[number % DECLINED_EACH == 0] for number in self.ids)
        expect_equal("the ends", Counter(self.states.values()), expected)
        return f"{dict(expected)}"

    def books_agree(self) -> str:
        """A processed order had each step once, and a compensated one has nothing left."""
        done, undone = self.service.done, self.service.undone
        for order_id, state in self.states.items():
            for step, _, _ in SHOP:
                key = f"{order_id}/{step}"
                holds = (done[key], undone[key]) == (1, 0) if state == "Processed" else done[key] == undone[key] <= 1
                expect(holds, f"{key} of an order that is {state}: done {done[key]}, undone {undone[key]}")
        known = {f"{order_id}/{step}" for order_id in self.states for step, _, _ in SHOP}
        expect_equal("effects of orders that nobody knows", set(done) - known, set())
        return f"{sum(done.values())} done, {sum(undone.values())} undone"


def is_ended(task: dict[str, Any]) -> bool:
    """Whether an order is over."""
    return task["ProcessState"] in ENDED
