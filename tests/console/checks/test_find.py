"""The search above, by the eight characters of an id that the console shows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from console import Console
from harness.serve import Server
from playwright.sync_api import Browser, expect

AT = "2026-11-20T17:26:43.007Z"
END = "5f0c9f4b"
ONE, OTHER = f"01934b2e-1c5a-7d3f-8a21-e011{END}", f"01934b2e-1c5a-7d3f-8a21-ffff{END}"


def order(order_id: str, **members: object) -> dict[str, Any]:
    """An order of a list, as the API shows it."""
    return {"OrderID": order_id, "ProcessState": "Error", "SubmittedAt": AT, "Steps": [], "Version": 3, **members}


def lists(console: Console, *, newest: list[Any], correlated: list[Any]) -> list[str]:
    """Lets the API list these orders, and no others. Gives the queries that the page asks."""
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.url.partition("?")[2])
        orders = correlated if "correlation=" in asked[-1] else [] if "state=Error" in asked[-1] else newest
        route.fulfill(json={"Orders": orders})

    console.page.route("**/orders?*", answer)
    return asked


def search(console: Console, text: str) -> None:
    """Searches as a person does."""
    find = console.page.get_by_role("searchbox")
    find.fill(text)
    find.press("Enter")


def test_an_order_is_found_by_the_characters_of_its_id_that_are_shown(console: Console, server: Server) -> None:
    found = server.order(Item="shown by its end")["OrderID"]
    console.open()
    search(console, found[-8:].upper())
    console.shown(f"#/order/{found}")
    expect(console.page.get_by_role("heading", level=1)).to_be_focused()
    console.page.go_back()
    console.shown("#/")
    # More of it is as good, with its hyphen.
    search(console, found[-17:])
    console.shown(f"#/order/{found}")


def test_of_several_orders_each_is_shown_whole_to_choose_from(console: Console) -> None:
    asked = lists(console, newest=[order(ONE, CorrelationID="cart-7"), order(OTHER)], correlated=[])
    console.open()
    search(console, END)
    console.shown(f"#/find?text={END}")
    expect(console.page.locator("#verdict-find")).to_have_text(
        f"2 orders end with {END}. Choose one, or give more characters of its id."
    )
    rows = console.page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("cart-7")
    expect(rows.get_by_role("link")).to_have_text([ONE, OTHER])
    calls = len(asked)
    # The page asks no list again by itself.
    with console.page.expect_request(re.compile(r"/orders\?")):
        console.page.get_by_role("button", name="Look again").click()
    expect(rows).to_have_count(2)
    assert len(asked) == 2 * calls == 6
    rows.get_by_role("link", name=OTHER).click()
    console.shown(f"#/order/{OTHER}")


def test_a_correlation_id_that_looks_like_an_end_is_found_as_before(console: Console, server: Server) -> None:
    found = server.order(CorrelationID="20261126")["OrderID"]
    console.open()
    search(console, "20261126")
    console.shown("#/orders?correlation=20261126")
    expect(console.page.locator("tbody th a")).to_have_attribute("title", found)


def test_an_end_that_is_also_a_correlation_id_shows_both_orders(console: Console) -> None:
    third = "01934b2e-1c5a-7d3f-8a21-000000000000"
    lists(console, newest=[order(ONE), order(third)], correlated=[order(third, CorrelationID=END)])
    console.open(f"#/find?text={END}")
    expect(console.page.locator("#verdict-find")).to_have_text(
        f"1 order ends with {END}, and 1 order has it as correlation id."
    )
    rows = console.page.locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("the end of its id")
    expect(rows.nth(1)).to_contain_text("its correlation id")


def test_an_end_of_no_order_says_where_it_was_looked_for(console: Console) -> None:
    console.open()
    search(console, "0123456789abcdef")
    expect(console.page.locator("#verdict-find")).to_have_text(
        "No order of the 1,000 newest, and of the 1,000 newest in Error, ends with 0123456789abcdef."
    )
    console.page.get_by_role("link", name="Look for it as a correlation id").click()
    console.shown("#/orders?correlation=0123456789abcdef")


def test_the_lists_are_looked_through_as_far_as_is_said(console: Console) -> None:
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"Orders": [], "NextCursor": str(len(asked))})

    console.page.route("**/orders?*", answer)
    console.open(f"#/find?text={END}")
    assert len([url for url in asked if "correlation=" not in url and "limit=100" in url]) == 20
    assert len(asked) == 21


@pytest.mark.parametrize("width", [360, 1200])
def test_no_rule_of_accessibility_is_broken_by_what_was_found(browser: Browser, server: Server, width: int) -> None:
    with Console.on(browser, server.url, width=width) as console:
        lists(console, newest=[order(ONE), order(OTHER)], correlated=[])
        console.open(f"#/find?text={END}")
        assert (console.violations(), console.overflow(), console.complaints) == ([], [], [])
