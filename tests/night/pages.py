"""What the console shows, as numbers under the names of `truth`. Real Chromium, on a desk and on a phone.

A page is read by its roles and texts: headings, tables with their titles, links, items of lists, names of pictures. A
number that cannot be seen does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from console.console import Console
from harness.report import expect
from surfaces import SPANS, Shown, exactly, number_of, of_overview_line, of_row
from truth import STATES

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}

# Reads the page as it is shown. Folded parts are opened first.
READ = """() => {
  const view = document.querySelector('main');
  for (const one of view.querySelectorAll('details')) one.open = true;
  const text = (one) => one.innerText.trim();
  const seen = (one) => {
    const box = one.getBoundingClientRect();
    const isInside = box.width > 0 && box.left >= -1 && box.right <= innerWidth + 1;
    return isInside && one.checkVisibility({visibilityProperty: true});
  };
  const section = (one) => one.closest('section')?.querySelector('h2')?.innerText.trim() ?? '';
  return {
    heading: text(view.querySelector('h1')),
    text: text(view),
    overflow: document.documentElement.scrollWidth > innerWidth,
    links: [...view.querySelectorAll('a')].filter(seen)
      .map((one) => ({href: one.getAttribute('href'), text: text(one)})),
    items: [...view.querySelectorAll('li')].filter(seen).map((one) => ({section: section(one), text: text(one)})),
    images: [...view.querySelectorAll('[role=img]')].map((one) => one.getAttribute('aria-label') ?? ''),
    tables: [...view.querySelectorAll('table')].map((one) => ({
      name: one.caption?.textContent.trim() ?? '',
      titles: [...one.tHead.querySelectorAll('th')].map((title) => title.textContent.trim()),
      rows: [...one.tBodies[0].rows].map((row) => [...row.cells].map((cell) => seen(cell) ? text(cell) : null)),
    })),
  };
}"""


def fresh(console: Console, view: str) -> None:
    """Opens a view with an answer of now. A page that is open already would show its last one for two seconds."""
    if console.page.url == f"{console.base}/{view}":
        console.page.goto("about:blank")
    console.open(view)


class Page:
    """A view as it is shown."""

    def __init__(self, console: Console, view: str) -> None:
        fresh(console, view)
        self.read: dict[str, Any] = console.page.evaluate(READ)
        expect(not self.read["overflow"], f"{view} is wider than the screen")
        self.text = self.read["text"]

    def rows(self, name: str) -> Iterator[dict[str, str]]:
        """The rows of a table by titles. A cell that is not seen is left out."""
        for table in self.read["tables"]:
            if table["name"] == name:
                for row in table["rows"]:
                    yield {
                        title: cell for title, cell in zip(table["titles"], row, strict=True) if cell is not None
                    }

    def links(self, pattern: str) -> Iterator[tuple[re.Match[str], str]]:
        """The links to addresses that match, with their texts."""
        for link in self.read["links"]:
            if found := re.fullmatch(pattern, link["href"] or ""):
                yield found, link["text"]

    def items(self, section: str) -> Iterator[str]:
        """The items of the lists of a section."""
        return (item["text"] for item in self.read["items"] if item["section"] == section)


def overview(console: Console) -> Shown:
    """The first page."""
    page = Page(console, "#/")
    for found, text in page.links(r"#/orders\?state=(\w+)"):
        if found[1] in STATES:
            yield f"state/{found[1]}", number_of(next(line for line in text.splitlines() if re.search(r"^\W*\d", line)))
    for row in page.rows("Orders in Error, grouped by cause"):
        code, _, step = row["Cause"].splitlines()[0].partition(" at ")
        yield f"cause/{code}/{step}", number_of(row["Orders"])
    waiting = re.search(r"([\d,]+) orders? waits? for an operator", page.text)
    yield "waiting", number_of(waiting[1]) if waiting else exactly(0)
    yield from of_services(page)
    letters = re.search(r"([≥\d, ]+) dead letters?", page.text)
    yield "letters", number_of(letters[1]) if letters else exactly(0)
    yield from of_picture(page, "30m")
    yield from of_overview_line(page.text, is_up=False)


def of_services(page: Page) -> Shown:
    """The list of services of a page."""
    for item in page.items("Services"):
        name = f"health/{item.split()[0]}"
        is_open = not re.search(r"\banswers\b", item)
        yield f"{name}/open", exactly(int(is_open))
        if failures := re.search(r"([\d,]+) failures? in a row", item):
            yield f"{name}/failures", number_of(failures[1])
        if waiting := re.search(r"((?:at least )?[\d,]+) orders? waits? for it", item):
            yield f"{name}/waiting", number_of(waiting[1])


# The words for the length of a point, by span.
EACH = {"30m": "minute", "24h": "10 minutes", "7d": "hour", "30d": "6 hours"}
# The titles that are other words than the names here.
EVENTS = {"Accepted": "accepted", "came to Error": "failed", "under way at the end": "under way"}
SUMS = re.compile(r"([\d,]+) (orders? accepted|processed|compensated|closed|came to Error)")


def of_picture(page: Page, span: str) -> Shown:
    """The bars of what happened: their sums in words, and the table of their numbers."""
    sums = next((image for image in page.read["images"] if " accepted in the last" in image), "")
    for number, words in SUMS.findall(sums):
        event = "accepted" if "accepted" in words else "failed" if words == "came to Error" else words
        yield f"orders/all/{event}", number_of(number)
    for row in page.rows(f"What happened in each {EACH[span]}"):
        point = f"point/{SPANS[span]}/{epoch_of(row.pop('Minute' if span == '30m' else 'From'))}"
        for title, text in row.items():
            yield f"{point}/{EVENTS.get(title, title)}", number_of(text)


def epoch_of(clock: str) -> int:
    """The epoch seconds of the last time at which the clock of the browser showed this, such as `26 Nov, 21:00:00`."""
    day, _, of_day = clock.rpartition(", ")
    hour, minute = map(int, of_day.split(":")[:2])
    now = datetime.now(timezone.utc)
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    while at > now or (day and f"{at.day} {at:%b}" != day):
        at -= timedelta(days=1)
        expect(now - at < timedelta(days=32), f"{clock} is no time of the last days")
    return int(at.timestamp())


def numbers(console: Console, last: str) -> Shown:
    """The page of numbers."""
    page = Page(console, f"#/numbers?last={last}")
    for row in page.rows("Orders by workflow"):
        yield from of_row(f"orders/{row.pop('Workflow')}", row, is_up=False)
    for row in page.rows("Attempts by step, the slowest first"):
        words, place = row.pop("Step").splitlines()
        workflow, service = place.split(", at ")
        direction = "Undo" if words.startswith("undo of ") else "Forward"
        name = "/".join(("step", workflow, words.removeprefix("undo of "), service, direction))
        yield from of_row(name, row, is_up=False)
    for row in page.rows("Attempts by service"):
        service, _, undo = row.pop("Service").partition(", ")
        yield from of_row(f"service/{service}/{'Undo' if undo else 'Forward'}", row, is_up=False)
    yield from of_picture(page, last)


PAGE = 50


def orders(console: Console, state: str) -> Shown:
    """The list of the orders in a state: a row for each, up to a page. Further pages are asked for."""
    page = Page(console, f"#/orders?state={state}")
    rows = list(page.rows("Orders, newest first"))
    for row in rows:
        expect(state in row["State"], f"the list of {state} has a row {row}")
    has_more = any(text.startswith("Older") for _, text in page.links(".*"))
    yield f"state/{state}", (len(rows), float("inf") if has_more else len(rows))
    expect(not has_more or len(rows) == PAGE, f"the list of {state} has a page of {len(rows)} rows and another one")


def orders_of_causes(console: Console) -> Shown:
    """The lists to which the overview leads: a row for each order of a cause."""
    causes = list(Page(console, "#/").links(r"#/orders\?state=Error&reason=([\w-]+)(?:&step=([\w-]+))?"))
    for found, _ in causes:
        page, rows = Page(console, found[0]), 0
        for _ in range(100):
            rows += len(list(page.rows("Orders, newest first")))
            older = next((match[0] for match, text in page.links(r"#/orders\?.*") if text.startswith("Older")), None)
            if older is None:
                break
            page = Page(console, older)
        yield f"cause/{found[1]}/{found[2] or ''}", exactly(rows)


def alerts(console: Console) -> Shown:
    """The page of alerts: those that are on, and those that ended last."""
    page = Page(console, "#/alerts")
    for table, is_on in (("Causes that are on", 1), ("Causes that are over", 0)):
        for row in page.rows(table):
            name = f"alert/{row['Cause'].splitlines()[0]}"
            yield f"{name}/on", exactly(is_on)
            yield f"{name}/orders", number_of(row["Orders"].splitlines()[0])


def service(console: Console, name: str) -> Shown:
    """The page of a service: whether it answers, its failures, the orders that wait for it."""
    text = Page(console, f"#/service/{name}").text
    yield f"health/{name}/open", exactly(int(f"{name} answers." not in text))
    failures = re.search(r"Failures in a row\s+([\d,]+)", text)
    yield f"health/{name}/failures", number_of(failures[1]) if failures else exactly(0)
    if waiting := re.search(r"((?:at least )?[\d,]+) orders? waits? for it", text):
        yield f"health/{name}/waiting", number_of(waiting[1])


def letters(console: Console) -> Shown:
    """The page of dead letters: a row for each."""
    yield "letters", exactly(len(list(Page(console, "#/dead-letters").rows("Dead letters, the last settled first"))))


def jobs(console: Console) -> Shown:
    """The list of jobs, and the page of the newest one."""
    for row in Page(console, "#/jobs").rows("Jobs, newest first"):
        yield from of_job(re.findall(r"(\d+) of ([≥\d, ]+)", row["Progress"])[0])
    for found, _ in Page(console, "#/jobs").links("#/job/.+"):
        page = Page(console, found[0])
        for number, words in (item.split(" ", 1) for item in page.items("Progress")):
            if words in ("put on their way", "recovered", "failed again"):
                yield f"job/{words.replace('put on their way', 'begun')}", number_of(number)


def of_job(progress: tuple[str, str]) -> Shown:
    """So many of so many orders are done with."""
    yield "job/recovered", number_of(progress[0])
    yield "job/matching", number_of(progress[1])
