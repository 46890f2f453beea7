"""Measures what an order takes of AWS in the deployed form, on an emulator.

    tests/run emulator [--quick] [--built]

Deploys the template to an emulator on this machine, takes orders through with 1, 10 and 100 in flight, and prints
units, requests and invocations, with dollars for a million. The emulator's batches are its own, and it takes no time
for a request that AWS would: the bench `bill` has both. Needs the same as `tests/run deployed`.

--quick  a fifth of the orders
--built  deploys the last `sam build`
"""

from __future__ import annotations

import concurrent.futures
import json
import re
import tempfile
import time
from pathlib import Path

import prices
from harness import command, tools
from harness.api import ApiClient, caller
from harness.deployment import BUILD, Deployment, build, client, deploy
from harness.emulator import Emulator
from harness.report import until

HERE = Path(__file__).resolve().parent
# In flight, and orders.
ROWS = [(1, 20), (10, 60), (100, 300)]
ORDER_S_MAX = 300.0
FUNCTIONS = ("api", "submission", "scheduler", "agents", "supervisor")
WRITE_UNITS_MAX = 9
MESSAGES_MAX = 7


class Bench:
    """A deployment and its meter."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.deployment = deployment
        self.counts_file = folder / "counts.json"
        self.application: ApiClient = caller(deployment, "application", "ApplicationPolicyArn")
        self.dynamo = client(deployment.emulator, "dynamodb")
        self.logs = client(deployment.emulator, "logs")

    def carry(self, orders: int, in_flight: int) -> None:
        """Takes so many orders through, so many of them at the same time."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
            begun, posts = 0, []
            finished_before = self.finished()
            while (finished := self.finished() - finished_before) < orders:
                while begun < min(orders, finished + in_flight):
                    posts.append(pool.submit(self.post, begun))
                    begun += 1
                time.sleep(0.2)
            for post in posts:
                post.result()

    def post(self, number: int) -> None:
        """One order of about 250 bytes."""
        customer = {
            "Name": "Ada Lovelace",
            "Street": "12 St James Square",
            "City": "London",
            "Postcode": "SW1Y 4LB",
            "Country": "GB",
        }
        order = {
            "Item": "mug, blue, hand-made",
            "Quantity": 2,
            "Total": 25.0,
            "Currency": "EUR",
            "Reference": f"bench-{number:010}",
            "Customer": customer,
            "Gift": False,
            "Note": "ring twice",
        }

        def accepted() -> bool:
            return self.application.post("/orders", order).status == 202

        until("an order is accepted", accepted, ORDER_S_MAX, pause_s=1.0)

    def finished(self) -> int:
        """Orders that ended, counted with the root key, which the meter leaves out."""
        pages = self.dynamo.get_paginator("scan").paginate(
            TableName=self.deployment.table("Tasks"),
            FilterExpression="ProcessState = :processed",
            ExpressionAttributeValues={":processed": {"S": "Processed"}},
            Select="COUNT",
        )
        return sum(page["Count"] for page in pages)

    def counts(self) -> dict[str, float]:
        """What was counted so far, once nothing is on its way any more."""
        before: dict[str, float] = {}
        while (now := json.loads(self.counts_file.read_text())) != before:
            before = now
            time.sleep(1.0)
        return now

    def logged(self) -> tuple[int, float, int]:
        """Invocations, their milliseconds and the bytes of their logs so far, as the platform's log tells them."""
        invocations, duration_ms, log_bytes = 0, 0.0, 0
        beside = int(prices.ASSUMED["log_bytes_per_line_beside"])
        for function in FUNCTIONS:
            group = f"/aws/lambda/{self.deployment.function(function)}"
            for page in self.logs.get_paginator("filter_log_events").paginate(logGroupName=group):
                for event in page["events"]:
                    log_bytes += len(event["message"].encode()) + beside
                    if found := re.search(r"^REPORT .*?Duration: ([0-9.]+) ms", event["message"]):
                        invocations += 1
                        duration_ms += float(found[1])
        return invocations, duration_ms, log_bytes


def measure(bench: Bench, in_flight: int, orders: int) -> prices.Taken:
    """One row."""
    counts, (invocations, duration_ms, log_bytes) = bench.counts(), bench.logged()
    bench.carry(orders, in_flight)
    after, (invocations_after, duration_ms_after, log_bytes_after) = bench.counts(), bench.logged()

    def each(name: str) -> float:
        return (after.get(name, 0) - counts.get(name, 0)) / orders

    return prices.Taken(
        write_units=each("write_units"),
        read_units=each("read_units"),
        messages=each("messages"),
        sqs_requests=each("sqs_requests"),
        events=each("events"),
        invocations=(invocations_after - invocations) / orders,
        duration_ms=(duration_ms_after - duration_ms) / orders,
        log_bytes=(log_bytes_after - log_bytes) / orders,
    )


def print_row(in_flight: int, taken: prices.Taken) -> bool:
    """Prints a row; gives whether it is within its limits."""
    print(
        f"{in_flight:>3} in flight: {taken.write_units:.2f} write units, {taken.read_units:.2f} read units, "
        f"{taken.messages:.2f} messages in {taken.sqs_requests:.2f} requests, {taken.events:.2f} events, "
        f"{taken.invocations:.2f} invocations, {taken.log_bytes:.0f} bytes of log\n"
        f"               ${taken.dollars():.2f} for a million, and ${taken.dollars_of_time():.2f} for the "
        f"{taken.duration_ms:.0f} ms that this machine took for the functions",
        flush=True,
    )
    return taken.write_units <= WRITE_UNITS_MAX and taken.messages <= MESSAGES_MAX


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("emulator")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--built", action="store_true")
    options = parser.parse_args()
    tools.environment("sam")
    if not options.built or not BUILD.exists():
        print("sam build", flush=True)
        build()
    with tempfile.TemporaryDirectory(prefix="stepwarden-bill-", ignore_cleanup_errors=True) as folder:
        with Emulator(Path(folder), main=HERE / "counting_main.py") as emulator:
            print("sam deploy", flush=True)
            bench = Bench(deploy(emulator), Path(folder))
            # The first orders start the functions' processes.
            bench.carry(5, 5)
            all_good = True
            for in_flight, orders in ROWS:
                orders = max(in_flight, orders // 5) if options.quick else orders
                all_good &= print_row(in_flight, measure(bench, in_flight, orders))
            standard, express = prices.standard(), prices.express()
            print("Step Functions, the same steps behind the same HTTP API: ", end="")
            print(f"Standard ${standard:.2f}, Express ${express:.2f}")
    return 0 if all_good else 1


if __name__ == "__main__":
    command.run(main)
