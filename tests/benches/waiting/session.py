"""Shows what orders cost that wait for a result: processor, memory, and the time of a new order beside them.

    tests/run waiting [--program FILE] [--orders N]

--program FILE  uses this `stepwarden` instead of a debug build
--orders N      orders that wait, 100,000 unless given

Half of the orders wait for a callback, half for an approval. Each figure is beside that of an empty store of the same
run. Takes a quarter of an hour with a debug build.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness import command, tools
from harness.report import until
from harness.serve import Server

POSTERS = 16
# New orders alone, whose times are compared, and the time in which nothing happens.
ALONE, IDLE_S = 100, 60
WARM_UP = 20
# The first look comes after the time in which a wake counts as lost, in the workflows here 30 s.
FIRST_LOOK_S = 45
STEPWARDEN = """
default = "plain"
[agents.quick]
[agents.late]
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
# The stand-in answers 202 for a minute. The step waits for a result, so it is not called again.
PENDING = {"late": {"PendingMs": 60_000}}


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("waiting")
    parser.add_argument("--program")
    parser.add_argument("--orders", type=int, default=100_000)
    options = parser.parse_args()
    program = tools.stepwarden(options.program)
    with tempfile.TemporaryDirectory(prefix="stepwarden-waiting-") as scratch:
        base = Path(scratch)
        with Server(program, base / "data", "--config", str(folder(base / "config"))) as server:
            return measure(server, options.orders)


def folder(into: Path) -> Path:
    """The configuration."""
    (into / "workflows").mkdir(parents=True)
    (into / "stepwarden.toml").write_text(STEPWARDEN)
    for text in (PLAIN, CALLBACK, APPROVAL):
        name = re.findall(r'^name = "(\w+)"', text, re.MULTILINE)[0]
        (into / "workflows" / f"{name}-1.toml").write_text(text)
    return into


def measure(server: Server, orders: int) -> int:
    """Measures in the empty store and in the full one, and prints a table."""
    alone(server, WARM_UP)
    empty = figures(server)
    began = time.monotonic()
    post(server, orders)
    print(f"{orders} orders were posted in {time.monotonic() - began:.0f} s", file=sys.stderr)
    until("all of them wait", lambda: waiting(server) >= orders, within_s=1_800, pause_s=2)
    # The first look of a supervisor at each of them was planned before they waited.
    time.sleep(FIRST_LOOK_S)
    until("nothing is left to do", lambda: busy_percent(server, 10) < 2, within_s=1_800, pause_s=1)
    full = figures(server)
    bytes_each = (full["rss"] - empty["rss"]) / orders
    print(f"{'':34} {'empty':>10} {'with them':>10}")
    print(f"{'processor while nothing happens, %':34} {empty['busy']:>10.2f} {full['busy']:>10.2f}")
    print(f"{'memory, MiB':34} {empty['rss'] / 2**20:>10.1f} {full['rss'] / 2**20:>10.1f}")
    print(f"{'a new order alone, p50, ms':34} {empty['alone']:>10.2f} {full['alone']:>10.2f}")
    print(f"{bytes_each:.0f} bytes for each order that waits; a new order takes {full['alone'] / empty['alone']:.2f} times")
    is_good = full["busy"] < 1 and bytes_each <= 300 and full["alone"] <= 1.2 * empty["alone"]
    print("within the limits" if is_good else "NOT within the limits: 1 % of a core, 300 bytes, 1.2 times")
    return 0 if is_good else 1


def figures(server: Server) -> dict[str, float]:
    """What is compared."""
    alone_ms = alone(server, ALONE)
    return {"alone": alone_ms, "busy": busy_percent(server, IDLE_S), "rss": resident(server)}


def alone(server: Server, count: int) -> float:
    """The median time of an order that is posted alone, in ms."""
    took = []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for _ in range(count):
        began = time.perf_counter()
        connection.request("POST", "/orders", json.dumps({"Item": "mug"}), {"Prefer": "wait=20"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        took.append((time.perf_counter() - began) * 1_000)
        if body.get("ProcessState") != "Processed":
            raise tools.ToolError(f"an order alone is {answer.status} {body}")
    connection.close()
    return statistics.median(took)


def post(server: Server, orders: int) -> None:
    """Posts the orders that wait."""
    numbers, lock = iter(range(orders)), threading.Lock()
    failures: list[str] = []

    def poster() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or failures:
                return
            order = {"Workflow": "approval"} if number % 2 else {"Workflow": "callback", "StandIn": PENDING}
            connection.request("POST", "/orders", json.dumps({**order, "Item": f"mug {number}"}))
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 202:
                failures.append(f"{answer.status} {body!r}")

    posters = [threading.Thread(target=poster) for _ in range(POSTERS)]
    for one in posters:
        one.start()
    for one in posters:
        one.join()
    if failures:
        raise tools.ToolError(f"an order was not accepted: {failures[0]}")


def waiting(server: Server) -> int:
    """The orders under way whose first step is begun: the store counts them."""
    counts = {one["State"]: one["Count"] for one in server.get("/overview")["Counts"]}
    return int(counts["Processing"])


def busy_percent(server: Server, seconds: int) -> float:
    """The share of a core that the server uses."""
    before, began = processor_s(server), time.monotonic()
    time.sleep(seconds)
    return 100 * (processor_s(server) - before) / (time.monotonic() - began)


def processor_s(server: Server) -> float:
    """The time of the processor that the server used."""
    fields = Path(f"/proc/{pid(server)}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(server: Server) -> int:
    """The memory of the server, in bytes, without the pages of its files."""
    status = Path(f"/proc/{pid(server)}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1_024 if found else 0


def pid(server: Server) -> int:
    """The process of the server."""
    if server.process is None or server.process.pid is None:
        raise tools.ToolError("the server does not run")
    return server.process.pid


if __name__ == "__main__":
    command.run(main)
