"""The orders, the backups and the kills of the suite `backup`."""

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
from workflows.service import Service

POSTERS = 8
# Long documents, so that a backup takes long enough to be killed in the middle.
PAD_BYTES = 40_000
DECLINED_EACH = 7
STEPS = (("reserve", "stock", ""), ("pay", "bank", "reserve"), ("ship", "courier", "pay"))
STAGES = ("copying", "computing the checksum", "checking")
ENDED = ("Processed", "Compensated")


def configured(service: Service, path: Path) -> Path:
    """A configuration folder for one service that plays all three agents."""
    agents = "".join(f'\n[agents.{agent}]\nurl = "{service.url}"\n' for _, agent, _ in STEPS)
    steps = [
        f'\n[[step]]\nname = "{name}"\nagent = "{agent}"\nafter = {[after] if after else []}\n'
        for name, agent, after in STEPS
    ]
    shop = 'name = "shop"\nversion = 1\n' + "".join(steps)
    return folder(path, f'default = "shop"\n{agents}', {"shop-1": shop})


class Run:
    """The checks, one after the other, on one server."""

    def __init__(self, program: Path, service: Service, scratch: Path, orders: int) -> None:
        """`orders` is the number of orders in each part; `scratch` is a folder for all files."""
        self.service, self.scratch, self.part = service, scratch, orders
        self.backups = scratch / "backups"
        self.backups.mkdir()
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
            report.check(f"{self.part} orders, one in {DECLINED_EACH} declined", lambda: self.post_part(0))
            report.check("a backup that is killed in any stage leaves no backup", self.kill_backups)
            report.check("one that is stopped leaves nothing at all", self.stop_backup)
            report.check("a server that is killed under a backup starts again at once", self.kill_server)
            report.check("a backup in the middle of the load", self.back_up)
            report.check("kill -9 of the server in the middle of later orders", self.kill_for_good)
        report.check("restored on another path, it has the orders of that moment", self.restore)
        report.check("paused, it calls no service", self.start_paused)
        with self.copy:
            report.check("every order ends, once everything is posted again", self.all_end)
            report.check("each effect once: the service's books and the orders agree", self.books_agree)
            report.check("the export has each order, whole, as it ended", self.export)

    def words(self, name: str) -> list[str]:
        """The command of a backup."""
        return ["backup", str(self.backups / name), "--data", str(self.server.data), "-o", "json"]

    def begun(self, name: str) -> subprocess.Popen[str]:
        """A backup under way."""
        line = [str(self.server.program), *self.words(name)]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def reaches(backup: subprocess.Popen[str], stage: str) -> None:
        """Waits until a backup is in this stage."""
        assert backup.stderr is not None
        said = []
        for line in backup.stderr:
            said.append(line)
            if line.startswith(stage):
                return
        expect(False, f"it ended before {stage}: {said}")

    def post_part(self, part: int) -> str:
        """The orders of one part."""
        with ThreadPoolExecutor(POSTERS) as pool:
            list(pool.map(self.post, range(part * self.part, (part + 1) * self.part)))
        return f"{len(self.ids)} orders"

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

    def kill_backups(self) -> str:
        """One in each stage; what each leaves goes with the next."""
        for stage in STAGES:
            backup = self.begun("killed")
            self.reaches(backup, stage)
            backup.kill()
            backup.communicate()
            left = sorted(path.name for path in self.backups.iterdir())
            expect(left == [".stepwarden-backup.part"], f"killed while {stage}: {left}")
            refused = self.server.run("restore", str(self.backups / left[0]), "--data", str(self.scratch / "none"))
            expect_equal(f"a restore of what is left: {refused.stderr}", refused.returncode, 2)
        return f"in {', '.join(STAGES)}"

    def stop_backup(self) -> None:
        """By SIGTERM."""
        backup = self.begun("stopped")
        self.reaches(backup, "computing the checksum")
        backup.terminate()
        said = backup.communicate()[1]
        expect_equal(f"exit status: {said}", backup.returncode, 128 + signal.SIGTERM)
        expect_equal("what is left", list(self.backups.iterdir()), [])

    def kill_server(self) -> str:
        """The backup is halted as it copies, so that it is not done before. It gives up once it sees the new server."""
        lock = self.server.data / "stepwarden.lock"
        with self.load():
            backup = self.begun("under-a-kill")
            self.reaches(backup, "copying")
            backup.send_signal(signal.SIGSTOP)
            before = lock.stat().st_mtime_ns
            self.server.end()
            with ThreadPoolExecutor(1) as starter:
                started = starter.submit(self.server.start)
                try:
                    until("a new server has the directory", lambda: lock.stat().st_mtime_ns != before, pause_s=0.02)
                finally:
                    backup.send_signal(signal.SIGCONT)
                started.result()
            said = backup.communicate()[1]
        is_done = (self.backups / "under-a-kill").exists()
        expect_equal(f"exit status: {said}", backup.returncode, 0 if is_done else 5)
        return "the backup was done before" if is_done else said.splitlines()[-1]

    def back_up(self) -> str:
        """The load goes on, also while it copies."""
        with self.load():
            done = self.server.run(*self.words("good"))
        expect_equal(f"exit status: {done.stderr}", done.returncode, 0)
        self.manifest = json.loads(done.stdout)
        again = self.server.run(*self.words("good"))
        expect_equal(f"a second one of the same name: {again.stderr}", again.returncode, 2)
        return f"{self.manifest['Bytes'] // 1_000_000} MB, transaction {self.manifest['Transaction']}"

    def kill_for_good(self) -> str:
        """Many of the last orders are under way."""
        with self.load():
            self.server.end()
        return f"{len(self.ids)} orders were accepted, {len(self.posted)} posted"

    def restore(self) -> str:
        """By the command, which refuses a second time; the doctor finds nothing wrong."""
        words = ("restore", str(self.backups / "good"), "--data", str(self.copy.data))
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
            for step, _, _ in STEPS:
                key = f"{order_id}/{step}"
                holds = (done[key], undone[key]) == (1, 0) if state == "Processed" else done[key] == undone[key] <= 1
                expect(holds, f"{key} of an order that is {state}: done {done[key]}, undone {undone[key]}")
        known = {f"{order_id}/{step}" for order_id in self.states for step, _, _ in STEPS}
        expect_equal("effects of orders that nobody knows", set(done) - known, set())
        return f"{sum(done.values())} done, {sum(undone.values())} undone"

    def export(self) -> str:
        """In pieces of the API's own JSON."""
        done = self.server.run("export", "--since", "1h", "--api", self.copy.url)
        expect_equal(f"exit status: {done.stderr}", done.returncode, 0)
        orders = [json.loads(line) for line in done.stdout.splitlines()]
        expect_equal("the orders", Counter(order["OrderID"] for order in orders), Counter(self.ids.values()))
        expect_equal("their ends", {one["OrderID"]: one["ProcessState"] for one in orders}, self.states)
        sample = self.copy.get(f"/orders/{orders[0]['OrderID']}")
        expect_equal("an order", orders[0], sample)
        expect(all(order["History"] and order["Steps"] for order in orders), "each has its history and its steps")
        return f"{len(orders)} orders"


def is_ended(task: dict[str, Any]) -> bool:
    """Whether an order is over."""
    return task["ProcessState"] in ENDED
