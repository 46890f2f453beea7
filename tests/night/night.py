"""The night: twenty moments. At each of them something happens, and then every number everywhere is compared."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import everywhere
import questions
import shop
from compare import NOTHING, Compared, compare
from console.console import Console
from harness import load
from harness.report import Report, expect, expect_equal, until
from harness.serve import Server, ask, bury
from surfaces import Numbers, command, counted
from truth import FINAL, UNDER_WAY, Truth

HERE = Path(__file__).parent
SETTLES_WITHIN_S = 120.0
# An alert ends a minute after its cause is gone, at a look that comes every ten seconds.
ALERT_ENDS_WITHIN_S = 110.0
# How many moments post a share of the orders.
SHARES = 12
# More than a history keeps.
PAUSES = 26
LETTERS = ["<b>no message</b>"] * 3
OPERATOR = ("--by", "ann")


class Services:
    """The process of the services and of the sinks of alerts. Leaving its `with` ends it."""

    def __enter__(self) -> Services:
        line = [sys.executable, str(HERE / "services.py")]
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port, mail = self._process.stdout.readline().split()
        self.url, self.mail = f"http://127.0.0.1:{port}", f"smtp://127.0.0.1:{mail}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def tell(self, **wish: object) -> None:
        """Changes what they do."""
        expect_equal(f"the answer to {wish}", ask("POST", f"{self.url}/control", wish)[0], 200)

    def get(self, path: str) -> Any:
        """What they know."""
        return ask("GET", self.url + path)[1]


class Night:
    """The orders, the server and what happened to them."""

    def __init__(
        self,
        server: Server,
        services: Services,
        consoles: dict[str, Console],
        report: Report,
        orders: int,
        outage_s: int,
    ) -> None:
        """Payment that fails for `outage_s` needs an operator."""
        self.server, self.services, self.consoles, self.report = server, services, consoles, report
        self.total, self.outage_s = orders, outage_s
        self.ids: dict[int, str] = {}
        self.truth = Truth(server)
        self.compared = Compared()
        # Orders that are known to wait, and times of what happened.
        self.waiting = 0
        self.at: dict[str, float] = {}
        self.special: dict[str, str] = {}
        self.few, self.many = min(600, orders // 40), min(3_000, orders // 20)
        self.stuck = min(500, orders // 40)
        self._numbers = itertools.count()

    def all(self) -> None:
        """The moments, one after the other, and the end."""
        moments: list[tuple[str, Callable[[], object]]] = [
            ("before the first order of the night", lambda: None),
            ("a share of the orders", self.share),
            ("two orders are refused by the stock, and wait", lambda: self.share(self.refused_by_stock)),
            ("one order is refused by the carrier, and waits", lambda: self.share(self.refused_by_carrier)),
            ("one order is to be undone, and its undo is refused", lambda: self.share(self.undo_refused)),
            ("payment is down, and some orders wait for it", lambda: self.paused(self.outage(self.few))),
            ("more orders wait than the console counts", lambda: self.outage(self.many)),
            ("payment is up, and they go on by themselves", self.payment_up),
            ("a share of the orders", self.share),
            ("payment is down again", lambda: self.outage(self.stuck)),
            *[("orders that need no payment", self.gifts)] * 4,
            ("the orders of the outage need an operator", self.exhausted),
            ("payment is up; kill -9 under load, and dead letters", self.killed),
            ("a job resubmits the orders of the outage", self.resubmitted),
            ("stock and carrier are mended, one order is closed", self.mended),
            ("a refund by hand ends the order whose undo is refused", self.refunded_by_hand),
            ("the last orders, and the alerts are over", self.over),
        ]
        for number, (title, happens) in enumerate(moments, 1):
            self.report.section(f"moment {number}: {title}")
            if self.report.check("it happens, and nothing moves that should not", lambda: self.moment(happens)) is None:
                return
            self.look(number)
        self.report.section("the end")
        self.report.check(f"one alert for {self.stuck} orders of one cause, and its end was told", self.one_alert)
        self.report.check("the books agree with the orders: nothing lost, nothing doubled", self.books_agree)

    def moment(self, happens: Callable[[], object]) -> str:
        """Lets something happen, and waits until nothing is under way but the orders that are known to wait."""
        began = time.monotonic()
        happens()
        self.settle()
        states = self.truth.states()
        shown = ", ".join(f"{count} {state}" for state, count in states.items())
        return f"{states.total()} orders: {shown}; {time.monotonic() - began:.1f} s"

    def settle(self) -> None:
        """Waits until only the orders that are known to wait are under way, and the last alerts are written."""

        def is_settled() -> bool:
            states = self.truth.states()
            under_way = sum(states[state] for state in UNDER_WAY)
            return under_way == self.waiting and states.total() == len(self.ids)

        until(f"{self.waiting} orders are under way", is_settled, SETTLES_WITHIN_S)
        last = -1
        for _ in range(10 if self.waiting == 0 else 0):
            if last == (last := self.truth.transaction()):
                break
            time.sleep(0.5)

    def look(self, number: int) -> None:
        """Compares all numbers everywhere, and asks the questions of this moment."""
        places = everywhere.of_api(self.server, self.services.url)
        for size, console in self.consoles.items():
            places += everywhere.of_console(console, size)
        for place in places:
            self.report.check(place.title, lambda place=place: compare(self.truth, place, self.compared))
        self.report.check("a plain count has the numbers of the API", self.plain_count)
        for question in questions.ALL:
            if question.moment == number:
                for size, console in self.consoles.items():
                    asked = functools.partial(question.asked, self, console)
                    self.report.check(f"“{question.words}” in the console, {size}", asked)
        complaints = [line for console in self.consoles.values() for line in console.complaints]
        self.report.check("the browser complains about nothing", lambda: expect_equal("complaints", complaints, []))
        for console in self.consoles.values():
            console.complaints.clear()

    # ---- what happens

    def post(self, count: int, workflow: Callable[[int], str], stub: dict[str, str] | None = None) -> list[str]:
        """Posts orders; gives their ids. In a thread of its own, since the browser has the loop of this one."""
        numbers = [next(self._numbers) for _ in range(count)]
        orders = [shop.order(number, workflow(number), stub) for number in numbers]
        with ThreadPoolExecutor(1, "load") as pool:
            ids = pool.submit(load.post_all, self.server.port, orders).result()
        expect_equal("orders that got an id", len(ids), count)
        self.ids |= ids
        return [ids[number] for number in numbers]

    def share(self, then: Callable[[], object] = lambda: None) -> None:
        """Posts a twelfth of the orders, seven of ten with payment."""
        self.post(self.size_of_share(), shop.mixed)
        then()

    def size_of_share(self) -> int:
        """The rest of the orders in equal shares."""
        return (self.total - self.few - self.many - self.stuck - 4) // SHARES

    def gifts(self) -> None:
        """Posts a share without payment."""
        self.post(self.size_of_share(), lambda _: "gift")

    def refused_by_stock(self) -> None:
        """Two orders come to Error at their first step."""
        self.special["resubmitted"], self.special["closed"] = self.post(2, shop.only_shop, {"stock/do": "refuse"})

    def refused_by_carrier(self) -> None:
        """An order comes to Error at its last step."""
        (self.special["shipped later"],) = self.post(1, shop.only_shop, {"carrier/do": "refuse"})

    def undo_refused(self) -> None:
        """The card is declined, and the stock will never take its goods back."""
        stub = {"payment/do": "refuse for good", "stock/undo": "refuse for good"}
        (self.special["by hand"],) = self.post(1, shop.only_shop, stub)

    def outage(self, count: int) -> str:
        """Payment is down, and orders wait for it."""
        if self.waiting == 0:
            self.services.tell(Service="payment", Mode="down")
            self.at["down"] = time.time()
        # No declined ones, so that the orders of the outage have one cause.
        ids = self.post(count, shop.only_shop, {})
        self.waiting += count
        until("the last order has come to payment", lambda: self.has_come_to_payment(ids[-1]))
        return ids[0]

    def paused(self, order_id: str) -> None:
        """An operator pauses an order so often that its history is cut. Its numbers must not be."""
        for _ in range(PAUSES):
            for action, is_paused in (("pause", True), ("resume", False)):
                self.server.post(f"/orders/{order_id}/{action}", {"By": "ann", "Reason": "stock-taking"})
                self.server.seen(order_id, lambda task, is_paused=is_paused: ("Paused" in task) == is_paused)

    def has_come_to_payment(self, order_id: str) -> bool:
        """Whether the step of payment was claimed."""
        return any(task["Steps"][1]["Attempt"] for task in self.truth.tasks("order_id = ?", order_id))

    def payment_up(self) -> None:
        """Payment answers again."""
        self.services.tell(Service="payment", Mode="up")
        self.waiting = 0

    def exhausted(self) -> None:
        """The outage is longer than the horizon. An operator takes one of the orders on."""
        within_s = self.outage_s + 60
        until("they came to Error", lambda: self.truth.states()["Error"] == self.stuck + 4, within_s)
        self.waiting = 0
        cause = "order/exhausted/charge"
        until("the alert is told", lambda: self.told(cause), 30)
        until("the alert counts all of them", lambda: self.alert_counts(cause) == self.stuck, 30)
        (order_id,) = self.truth.rows("SELECT order_id FROM tasks WHERE process_state = 'Error' ORDER BY seq DESC LIMIT 1")[0]
        self.special["taken on"] = order_id
        self.command("note", order_id, "--take", "--reason", "I call the bank")

    def killed(self) -> None:
        """Ends the server in the middle of a share, and starts it again with messages that nobody could handle."""
        self.services.tell(Service="payment", Mode="up")
        goal = self.truth.states().total() + self.size_of_share() // 2
        with ThreadPoolExecutor(1, "kill") as pool:
            posting = pool.submit(self.share)
            until("half of the share is stored", lambda: self.truth.states().total() >= goal, pause_s=0.01)
            self.truth.close()
            self.server.end()
            bury(self.server.data, LETTERS)
            self.server.start()
            self.truth = Truth(self.server)
            posting.result()
        until("the dead letters are settled", lambda: self.truth.rows("SELECT count(*) FROM letters")[0][0] == len(LETTERS))
        until("their alert is told", lambda: self.told("dead-letter/Unreadable"), 30)

    def resubmitted(self) -> None:
        """All orders of one cause, by one command."""
        selected = ("--reason-code", "exhausted", "--step", "charge", "--rate", "200", "--yes")
        self.command("bulk", "resubmit", *selected, "--reason", "payment is back")
        until("none waits any more", lambda: self.truth.states()["Error"] == 4)

    def mended(self) -> None:
        """Two of the three other orders go on, and one is closed."""
        (job,) = self.server.get("/bulk")["Jobs"]
        found = (job["DryRun"]["Matching"], job["Tally"]["Begun"], job["Tally"]["Recovered"])
        expect_equal("the orders of the job", found, (self.stuck,) * 3)
        self.services.tell(Mended=True)
        going = (self.special["resubmitted"], self.special["shipped later"])
        self.command("resubmit", *going, "--reason", "they take it now", "--yes")
        self.command("close", self.special["closed"], "--reason", "the customer bought it elsewhere", "--yes")
        until("one order waits", lambda: self.truth.states()["Error"] == 1)

    def refunded_by_hand(self) -> None:
        """An operator puts the goods back, and says so."""
        order_id = self.special["by hand"]
        self.services.tell(ByHand=f"{order_id}/reserve/undo")
        reason = ("--reason", "put back by hand")

        def settles() -> bool:
            words = ("settle", order_id, "reserve", "--outcome", "undone", *reason, *OPERATOR)
            return self.server.command(*words).returncode == 0

        # It is refused as long as a call may still have its effect.
        until("the settle is accepted", settles, 60)
        until("no order waits", lambda: self.truth.states()["Error"] == 0)

    def over(self) -> None:
        """The rest of the orders. The alerts end a minute after their causes."""
        self.post(self.total - len(self.ids), shop.mixed)
        until("the alerts are over", self.alerts_are_over, ALERT_ENDS_WITHIN_S)

    # ---- what is known of it

    def command(self, *words: str) -> str:
        """A command of the operator."""
        return command(self.server, *words, *OPERATOR)

    def alerts(self, cause: str) -> list[str]:
        """The events about a cause that were told, as they came."""
        return [one["type"] for one in self.services.get("/alerts") if one["data"]["Cause"] == cause]

    def alert_counts(self, cause: str) -> int:
        """The number of orders that the alert about a cause has now."""
        return int(self.truth.rows("SELECT json_extract(body, '$.Count') FROM alerts WHERE cause = ?", cause)[0][0])

    def told(self, cause: str) -> bool:
        """Whether the begin of a cause was told."""
        return any(kind.endswith("AlertBegan") for kind in self.alerts(cause))

    def alerts_are_over(self) -> bool:
        """Whether no alert is on, and the sink knows. Dead letters are a cause for an hour."""
        rows = self.truth.rows("SELECT body FROM alerts WHERE cause NOT LIKE 'dead-letter/%'")
        causes = {one["data"]["Cause"] for one in self.services.get("/alerts")}
        told = all(len(self.alerts(cause)) == 2 for cause in causes if not cause.startswith("dead-letter/"))
        return told and all("EndedAt" in json.loads(body) for (body,) in rows)

    # ---- the end

    def plain_count(self) -> str:
        """Attempts go on where orders wait: then it is between two answers."""
        before, plain, after = counted(self.server), self.truth.counted(), counted(self.server)
        wrong = {name for name in plain.keys() | after.keys() if not is_between(before, plain, after, name)}
        expect(not wrong, "\n".join(f"{name}: {plain.get(name)} of {before.get(name)}, {after.get(name)}" for name in wrong))
        numbers = self.compared
        return f"{numbers.numbers} numbers were compared so far, {numbers.exact} of them while nothing moved"

    def one_alert(self) -> str:
        """Each cause was told once to each sink, and its end once. Dead letters are a cause for an hour."""
        told = self.services.get("/alerts")
        began = next(one for one in told if one["data"]["Cause"] == "order/exhausted/charge")
        causes = sorted({one["data"]["Cause"] for one in told})
        for cause in causes:
            events = [kind.rpartition(".")[2] for kind in self.alerts(cause)]
            expected = ["AlertBegan"] if cause.startswith("dead-letter/") else ["AlertBegan", "AlertEnded"]
            expect_equal(f"the events of {cause}", events, expected)
        expect_equal("causes about orders", len([cause for cause in causes if cause.startswith("order/")]), 4)
        # The same, once each, in the words for people.
        words = {"AlertBegan": "Alert", "AlertEnded": "Resolved"}
        events = [(one["type"].rpartition(".")[2], one["data"]["Cause"]) for one in told]
        expected = sorted(f"{words[kind]}: {cause} (Stepwarden)" for kind, cause in events)
        for sink in ("team", "mail"):
            until(f"the {sink} was told", lambda sink=sink: len(self.services.get("/told")[sink]) >= len(expected), 30)
            expect_equal(f"what the {sink} was told", sorted(self.services.get("/told")[sink]), expected)
        return f"it began with {began['data'].get('Count')} orders; all causes that were told: {', '.join(causes)}"

    def books_agree(self) -> str:
        """Every order is final. Each step of a processed one has its effect, and each of a compensated one none."""
        states = self.truth.states()
        expect_equal("orders", states.total(), self.total)
        expect_equal("orders that have ended", sum(states[state] for state in FINAL), self.total)
        keys = self.services.get("/keys")
        done, undone = set(keys["Done"]), {key.removesuffix("/undo") for key in (*keys["Undone"], *keys["ByHand"])}
        stored, left = set(), done - undone
        for task in self.truth.tasks("true"):
            order_id, state = task["OrderID"], task["ProcessState"]
            stored.add(order_id)
            effects = {f"{order_id}/{step['Name']}" for step in task["Steps"] if step["ProcessState"] != "Skipped"}
            if state == "Processed":
                expect(effects <= left, f"{order_id} is Processed, and lacks {effects - left}")
            else:
                expect(not effects & left, f"{order_id} is {state}, and keeps {effects & left}")
        expect_equal("orders that were accepted and are not stored", set(self.ids.values()) - stored, set())
        expect_equal("effects of no order", {key for key in done if key.split("/")[0] not in stored}, set())
        return f"{len(done)} effects, {len(done & undone)} of them undone; {dict(states)}"


def is_between(before: Numbers, plain: Numbers, after: Numbers, name: str) -> bool:
    """Whether a plain count lies between two answers of the API."""
    low, number, high = (numbers.get(name, NOTHING)[0] for numbers in (before, plain, after))
    return low <= number <= high
