"""Shows what orders cost that wait for a result: processor, memory, and the time of a new order beside them.

    tests/run waiting [--program FILE] [--orders N]

--program FILE  uses this `stepwarden` instead of a debug build
--orders N      orders that wait, 100,000 unless given

Half of the orders wait for a callback, half for an approval. An empty store runs beside theirs, and each takes turns
with the other. The program keeps the orders that it saw last, and pages of its file, up to a bound. Therefore the memory of one
order is taken from the orders after the first 30,000, which fill both. Takes a quarter of an hour with a debug build.
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness import command, load, tools
from harness.report import until
from harness.serve import Server, folder
from harness.stub import Answer, Call, Stub

# New orders alone, whose times are compared, and the time in which nothing happens.
ALONE, IDLE_S = 100, 60
WARM_UP = 20
# So many orders fill what the program keeps of the orders that it saw last, and of its file.
FILL = 30_000
# The first look comes after the time in which a wake counts as lost, in the workflows here 30 s.
FIRST_LOOK_S = 45
STEPWARDEN = """
default = "plain"
[agents.quick]
[agents.late]
url = "{url}"
"""
PLAIN = """
name = "plain"
version = 1
[[step]]
name = "a"
agent = "quick"
[[step]]
name = "b"
agent = "quick"
after = ["a"]
"""
CALLBACK = """
name = "callback"
version = 1
[[step]]
name = "pay"
agent = "late"
wait_within = "30d"
[[step]]
name = "ship"
agent = "quick"
after = ["pay"]
"""
APPROVAL = """
name = "approval"
version = 1
[[step]]
name = "approve"
kind = "approval"
wait_within = "30d"
[[step]]
name = "ship"
agent = "quick"
after = ["approve"]
"""


WORKFLOWS = {"plain-1": PLAIN, "callback-1": CALLBACK, "approval-1": APPROVAL}


class Late(Stub):
    """A service that takes each call on, and remembers nothing of it. A stand-in would remember it within the program."""

    def answer(self, _: Call) -> Answer:
        """202, so the step waits for its result."""
        self.calls.clear()
        return 202, b""


def main() -> int:
    """Gives the exit status."""
    options = command.options("waiting", orders=100_000)
    if options.orders <= FILL:
        raise tools.ToolError(f"--orders must be more than {FILL}")
    program = options.program
    with tempfile.TemporaryDirectory(prefix="stepwarden-waiting-") as scratch, Late() as late:
        base = Path(scratch)
        config = str(folder(base / "config", STEPWARDEN.format(url=late.url), WORKFLOWS))
        with (
            Server(program, base / "data", "--config", config) as server,
            Server(program, base / "empty", "--config", config) as empty,
        ):
            return measure(server, empty, options.orders)


def measure(server: Server, empty: Server, orders: int) -> int:
    """Measures the empty store and the full one beside each other, and prints a table."""
    alone([server, empty], WARM_UP)
    wait_with(server, 0, FILL)
    filled = resident(server)
    wait_with(server, FILL, orders)
    bytes_each = (resident(server) - filled) / (orders - FILL)
    busy, busy_empty = busy_percent([server, empty], IDLE_S)
    new, new_empty = alone([server, empty], ALONE)
    memory = [resident(one) / 2**20 for one in (empty, server)]
    print(f"{'':34} {'empty':>10} {FILL:>10} {orders:>10}")
    print(f"{'processor while nothing happens, %':34} {busy_empty:>10.2f} {'':10} {busy:>10.2f}")
    print(f"{'memory, MiB':34} {memory[0]:>10.1f} {filled / 2**20:>10.1f} {memory[1]:>10.1f}")
    print(f"{'a new order alone, p50, ms':34} {new_empty:>10.2f} {'':10} {new:>10.2f}")
    print(f"{bytes_each:.0f} bytes for each order that waits; a new order takes {new / new_empty:.2f} times")
    is_good = busy < 1 and bytes_each <= 300 and new <= 1.2 * new_empty
    print("within the limits" if is_good else "NOT within the limits: 1 % of a core, 300 bytes, 1.2 times")
    return 0 if is_good else 1


def wait_with(server: Server, begin: int, end: int) -> None:
    """Posts the orders with these numbers, and waits until the program has nothing to do."""
    began = time.monotonic()
    workflows = ("callback", "approval")
    load.post_all(server.port, [{"Workflow": workflows[n % 2], "Item": "mug", "Number": n} for n in range(begin, end)])
    print(f"{end - begin} orders were posted in {time.monotonic() - began:.0f} s", file=sys.stderr)
    until("all of them wait", lambda: waiting(server) >= end, within_s=1_800, pause_s=2)
    # The first look of a supervisor at each of them was planned before they waited.
    time.sleep(FIRST_LOOK_S)
    until("nothing is left to do", lambda: busy_percent([server], 10)[0] < 2, within_s=1_800, pause_s=1)


def alone(servers: list[Server], count: int) -> list[float]:
    """The median time of an order that is posted alone, in ms, of each server. They take turns."""
    took: list[list[float]] = [[] for _ in servers]
    connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for server in servers]
    for _ in range(count):
        for connection, times in zip(connections, took, strict=True):
            began = time.perf_counter()
            connection.request("POST", "/orders", json.dumps({"Item": "mug"}), {"Prefer": "wait=20"})
            answer = connection.getresponse()
            body = json.loads(answer.read())
            times.append((time.perf_counter() - began) * 1_000)
            if body.get("ProcessState") != "Processed":
                raise tools.ToolError(f"an order alone is {answer.status} {body}")
    for connection in connections:
        connection.close()
    return [statistics.median(times) for times in took]


def waiting(server: Server) -> int:
    """The orders under way whose first step is begun: the store counts them."""
    counts = {one["State"]: one["Count"] for one in server.get("/overview")["Counts"]}
    return int(counts["Processing"])


def busy_percent(servers: list[Server], seconds: int) -> list[float]:
    """The share of a core that each server uses."""
    before, began = [server.cpu_ms() for server in servers], time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [(server.cpu_ms() - one) / passed / 10 for server, one in zip(servers, before, strict=True)]


def resident(server: Server) -> int:
    """The memory of the server, in bytes, without the pages of its files."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1_024 if found else 0


if __name__ == "__main__":
    command.run(main)
