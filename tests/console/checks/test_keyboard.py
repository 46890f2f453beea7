"""Everything without a mouse."""

from __future__ import annotations

import re

from console import Console
from harness.report import until
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Page, expect
from world import stuck


def tab_to(page: Page, name: str) -> None:
    """Presses Tab until the control with these words has the focus."""
    seen: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        here: str = page.evaluate("document.activeElement.innerText ?? document.activeElement.id")
        seen.append(here)
        if here.strip() == name:
            # Whoever comes by keyboard sees where they are.
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    raise AssertionError(f"{name} cannot be reached by Tab; passed {seen}")


def test_an_order_is_found_and_resubmitted_with_the_keyboard_alone(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "keys")
    inventory.refusing.discard("keys")
    console.open()
    page = console.page
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(order["OrderID"])
    page.keyboard.press("Enter")
    console.shown(f"#/order/{order['OrderID']}")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    tab_to(page, "Resubmit…")
    page.keyboard.press("Enter")
    dialog = console.dialog()
    tab_to_label(page, "by")
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    expect(dialog.locator("#dialog-result")).to_contain_text("The order was resubmitted")
    # The result is read out.
    expect(page.get_by_role("status")).to_contain_text("The order was resubmitted")
    tab_to(page, "Close")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#standing-head")).to_have_text("Compensated.")


def tab_to_label(page: Page, field: str) -> None:
    """Goes on to a field, unless it has the focus already."""
    for _ in range(10):
        if page.evaluate("document.activeElement.id") == field:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{field} cannot be reached")


def test_the_first_tab_leads_past_the_top_of_the_page(console: Console) -> None:
    console.open()
    page = console.page
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    console.shown("#/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_a_slash_in_a_field_is_a_slash_and_escape_leaves_the_search(console: Console) -> None:
    console.open("#/orders")
    page = console.page
    page.get_by_text("Time, correlation id, document").click()
    page.get_by_label("Field of the document").focus()
    page.keyboard.type("/a/b")
    expect(page.get_by_label("Field of the document")).to_have_value("/a/b")
    page.get_by_role("heading", level=1).focus()
    page.keyboard.press("/")
    page.keyboard.type("x")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_views_have_titles_headings_and_a_mark_in_the_menu(console: Console, server: Server) -> None:
    until("an alert is on", lambda: any("EndedAt" not in one for one in server.get("/alerts")["Alerts"]))
    for view, title, menu in [
        ("#/", "Overview", "Overview"),
        ("#/orders", "Orders", "Orders"),
        ("#/dead-letters", "Dead letters", "Dead letters"),
        ("#/jobs", "Jobs", "Jobs"),
        ("#/jobs/new", "Plan a job", "Jobs"),
    ]:
        console.open(view)
        # With the number of alerts that are on.
        expect(console.page).to_have_title(re.compile(rf"^\(\d+\) {title} · Stepwarden$"))
        expect(console.page.get_by_role("heading", level=1)).to_have_count(1)
        expect(console.page.locator("nav [aria-current=page]")).to_have_text(menu)
        for landmark in ("banner", "main", "search"):
            expect(console.page.get_by_role(landmark)).to_have_count(1)


def test_columns_are_chosen_and_orders_exported_with_the_keyboard_alone(console: Console) -> None:
    console.open("#/orders?state=Processed")
    page = console.page
    tab_to(page, "Columns")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("columnheader", name="Correlation id")).to_be_visible()
    # The choice leaves the focus where it is.
    expect(page.locator("#columns").get_by_label("Correlation id")).to_be_focused()
    tab_to(page, "Export…")
    page.keyboard.press("Enter")
    dialog = console.dialog()
    tab_to(page, "Export as NDJSON")
    with page.expect_download():
        page.keyboard.press("Enter")
    expect(dialog.locator("#dialog-result")).to_contain_text("saved as NDJSON")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Export…")).to_be_focused()
