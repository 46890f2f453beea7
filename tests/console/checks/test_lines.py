"""Orders of 1, 18 and 200 lines: a row for all, the failed and slowest ones on demand, and one line settled, resubmitted or
dropped by hand."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import Console
from harness.serve import Server
from playwright.sync_api import Browser, expect
from sale import Shelves, folder, held

PHONE = {"width": 360, "height": 740, "is_mobile": True, "has_touch": True}
SIZES = pytest.mark.parametrize("size", [{}, PHONE], ids=["desktop", "phone"])


@pytest.fixture
def shelves() -> Iterator[Shelves]:
    """The services of the sale."""
    with Shelves() as service:
        yield service


@pytest.fixture
def sales(tmp_path: Path, shelves: Shelves) -> Iterator[Server]:
    """A server with the folder of the sale."""
    program, config = Path(os.environ["STEPWARDEN_PROGRAM"]), folder(tmp_path / "sale", shelves)
    with Server(program, tmp_path / "data", "--config", str(config), "--supervise-every", "100ms") as server:
        yield server


def settle(console: Console, choice: str) -> None:
    """Settles a step by the words of its choice."""
    dialog = console.act("Settle step…", reason="asked the carrier")
    dialog.get_by_label("The step that you mended by hand").select_option(choice)
    console.done("Settle step", "The order was settled at")


@SIZES
def test_one_line_of_18_is_dropped_one_settled_and_one_resubmitted(
    browser: Browser, sales: Server, shelves: Shelves, size: dict[str, int]
) -> None:
    shelves.refused |= {"mug-001", "rug-012", "tray-018"}
    order = held(sales, shelves, 18)
    with Console.on(browser, sales.url, **size) as console:
        console.open(f"#/order/{order['OrderID']}")
        page = console.page
        expect(page.locator("#standing .todo")).to_contain_text("Or settle it as dropped: its line is undone")
        steps = page.get_by_role("table", name="The order's steps").locator("tbody tr")
        expect(steps).to_have_count(3)
        expect(steps.nth(1)).to_contain_text("13 of 18 done, 3 failed, 2 dropped")
        elements = page.get_by_role("table", name="The elements of ship, the failed and the slowest first")
        expect(elements).to_be_hidden()
        page.locator("summary").filter(has_text=re.compile("^ship: 13 of 18 done")).click()
        for place in range(3):
            expect(elements.locator("tbody tr").nth(place)).to_contain_text("weighs more than 30 kg")
        expect(elements.locator("tbody tr").nth(3)).to_contain_text(re.compile("lamp-0.*dropped"))
        assert console.violations() == []
        assert console.overflow() == []
        settle(console, "ship/mug-001: dropped")
        expect(steps.nth(1)).to_contain_text("13 of 18 done, 2 failed, 3 dropped")
        settle(console, "ship/rug-012: done")
        shelves.refused.clear()
        console.act("Resubmit…", reason="two men carry it")
        console.done("Resubmit", "The order was resubmitted at")
        expect(page.locator("#standing-head")).to_have_text("Processed.")
        expect(page.locator("#standing")).to_contain_text("3 of 18 lines were dropped, and are undone.")
        expect(page.locator("#history")).to_contain_text("ship/mug-001 dropped")
        assert console.complaints == []
    lines = sales.get(f"/orders/{order['OrderID']}")["Lines"]
    assert (len(lines["Carried"]), lines["Dropped"]) == (15, ["mug-001", "lamp-002", "lamp-011"])


@SIZES
def test_of_200_lines_the_first_20_are_shown_on_demand_and_then_the_rest(
    browser: Browser, sales: Server, shelves: Shelves, size: dict[str, int]
) -> None:
    shelves.refused |= {"rug-111", "mug-199"}
    order = held(sales, shelves, 200, "pick")
    with Console.on(browser, sales.url, **size) as console:
        console.open(f"#/order/{order['OrderID']}")
        page = console.page
        expect(page.get_by_role("table", name="The order's steps")).to_contain_text("198 of 200 done, 2 failed")
        page.locator("summary").filter(has_text="pick: 198 of 200 done").click()
        first = page.get_by_role("table", name="The elements of pick, the failed and the slowest first")
        expect(first.locator("tbody tr")).to_have_count(20)
        expect(first.locator("tbody tr").first).to_contain_text("weighs more than 30 kg")
        assert console.violations() == []
        assert console.overflow() == []
        page.locator("summary").filter(has_text="The other 180").click()
        expect(page.get_by_role("table", name="The other elements of pick").locator("tbody tr")).to_have_count(180)
        settle(console, "pick/rug-111: dropped")
        settle(console, "pick/mug-199: dropped")
        expect(page.locator("#standing-head")).to_have_text("Processed.")
        # The page that is drawn again stays open.
        expect(first).to_be_visible()
        assert console.complaints == []


def test_the_only_line_cannot_be_dropped(browser: Browser, sales: Server, shelves: Shelves) -> None:
    shelves.refused.add("mug-001")
    order = held(sales, shelves, 1)
    with Console.on(browser, sales.url) as console:
        console.open(f"#/order/{order['OrderID']}")
        expect(console.page.get_by_role("table", name="The order's steps")).to_contain_text("0 of 1 done, 1 failed")
        # A few elements are shown at once.
        elements = console.page.get_by_role("table", name="The elements of ship, the failed and the slowest first")
        expect(elements).to_contain_text("ship/mug-001")
        dialog = console.act("Settle step…")
        expect(dialog.locator("option")).to_have_text(["ship/mug-001: done"])
        console.done("Settle step", "The order was settled at")
        expect(console.page.locator("#standing-head")).to_have_text("Processed.")
        assert console.complaints == []
