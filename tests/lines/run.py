"""The run of the suite `lines`, for one machine and for the deployed form."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.report import CheckFailed, Report, expect, expect_equal, until
from harness.serve import ask
from harness.tools import ToolError
from lines.bank import Bank
from lines.orders import DROP_MAX, Order, draw
from workflows.run import SHIPPED, System

POSTERS = 8
KILLS = 2
CANCEL_EACH = 30
SERVICE = Path(__file__).with_name("service.js")
NODE = ("warehouse", "carrier")
ENDED = ("Processed", "Compensated")
# A result that is never told is asked for after this time.
WAIT_WITHIN_S = 15
END_S_MAX = 600

# Kills and busy machines cost attempts, and no order waits for a person because of that.
PATIENT = """max_failures = 20
complete_within = "1m"
"""
EACH = f"""{PATIENT}for_each = "/Order/Lines"
item_id = "/SKU"
"""
SALE = f"""name = "sale"
version = 1

[[step]]
name = "charge"
agent = "bank"
{PATIENT}send = {{ number = "/Order/Number", amount = "= sum(/Order/Lines, /Item/Price * /Item/Quantity)" }}
keep = {{ Payment = "/payment" }}
[step.undo]
send = {{ number = "/Order/Number", payment = "/Outputs/charge/Payment?" }}

[[step]]
name = "cover"
agent = "bank"
after = ["charge"]
{EACH}method = "GET"
path = "?payment={{/Outputs/charge/Payment}}&sku={{/Item/SKU}}"
[step.drop]
send = {{ payment = "/Outputs/charge/Payment", amount = "= /Item/Price * /Item/Quantity" }}

[[step]]
name = "reserve"
agent = "warehouse"
after = ["cover"]
{EACH}on_rejected = "drop"
drop_max = "{DROP_MAX}%"
send = {{ sku = "/Item/SKU", quantity = "/Item/Quantity", luck = "/Item/Luck" }}
keep = {{ Shelf = "/shelf" }}
[step.undo]
send = {{ sku = "/Item/SKU" }}

[[step]]
name = "ship"
agent = "carrier"
after = ["reserve"]
{EACH}on_rejected = "drop"
drop_max = "{DROP_MAX}%"
wait_within = "{WAIT_WITHIN_S}s"
send = {{ sku = "/Item/SKU", shelf = "/Outputs/reserve/Shelf", luck = "/Item/Luck" }}
keep = {{ Parcel = "/parcel" }}
[step.undo]
send = {{ sku = "/Item/SKU" }}

[[step]]
name = "receipt"
agent = "bank"
after = ["ship"]
{PATIENT}path = "receipt"
send = {{ parcels = "/Outputs/ship", refuse = "/Order/Refuse" }}
[step.undo]
path = "receipt"
send = {{}}
"""


class Services:
    """The bank, the warehouse and the carrier. Leaving its `with` stops them."""

    def __init__(self) -> None:
        self.bank = Bank()
        self.urls = {"bank": self.bank.url}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Services:
        self._stack.enter_context(self.bank)
        for name in NODE:
            try:
                process = subprocess.Popen(["node", str(SERVICE), name], stdout=subprocess.PIPE, text=True)
            except FileNotFoundError as missing:
                raise ToolError("needs Node: the warehouse and the carrier are programs for it") from missing
            self._stack.callback(process.kill)
            assert process.stdout is not None
            self.urls[name] = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def settings(self) -> str:
        """The file `stepwarden.toml`."""
        calls = {"bank": ("payments", "refunds"), "warehouse": ("do", "undo"), "carrier": ("do", "undo")}
        tables = (
            f'[agents.{name}]\nurl = "{url}"\nforward = "{calls[name][0]}"\nundo = "{calls[name][1]}"\n'
            'settles_within = "11s"\n'
            for name, url in self.urls.items()
        )
        return 'default = "sale"\n' + "".join(tables) + SHIPPED

    def books(self, name: str) -> dict[str, Any]:
        """The books of a service on Node."""
        return dict(ask("GET", f"{self.urls[name]}/books")[1])


class Run:
    """The orders of a run."""

    def __init__(self, system: System, services: Services, orders: int, seed: int) -> None:
        self.system, self.services = system, services
        self.orders = draw(orders, seed)
        self.ids: list[str] = []
        self.cancelled: set[str] = set()
        self.tasks: dict[str, dict[str, Any]] = {}
        # What the API said last of an order.
        self.last: dict[str, Any] = {}

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        lines = sum(len(order.lines) for order in self.orders)
        report.check("a sale of several lines is applied", self.apply)
        report.check(f"{len(self.orders)} orders of {lines} lines, and kill -9 twice under load", self.post_and_kill)
        report.check("every order ends as its lines do, and says which it carried", self.all_end)
        report.check("each line has its effects once, or none is left: bank, warehouse, carrier", self.books_agree)

    def apply(self) -> None:
        """Applies the workflow and its services."""
        files = [
            {"Name": "workflows/sale.toml", "Text": SALE},
            {"Name": "stepwarden.toml", "Text": self.services.settings()},
        ]
        body = {"By": "test", "Reason": "a test", "Files": files}
        status, answer = self.system.ask("POST", "/configuration", body)
        expect_equal(f"the answer {answer}", status, 200)
        self.system.has_applied()

    def post_and_kill(self) -> str:
        """Each part of the orders is posted while the parts before are under way."""
        part = -(-len(self.orders) // (KILLS + 1))
        for begin in range(0, len(self.orders), part):
            told = sum(self.services.books("carrier")["told"].values())
            with ThreadPoolExecutor(POSTERS) as pool:
                self.ids += pool.map(self.post, self.orders[begin : begin + part])
            if begin + part < len(self.orders):
                until("results come", lambda told=told: sum(self.services.books("carrier")["told"].values()) > told)
                self.system.kill()
        self.cancelled = {order_id for order_id in self.ids[::CANCEL_EACH] if self.cancel(order_id)}
        return f"{KILLS} kills, {len(self.cancelled)} orders cancelled"

    def post(self, order: Order) -> str:
        """Posts one order, until it is accepted."""

        def accepted() -> str | None:
            try:
                status, body = self.system.ask("POST", "/orders", order.body(), {"Idempotency-Key": f"n{order.number}"})
            except OSError:
                return None
            expect(status != 422, str(body))
            return str(body["OrderID"]) if status == 202 else None

        return until(f"order {order.number} is accepted", accepted)

    def cancel(self, order_id: str) -> bool:
        """Cancels an order. Whether it was under way."""
        return self.system.ask("POST", f"/orders/{order_id}/cancel", {"By": "test", "Reason": "a test"})[0] == 202

    def all_end(self) -> str:
        """Every order ends, those with a result that is never told after the wait for it."""
        counts: Counter[str] = Counter()
        for order_id, order in zip(self.ids, self.orders, strict=True):
            task = self.tasks[order_id] = self.end_of(order_id)
            state, lines = task["ProcessState"], task["Lines"]
            counts[state] += 1
            carried, dropped = ([line.sku for line in lines] for lines in (order.carried, order.dropped))
            if order_id not in self.cancelled:
                expect_equal(f"the end of {order_id}", state, "Compensated" if order.is_compensated else "Processed")
            if state == "Processed":
                expect_equal(f"lines of {order_id}", lines, {"Carried": carried, "Dropped": dropped})
                counts["lines dropped"] += len(dropped)
            else:
                # How many it dropped before it turned round is a matter of time.
                expect(set(lines["Dropped"]) <= set(dropped), f"{order_id} dropped {lines['Dropped']} of {dropped}")
        return str(dict(counts))

    def end_of(self, order_id: str) -> dict[str, Any]:
        """The order at its end. A wait in vain tells how it was."""
        try:
            return until(f"{order_id} ends", lambda: self.ended(order_id), END_S_MAX)
        except CheckFailed as failed:
            steps = [step for step in self.last.get("Steps", []) if step["ProcessState"] in ("Pending", "Processing")]
            raise CheckFailed(f"{failed}: {self.last.get('ProcessState')}, {steps[:5]}") from failed

    def ended(self, order_id: str) -> dict[str, Any] | None:
        """The order, if it has ended."""
        status, task = self.system.ask("GET", f"/orders/{order_id}")
        self.last = task
        expect(status != 200 or task["ProcessState"] != "Error", f"{order_id}: {task.get('Reason')}")
        return dict(task) if status == 200 and task["ProcessState"] in ENDED else None

    def books_agree(self) -> str:
        """All that the three services did is what the ends of the orders say."""
        bank, books = self.services.bank, {name: self.services.books(name) for name in NODE}
        faults = [*bank.faults, *(fault for of in books.values() for fault in of["faults"])]
        expect(not faults, "\n".join(faults[:5]))
        steps = {"reserve": books["warehouse"], "ship": books["carrier"]}
        problems, known = [], set()
        for order_id, order in zip(self.ids, self.orders, strict=True):
            is_processed = self.tasks[order_id]["ProcessState"] == "Processed"
            for line in order.lines:
                for step, of in steps.items():
                    key = f"{order_id}/{step}/{line.sku}"
                    known.add(key)
                    found = (of["done"].get(key, 0), of["undone"].get(key, 0))
                    if found not in self.allowed(line, step, is_processed):
                        problems.append(f"{key}: done and undone {found}, {self.tasks[order_id]['ProcessState']}")
            problems += self.money(order_id, order, is_processed)
        done = {key for of in steps.values() for key in of["done"]}
        expect_equal("effects of no line", done - known, set())
        unknown = {key.split("/")[0] for key in [*bank.charged, *bank.refunds]} - set(self.ids)
        expect_equal("money of no order", unknown, set())
        expect(not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:20]))
        undone = sum(len(of["undone"]) for of in steps.values())
        return (
            f"{len(done)} effects, {undone} undone; {len(bank.charged)} charges, {len(bank.refunds)} refunds; "
            f"posts of the carrier: {dict(sorted(books['carrier']['told'].items()))}"
        )

    @staticmethod
    def allowed(line: Any, step: str, is_processed: bool) -> list[tuple[int, int]]:
        """How often a step of a line may have been done and undone."""
        if line.is_dropped and (line.is_gone or step == "ship"):
            return [(0, 0)]
        if not is_processed:
            return [(0, 0), (1, 1)]
        return [(1, 1)] if line.is_dropped else [(1, 0)]

    def money(self, order_id: str, order: Order, is_processed: bool) -> list[str]:
        """What in the bank's books does not fit the end of an order."""
        bank, faults = self.services.bank, []
        refunds = {key: amount for key, amount in bank.refunds.items() if key.startswith(f"{order_id}/")}
        whole = refunds.pop(f"{order_id}/charge/undo", None)
        parts = {f"{order_id}/cover/{line.sku}/undo": line.amount for line in order.dropped}
        expected = sum(line.amount for line in order.lines)
        if bank.charged.get(order_id, None if is_processed else expected) != expected:
            faults.append(f"{order_id}: {bank.charged.get(order_id)} charged, not {expected}")
        if is_processed and (whole is not None or refunds != parts):
            faults.append(f"{order_id}: refunds {refunds} and {whole}, not {parts}")
        if any(parts.get(key) != amount for key, amount in refunds.items()):
            faults.append(f"{order_id}: refunds {refunds}, not of {parts}")
        left = sum(line.amount for line in order.carried) if is_processed else 0
        if bank.left(order_id) != left:
            faults.append(f"{order_id}: {bank.left(order_id)} is left, not {left}")
        parcels = [None if line.is_dropped else {"Parcel": f"P-{line.sku}"} for line in order.lines]
        if bank.receipts.get(order_id) != (parcels if is_processed else None):
            faults.append(f"{order_id}: receipt {bank.receipts.get(order_id)}, not {parcels}")
        return faults
