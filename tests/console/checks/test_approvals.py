"""Approvals: what is decided on is in view, who may not decide is refused, one of two decisions counts, time runs out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import Console
from harness.report import until
from harness.serve import Server
from journey import Bookings, asked, folder
from playwright.sync_api import Browser, expect

PHONE = {"width": 360, "height": 740, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def bookings() -> Iterator[Bookings]:
    """The services of the example."""
    with Bookings() as service:
        yield service


def serve(base: Path, bookings: Bookings, decided_within: str) -> Server:
    """A server with the example."""
    config = folder(base / "journey", bookings, decided_within)
    program = Path(os.environ["STEPWARDEN_PROGRAM"])
    return Server(program, base / "data", "--config", str(config), "--supervise-every", "100ms")


@pytest.fixture(scope="module")
def travel(tmp_path_factory: pytest.TempPathFactory, bookings: Bookings) -> Iterator[Server]:
    """A server whose managers have an hour."""
    with serve(tmp_path_factory.mktemp("approvals"), bookings, "1h") as server:
        yield server


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desktop", "phone"])
def test_an_approval_lets_the_order_go_on_to_its_end(browser: Browser, travel: Server, size: dict[str, int]) -> None:
    order = asked(travel)
    with Console.on(browser, travel.url, **size) as console:
        console.open("#/")
        expect(console.page.locator("#verdict")).to_contain_text("1 approval is asked for.")
        console.page.get_by_role("link", name="Decide on them").click()
        console.page.locator("tbody a").first.click()
        head = console.page.locator("#standing-head")
        expect(head).to_contain_text("Step approve waits for an approval by travel manager")
        dialog = console.act("Approve…", reason="the customer is worth it")
        expect(dialog.locator("#decided")).to_contain_text("Ada Lovelace")
        expect(dialog).to_contain_text("The order goes on: approve is done")
        assert console.violations() == []
        assert console.overflow() == []
        console.done("Approve", "The order was approved at")
        expect(console.page.locator("#standing-head")).to_have_text("Processed.")
        expect(console.page.locator("#history").get_by_text("approve approved #1")).to_be_visible()
        expect(console.page.locator("#history").get_by_text("the customer is worth it")).to_be_visible()
        assert console.complaints == []
    task = travel.get(f"/orders/{order['OrderID']}")
    output = next(step["Output"] for step in task["Steps"] if step["Name"] == "approve")
    assert (output["By"], output["Reason"]) == ("ann", "the customer is worth it")


def test_who_asked_for_it_is_refused_and_a_rejection_undoes_the_order(browser: Browser, travel: Server) -> None:
    order = asked(travel)
    with Console.on(browser, travel.url) as console:
        console.open(f"#/order/{order['OrderID']}")
        dialog = console.act("Approve…", by="ada lovelace")
        console.send("Approve", "the order names Ada Lovelace as the person who may not", error=True)
        dialog.get_by_role("button", name="Leave it").click()
        console.act("Reject…", by="ann", reason="too expensive")
        console.done("Reject", "The order was rejected at")
        expect(console.page.locator("#standing-head")).to_have_text("Compensated.")
        expect(console.page.get_by_text("not approved by ann: too expensive").first).to_be_visible()
        assert console.complaints == []


def test_of_two_people_at_once_one_decides_and_the_other_is_told(browser: Browser, travel: Server) -> None:
    order = asked(travel)
    with Console.on(browser, travel.url) as one, Console.on(browser, travel.url) as other:
        for console in (one, other):
            console.open(f"#/order/{order['OrderID']}")
        first, second = one.act("Approve…", by="ann"), other.act("Reject…", by="ben", reason="too far")
        first.get_by_role("button", name="Approve", exact=True).click()
        expect(first.locator("#dialog-result")).to_contain_text("The order was approved at")
        second.get_by_role("button", name="Reject", exact=True).click()
        expect(second.locator("#dialog-error")).to_contain_text("ann decided first: approve approved #1")
        expect(second.get_by_role("button", name="Reject", exact=True)).to_have_count(0)
    kinds = [line["Kind"] for line in travel.get(f"/orders/{order['OrderID']}")["History"]]
    assert (kinds.count("Approved"), kinds.count("Rejected")) == (1, 0)


def test_people_are_alerted_and_without_a_decision_in_time_the_order_is_undone(
    browser: Browser, tmp_path: Path, bookings: Bookings
) -> None:
    def is_alerted() -> bool:
        return any(one["Cause"] == "approval/journey" for one in server.get("/alerts")["Alerts"])

    with serve(tmp_path, bookings, "30s") as server:
        order = asked(server)
        with Console.on(browser, server.url) as console:
            console.open(f"#/order/{order['OrderID']}")
            expect(console.page.locator("#actions").get_by_role("button", name="Approve…")).to_be_visible()
            until("people are told that an approval is asked for", is_alerted)
            expect(console.page.locator("#standing-head")).to_have_text("Compensated.", timeout=120_000)
            expect(console.page.get_by_text("no decision within 30s").first).to_be_visible()
            expect(console.page.locator("#actions").get_by_role("button", name="Approve…")).to_have_count(0)
