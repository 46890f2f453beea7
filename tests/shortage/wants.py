"""What a server is refused, and what its clients must see."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from crowd import Crowd
from harness.report import Report, expect, until
from harness.serve import Server, folder
from harness.stub import Answer, Call, Stub
from harness.tools import ToolError
from places import Place

# After the want, everything goes on within this time.
AFTER_S_MAX = 5.0
# A runtime ends the threads that had no work for ten seconds.
IDLE_S = 11.0
PIDS = Path("/sys/fs/cgroup/pids")
# Beyond what the server has: none of its threads has a stack in it.
MEMORY_SPARE_BYTES = 1024 * 1024


class Wants:
    """The wants, one after the other, of one server on one file system."""

    def __init__(self, program: Path, place: Place, seconds: float) -> None:
        """`seconds` is how long each lasts."""
        self.place, self.seconds = place, seconds
        self.server = Server(program, place.folder / "data")

    def all(self, report: Report) -> None:
        """The checks."""
        with self.server:
            crowd = Crowd(self.server.port)
            try:
                # So the first reads come while no thread can be made.
                time.sleep(IDLE_S)
                wants: list[tuple[str, Callable[[], contextlib.AbstractContextManager[object]]]] = [
                    ("threads", self._threads),
                    ("descriptors", self._descriptors),
                    ("memory", self._memory),
                ]
                if self.place.is_own:
                    wants.append(("the disk", self._disk))
                for name, want in wants:
                    report.check(f"it wants {name}", functools.partial(self._one, crowd, want))
            finally:
                crowd.stop()
            report.check("each accepted order ends", lambda: self._ended(crowd))

    def _one(self, crowd: Crowd, want: Callable[[], contextlib.AbstractContextManager[object]]) -> str:
        pid = self.server.pid
        crowd.take()
        with want():
            crowd.begin()
            ready = []
            end = time.monotonic() + self.seconds
            while time.monotonic() < end:
                if want == self._disk:
                    # What is written back is clean, and the next write of it may need room.
                    subprocess.run(["sync", "--file-system", str(self.place.folder)], check=False)
                with contextlib.suppress(OSError):
                    ready.append(self.server.ask("GET", "/ready")[0])
                time.sleep(0.5)
        during = crowd.take()
        expect(self.server.is_running() and self.server.pid == pid, f"it ended: {self.server.log()[-2000:]}")
        ended = time.monotonic()
        # Whoever waited when the want ended still belongs to it.
        until("/ready says yes", lambda: self.server.ask("GET", "/ready")[0] == 200, within_s=AFTER_S_MAX)
        task = self.server.order(Item="after the want")
        expect(task["ProcessState"] == "Processed", f"an order after it: {task['ProcessState']}")
        took_s = time.monotonic() - ended
        expect(took_s <= AFTER_S_MAX, f"it went on after {took_s:.1f} s")
        time.sleep(1.0)
        late = crowd.take()
        unanswered = during.unanswered + late.unanswered
        expect(not unanswered, f"{len(unanswered)} without an answer, such as {unanswered[:3]}")
        expect(503 in ready, f"/ready said {ready}")
        expect(sum(during.statuses.values()) > 10, f"hardly any answer: {during.statuses}")
        slowest_s = max(during.slowest_s, late.slowest_s)
        said = f"/ready {sorted(set(ready))}, well after {took_s:.1f} s"
        return f"{dict(during.statuses)}, slowest {slowest_s:.1f} s, {said}"

    def _ended(self, crowd: Crowd) -> str:
        """Each order that was accepted ends, and a sample of them is as it should be."""

        def is_over() -> bool:
            counts = {one["State"]: one["Count"] for one in self.server.get("/overview")["Counts"]}
            return not any(counts.get(state, 0) for state in ("Pending", "Processing", "Compensating"))

        until("no order is under way", is_over, within_s=60)
        for order_id in crowd.accepted[:: max(1, len(crowd.accepted) // 200)]:
            state = self.server.get(f"/orders/{order_id}")["ProcessState"]
            expect(state == "Processed", f"order {order_id} is {state}")
        return f"{len(crowd.accepted)} orders"

    @contextlib.contextmanager
    def _threads(self) -> Iterator[None]:
        """No limit of the user binds root, so a cgroup says no."""
        if not (PIDS / "tasks").exists():
            raise ToolError("there is no cgroup of version 1 for threads at /sys/fs/cgroup/pids")
        group = PIDS / f"stepwarden-{os.getpid()}"
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(str(self.server.pid))
            (group / "pids.max").write_text("1")
            yield
        finally:
            with contextlib.suppress(OSError):
                (group / "pids.max").write_text("max")
                (PIDS / "cgroup.procs").write_text(str(self.server.pid))
            time.sleep(0.2)
            with contextlib.suppress(OSError):
                group.rmdir()

    @contextlib.contextmanager
    def _limited(self, what: int, limit: int) -> Iterator[None]:
        before = resource.prlimit(self.server.pid, what)
        resource.prlimit(self.server.pid, what, (limit, before[1]))
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self.server.pid, what, before)

    def _descriptors(self) -> contextlib.AbstractContextManager[None]:
        """No number above the lowest that is free, so that no more can be opened."""
        return self._limited(resource.RLIMIT_NOFILE, len(os.listdir(f"/proc/{self.server.pid}/fd")) // 2)

    def _memory(self) -> contextlib.AbstractContextManager[None]:
        status = Path(f"/proc/{self.server.pid}/statm").read_text()
        mapped = int(status.split()[0]) * resource.getpagesize()
        return self._limited(resource.RLIMIT_AS, mapped + MEMORY_SPARE_BYTES)

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        """Other files take all that is free, and whatever becomes free meanwhile."""
        fillers = []
        try:
            for number, size in enumerate((1 << 20, 1 << 16, 1 << 12)):
                filler = self.place.folder / f"filler-{number}"
                fillers.append(filler)
                with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                    # Random, so that no file system packs it.
                    while file.write(os.urandom(size)):
                        pass
            yield
        finally:
            for filler in fillers:
                filler.unlink(missing_ok=True)


class _Hanging(Stub):
    """Takes each call and never answers."""

    def answer(self, _: Call) -> Answer:
        """Too late."""
        time.sleep(60)
        return 200, {}


def few_descriptors(program: Path, scratch: Path) -> str:
    """A service whose calls hang takes all that it may, and clients still get in."""
    limited = scratch / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n 64\nexec {program} "$@"\n')
    limited.chmod(0o755)
    with _Hanging() as stub:
        settings = f'default = "few"\n[agents.slow]\nurl = "{stub.url}"\n'
        step = '[[step]]\nname = "call"\nagent = "slow"\ncomplete_within = "60s"\n'
        config = folder(scratch / "few", settings, {"few-1": f'name = "few"\nversion = 1\n{step}'})
        urls = [f"--{agent}-url={stub.url}" for agent in ("inventory", "payment", "shipping")]
        with Server(limited, scratch / "few-data", "--config", str(config), *urls) as server:
            for number in range(100):
                server.order(wait=False, key=f"few-{number}")
            slowest_s = 0.0
            for _ in range(50):
                began = time.monotonic()
                server.get("/orders?limit=5")
                slowest_s = max(slowest_s, time.monotonic() - began)
                time.sleep(0.05)
            at_once = len(stub.calls)
            expect(slowest_s < 2, f"a client waited for {slowest_s:.1f} s")
    return f"slowest {slowest_s:.2f} s beside {at_once} calls that hang"
