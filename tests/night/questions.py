"""Ten questions of an operator, as data: when they are asked, how they are answered, and what is true.

In the console an answer takes at most three clicks; typing is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from console.console import Console
from harness.report import expect, expect_equal
from pages import fresh
from playwright.sync_api import expect as shows
from surfaces import Range, number_of, span_of

if TYPE_CHECKING:
    from night import Night

CLICKS_MAX = 3
# A call that fails is made soon after the orders were posted.
FAILS_WITHIN_S = 10.0


class Hand:
    """An operator at the console, who counts clicks."""

    def __init__(self, console: Console) -> None:
        self.page, self.console, self.clicks = console.page, console, 0
        fresh(console, "#/")

    def click(self, role: Any, name: str | re.Pattern[str]) -> None:
        """Clicks on what has this role and name."""
        self.page.locator("body").get_by_role(role, name=name).first.click()
        self.clicks += 1

    def unfold(self, words: str) -> None:
        """Clicks on the head of a folded part."""
        self.page.get_by_text(words).first.click()
        self.clicks += 1

    def find(self, text: str) -> None:
        """Types into the search of the head, and presses Enter."""
        self.page.get_by_role("searchbox").fill(text)
        self.page.keyboard.press("Enter")

    def text(self) -> str:
        """What the page says."""
        return self.page.locator("main").inner_text()

    def row(self, table: str, name: str = "") -> dict[str, str]:
        """The first row of a table, or the one that begins with these words, by its titles."""
        found = self.page.get_by_role("table", name=table, exact=True).first
        titles = [title.strip() for title in found.get_by_role("columnheader").all_text_contents()]
        rows = found.locator("tbody").get_by_role("row")
        shows(rows.first).to_be_visible()
        for row in rows.all():
            cells = row.locator("th, td").all_inner_texts()
            if any(cell.strip().startswith(name) for cell in cells):
                return dict(zip(titles, cells, strict=True))
        raise LookupError(f"no row {name} in the table {table}")

    def order(self) -> str:
        """The id of the one order in the list."""
        rows = self.page.get_by_role("table", name="Orders, newest first").locator("tbody").get_by_role("row")
        shows(rows).to_have_count(1)
        link = rows.first.get_by_role("link").first
        return str(link.get_attribute("href")).rpartition("/")[2]


@dataclass(frozen=True)
class Question:
    """A question that is asked at a moment. `agrees` compares an answer with the truth."""

    words: str
    moment: int
    answer: Callable[[Hand, Night], Any]
    true: Callable[[Night], Any]
    agrees: Callable[[Any, Any], bool] = field(default=lambda answer, true: bool(answer == true))

    def asked(self, night: Night, console: Console) -> str:
        """An answer in the console, which agrees with what was true before or after it."""
        hand = Hand(console)
        before = self.true(night)
        answer = self.answer(hand, night)
        expect(hand.clicks <= CLICKS_MAX, f"it took {hand.clicks} clicks")
        after = self.true(night)
        if not self.agrees(answer, before) and not self.agrees(answer, after):
            expect_equal(f"the answer to “{self.words}”", answer, after)
        return f"{hand.clicks} clicks: {answer}"


# ---- truths

SOUGHT = 42


def sought(night: Night) -> str:
    """The id of the order that is looked for."""
    return night.ids[SOUGHT]


def why(night: Night) -> tuple[str, float]:
    """Payment answers 503 since it was taken down."""
    return "503", night.at["down"]


def why_agrees(answer: tuple[str, float], true: tuple[str, float]) -> bool:
    """The words name the status, and the time is soon after the true one."""
    return true[0] in answer[0] and -1 <= answer[1] - true[1] <= FAILS_WITHIN_S


def waiting(night: Night) -> int:
    """Orders that have come to payment and wait."""
    return night.waiting


def p99(night: Night) -> Range:
    """The 99th percentile of all orders of the last 24 hours."""
    return night.truth.numbers("24h")[1]["orders/all/p99"]


def overlaps(answer: Range, true: Range) -> bool:
    """Whether what is printed may be the true time."""
    return answer[0] <= true[1] and true[0] <= answer[1]


def slowest(night: Night) -> set[str]:
    """The steps with the longest 99th percentile, also those within an eighth of it."""
    found = {name.split("/")[2]: value for name, value in night.truth.numbers("24h")[1].items() if is_p99_of_step(name)}
    longest = max(value[0] for value in found.values())
    return {name for name, value in found.items() if value[1] >= longest}


def is_p99_of_step(name: str) -> bool:
    """Whether a name is that of a step's 99th percentile, forward."""
    return name.startswith("step/") and name.endswith("/Forward/p99")


def came_to_error(night: Night) -> tuple[int, dict[str, int]]:
    """How often orders came to Error, and how many wait by cause."""
    numbers = night.truth.numbers("30m")[1]
    causes = {name: int(value[0]) for name, value in numbers.items() if name.startswith("cause/")}
    return int(numbers["orders/all/failed"][0]), causes


def alerted(night: Night) -> dict[str, bool]:
    """The causes that the sink was told of, each with whether it was told of the end."""
    events = night.services.get("/alerts")
    causes = {one["data"]["Cause"] for one in events}
    return {cause: any(kind.endswith("AlertEnded") for kind in night.alerts(cause)) for cause in causes}


# ---- answers


def by_email(hand: Hand, _: Night) -> str:
    """The list of orders, searched by a member of the document."""
    hand.click("link", "Orders")
    hand.console.shown("#/orders")
    hand.unfold("Time, correlation id, document")
    hand.page.get_by_label("Field of the document").fill("/Email")
    hand.page.get_by_label("Its value").fill(f"c{SOUGHT}@example.org")
    hand.page.keyboard.press("Enter")
    return hand.order()


def by_correlation(hand: Hand, _: Night) -> str:
    """The search of the head."""
    hand.find(f"night-{SOUGHT}")
    return hand.order()


def payment_on_page(hand: Hand) -> Any:
    """What the first page says of payment."""
    return hand.page.get_by_role("region", name="Services").get_by_role("listitem").filter(has_text="payment").first


def why_on_page(hand: Hand, _: Night) -> tuple[str, float]:
    """The first page: the problem, and the time at which the outage began."""
    payment = payment_on_page(hand)
    text = payment.inner_text()
    since = payment.locator("time").first.get_attribute("datetime")
    return re.findall(r"[^\n]*503[^\n]*|$", text)[0], datetime.fromisoformat(str(since)).timestamp()


def waiting_on_page(hand: Hand, _: Night) -> int:
    """The first page."""
    return int(number_of(re.findall(r"([\d,]+) orders? waits? for it", payment_on_page(hand).inner_text())[0])[0])


def p99_on_page(hand: Hand, _: Night) -> Range:
    """The page of numbers, for 24 hours by itself."""
    hand.click("link", re.compile("^Numbers$"))
    hand.console.heading("Numbers")
    return span_of(hand.row("Orders by workflow", "all")["p99"], is_up=False)


def slowest_on_page(hand: Hand, _: Night) -> str:
    """The first row of the table of steps, which says that it is the slowest."""
    hand.click("link", re.compile("^Numbers$"))
    hand.console.heading("Numbers")
    return hand.row("Attempts by step, the slowest first")["Step"].splitlines()[0].strip()


def error_on_page(hand: Hand, _: Night) -> tuple[int, dict[str, int]]:
    """The first page: the text of its picture, and the table of causes."""
    picture = hand.page.get_by_role("img", name=re.compile("accepted in the last")).first.get_attribute("aria-label")
    table = hand.page.get_by_role("table", name="Orders in Error, grouped by cause")
    causes = {}
    for row in table.locator("tbody").get_by_role("row").all():
        cells = row.locator("th, td").all_inner_texts()
        code, _, step = cells[0].strip().splitlines()[0].partition(" at ")
        causes[f"cause/{code}/{step}"] = int(number_of(cells[1])[0])
    return int(number_of(re.findall(r"([\d,]+) came to Error", str(picture))[0])[0]), causes


def taken_on_page(hand: Hand, night: Night) -> str:
    """The order, found by its id."""
    hand.find(night.special["taken on"])
    hand.console.shown(f"#/order/{night.special['taken on']}")
    return re.findall(r"taken on by (\w+)", hand.text())[0]


def ended_on_page(hand: Hand, night: Night) -> tuple[str, str]:
    """The order, found by its id: its state, and who settled it."""
    hand.find(night.special["by hand"])
    hand.console.shown(f"#/order/{night.special['by hand']}")
    text = hand.text()
    settled = re.search(r"reserve settled.{0,80}\bann\b|\bann\b.{0,80}reserve settled", text, re.S)
    return re.findall(r"\b(Compensated|Closed|Error)\b", text)[0], "settled" if settled else text


def alerts_on_page(hand: Hand, _: Night) -> dict[str, bool]:
    """The page of alerts, to which the first page leads."""
    hand.click("link", re.compile("^All alerts"))
    hand.console.heading("Alerts")
    found = {}
    for table, is_over in (("Causes that are on", False), ("Causes that are over", True)):
        rows = hand.page.get_by_role("table", name=table, exact=True).locator("tbody").get_by_role("row")
        for row in rows.filter(has=hand.page.locator("strong")).all():
            found[row.locator("strong").first.inner_text().strip()] = is_over
    return found


ALL = (
    Question("which order is of this e-mail?", 9, by_email, sought),
    Question("which order has this correlation id?", 9, by_correlation, sought),
    Question("why does payment fail, and since when?", 10, why_on_page, why, why_agrees),
    Question("how many orders wait for it?", 10, waiting_on_page, waiting),
    Question("what was p99 of the last 24 hours?", 16, p99_on_page, p99, overlaps),
    Question("which step is the slowest?", 16, slowest_on_page, slowest, lambda answer, true: answer in true),
    Question("how many orders came to Error, and for which causes?", 15, error_on_page, came_to_error),
    Question("who has taken this order on?", 15, taken_on_page, lambda _: "ann"),
    Question(
        "has the order that was refunded by hand ended?", 19, ended_on_page, lambda _: ("Compensated", "settled")
    ),
    Question("what was alerted, and is it over?", 20, alerts_on_page, alerted),
)
