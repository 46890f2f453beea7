"""The orders of the suite `callbacks`."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from callbacks.bank import COURIER, Bank
from callbacks.webhooks import SCHEMES
from harness.report import Report, expect, expect_equal, until
from workflows.run import SHIPPED, System

POSTERS = 8
KILLS = 2
CANCEL_EACH = 30
ENDED = ("Processed", "Compensated")


class Run:
    """The orders of a run."""

    def __init__(self, system: System, bank: Bank, orders: int, secrets: Path | None = None) -> None:
        """With a folder for `secrets` that the system can read, half of the payments are confirmed by signed events."""
        self.system, self.bank, self.count = system, bank, orders
        self.secrets = secrets
        self.ids: list[str] = []
        self.states: dict[str, str] = {}
        # A result that is never told is asked for after this time.
        self.wait_within_s = round(2 * bank.seconds + 10)

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("a workflow whose payment may be told later is applied", self.apply)
        report.check(f"{self.count} orders, and kill -9 twice while results come", self.post_and_kill)
        report.check("every order has ended", self.all_end)
        report.check("each effect once: the bank's books and the orders agree", self.books_agree)

    def apply(self) -> None:
        """A payment that may be told later, then a step that is refused for one order in twenty."""

        def workflow(name: str, agent: str) -> dict[str, str]:
            text = (
                f'name = "{name}"\nversion = 1\n[[step]]\nname = "pay"\nagent = "{agent}"\n'
                f'wait_within = "{self.wait_within_s}s"\nkeep = {{ ID = "/PaymentID" }}\n'
                '[[step]]\nname = "ship"\nagent = "carrier"\nafter = ["pay"]\n'
            )
            return {"Name": f"workflows/{name}.toml", "Text": text}

        settings = f'default = "paid-later"\n[agents.lender]\nurl = "{self.bank.url}"\nsettles_within = "11s"\n'
        settings += f'[agents.carrier]\nurl = "{self.bank.url}{COURIER}"\n'
        settings += SHIPPED
        files = [workflow("paid-later", "lender")]
        if self.secrets is not None:
            for scheme in SCHEMES.values():
                settings += scheme.settings(self.bank.url, self.secrets)
                files.append(workflow(scheme.workflow, scheme.agent))
        files.append({"Name": "stepwarden.toml", "Text": settings})
        status, body = self.system.ask("POST", "/configuration", {"By": "test", "Reason": "a test", "Files": files})
        expect_equal(str(body), status, 200)
        expect("callback addresses: a new key" in body["Changes"], str(body))
        self.system.has_applied()

    def post_and_kill(self) -> str:
        """Each part of the orders is posted under a load of results of the parts before."""
        part = -(-self.count // (KILLS + 1))
        for begin in range(0, self.count, part):
            with ThreadPoolExecutor(POSTERS) as pool:
                self.ids += pool.map(self.post, range(begin, min(begin + part, self.count)))
            if begin + part < self.count:
                until("results come", lambda: self.bank.told["result 202"] > 0)
                self.system.kill()
        cancelled = [self.cancel(order) for order in self.ids[::CANCEL_EACH]]
        return f"{KILLS} kills, {sum(cancelled)} orders cancelled"

    def cancel(self, order: str) -> bool:
        """Cancels an order, whose result may come later. Whether it was under way."""
        return self.system.ask("POST", f"/orders/{order}/cancel", {"By": "test", "Reason": "a test"})[0] == 202

    def post(self, number: int) -> str:
        """Posts one order."""
        document: dict[str, Any] = {"Number": number, "Total": 10 + number}
        if self.secrets is not None and number % 2:
            document["Workflow"] = list(SCHEMES.values())[number // 2 % len(SCHEMES)].workflow

        def accepted() -> str | None:
            try:
                status, body = self.system.ask("POST", "/orders", document, {"Idempotency-Key": f"order-{number}"})
            except OSError:
                return None
            return str(body["OrderID"]) if status == 202 else None

        return until(f"order {number} is accepted", accepted)

    def all_end(self) -> str:
        """Every order ends, those whose result is never told after the wait for it."""
        left = set(self.ids)
        deadline = time.monotonic() + 120 + 4 * (self.bank.seconds + self.wait_within_s)

        def look(order: str) -> tuple[str, str]:
            status, answer = self.system.ask("GET", f"/orders/{order}")
            # A killed function answers nothing for a moment. It stores its orders when their messages come again.
            return order, answer["ProcessState"] if status == 200 else f"unread, {status}"

        while left:
            with ThreadPoolExecutor(POSTERS) as pool:
                for order, state in pool.map(look, left):
                    self.states[order] = state
            left = {order for order in left if self.states[order] not in ENDED}
            expect(time.monotonic() < deadline, f"not ended: {Counter(self.states[one] for one in left)}, {left}")
            time.sleep(0.3 if left else 0)
        return f"{dict(Counter(self.states.values()))}; posts of the bank: {dict(sorted(self.bank.told.items()))}"

    def books_agree(self) -> str:
        """A processed order was charged once, and a compensated one has nothing left."""
        for order, state in self.states.items():
            key = f"{order}/pay"
            charged, refunded = self.bank.charged[key], self.bank.refunded[key]
            expected = charged == 1 and refunded == 0 if state == "Processed" else charged == refunded <= 1
            expect(expected, f"{order} is {state}: charged {charged}, refunded {refunded}")
        charged, refunded = sum(self.bank.charged.values()), sum(self.bank.refunded.values())
        return f"{charged} charged, {refunded} refunded, {len(self.bank.lost)} never told"
