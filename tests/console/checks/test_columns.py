"""The list of orders as an operator wants it: columns, sorting, ids, and the file of an export."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Browser, Download, Route, expect
from world import FORMULA, held


def heads(console: Console) -> list[str]:
    """The names of the columns, without that of the ticks."""
    return console.page.locator("thead th").all_inner_texts()[1:]


def choose(console: Console, *names: str) -> None:
    """Ticks these columns, or takes the tick away."""
    columns = console.page.locator("#columns")
    if columns.get_attribute("open") is None:
        columns.locator("summary").click()
    for name in names:
        columns.get_by_label(name, exact=True).click()


def test_columns_are_chosen_and_kept_in_the_browser(console: Console, server: Server) -> None:
    [order] = server.get(f"/orders?correlation={FORMULA}0")["Orders"]
    server.post(f"/orders/{order['OrderID']}/note", {"By": "ann", "Reason": "I look", "Take": True})
    server.seen(order["OrderID"], lambda task: "Taken" in task)
    console.open(f"#/orders?correlation={FORMULA}0")
    assert heads(console) == ["State", "Order", "What it waits for", "Steps", "Submitted", "Changed"]
    choose(console, "Correlation id", "Workflow", "Taken on by", "Reason", "Last error", "What it waits for", "Steps")
    expected = ["State", "Order", "Correlation id", "Workflow", "Taken on by", "Reason", "Last error"]
    expected += ["Submitted", "Changed"]
    row = console.page.get_by_role("row").nth(1)
    for words in (f"{FORMULA}0", "order, version 1", "ann", "compensation-failed at reserve-inventory", "stock-is-counted"):
        expect(row).to_contain_text(words)
    assert heads(console) == expected
    console.page.reload()
    expect(row).to_contain_text("stock-is-counted")
    assert heads(console) == expected


def test_without_storage_the_choice_is_good_for_as_long_as_the_page_is_open(console: Console) -> None:
    console.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('there is none'); }})"
    )
    console.open("#/orders?state=Processed")
    choose(console, "Steps", "Changed")
    assert heads(console) == ["State", "Order", "What it waits for", "Submitted"]
    console.page.reload()
    expect(console.page.locator("thead th")).to_have_count(7)


def test_members_that_a_workflow_declares_are_columns_of_their_own(console: Console, server: Server) -> None:
    page = server.get("/orders?with=index&limit=2")
    page["Orders"][0]["Index"] = {"/CorrelationID": "cart-7", "/Customer/Email": "ann@example.org"}
    page["Orders"][1]["Index"] = {}
    console.page.route("**/orders?*", lambda route: route.fulfill(json=page))
    console.open("#/orders")
    with console.page.expect_request(lambda asked: "with=index" in asked.url):
        choose(console, "Indexed members")
    expect(console.page.get_by_role("columnheader", name="/Customer/Email")).to_be_visible()
    expect(console.page.get_by_role("row").nth(1)).to_contain_text("ann@example.org")


def test_a_page_is_sorted_by_the_time_of_submission_or_of_the_last_change(
    console: Console, server: Server, inventory: Inventory
) -> None:
    first = held(server, inventory, "sorted", CorrelationID="sorted")
    second = server.order(CorrelationID="sorted")
    server.post(f"/orders/{first['OrderID']}/note", {"By": "ann", "Reason": "changed last"})
    server.seen(first["OrderID"], lambda task: task["Version"] > first["Version"])
    console.open("#/orders?correlation=sorted")
    links = console.page.locator("tbody th a")
    old, new = first["OrderID"], second["OrderID"]
    for sort, ids in (
        ("Oldest first", (old, new)),
        ("Newest first", (new, old)),
        ("Changed last first", (old, new)),
        ("Unchanged for longest first", (new, old)),
    ):
        console.page.get_by_label("Sort this page").select_option(sort)
        for place, order_id in enumerate(ids):
            expect(links.nth(place)).to_have_attribute("title", order_id)
    expect(console.page.get_by_role("table", name="Orders, unchanged for longest first")).to_be_visible()
    inventory.holding.discard("sorted")


def test_an_id_is_shown_by_its_end_and_copied_whole(browser: Browser, server: Server) -> None:
    order_id = server.order(CorrelationID="copied")["OrderID"]
    with Console.on(browser, server.url, permissions=["clipboard-read", "clipboard-write"]) as console:
        for view in ("#/orders?correlation=copied", f"#/order/{order_id}"):
            console.open(view)
            console.page.evaluate("navigator.clipboard.writeText('')")
            console.page.get_by_role("button", name=f"Copy the id of order {order_id[-8:]}").click()
            expect(console.page.locator("#announce")).to_contain_text(f"Copied {order_id}")
            assert console.page.evaluate("navigator.clipboard.readText()") == order_id
        expect(console.page.get_by_role("heading", level=1)).to_contain_text(order_id)
        console.open("#/orders?correlation=copied")
        link = console.page.get_by_role("link", name=f"order {order_id[-8:]}")
        expect(link).to_have_text(order_id[-8:])
        link.click()
        console.shown(f"#/order/{order_id}")


def exported(console: Console, format_: str) -> tuple[Download, str]:
    """The file of an export of the present filter, and its text."""
    console.page.get_by_role("button", name="Export…").click()
    with console.page.expect_download() as waited:
        console.dialog().get_by_role("button", name=f"Export as {format_}").click()
    return waited.value, Path(waited.value.path()).read_bytes().decode()


def test_the_orders_of_the_filter_are_exported_page_by_page_without_a_formula(console: Console, server: Server) -> None:
    for start in "+-@\t\r":
        server.order(CorrelationID=f"{start}1")
    # More than one page of the export.
    for number in range(100):
        server.order(wait=False, CorrelationID=f"exported-{number}")
    every = []
    cursor = ""
    while cursor is not None:
        page = server.get(f"/orders?with=index&limit=100{cursor}")
        every += page["Orders"]
        cursor = f"&cursor={page['NextCursor']}" if "NextCursor" in page else None
    console.open("#/orders")
    download, text = exported(console, "CSV")
    assert download.suggested_filename.startswith("orders-20") and download.suggested_filename.endswith(".csv")
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert [row["OrderID"] for row in rows] == [order["OrderID"] for order in every]
    known = {row["CorrelationID"] for row in rows}
    assert {f"'{FORMULA}0", "'+1", "'-1", "'@1", "'\t1", "'\r1", "shop-7"} <= known
    assert not any(str(cell)[:1] in tuple("=+-@\t\r") for row in rows for cell in row.values() if cell)
    error = next(row for row in rows if row["CorrelationID"] == f"'{FORMULA}0")
    assert (error["State"], error["ReasonCode"], error["Workflow"]) == ("Error", "compensation-failed", "order/1")
    expect(console.dialog().locator("#dialog-result")).to_have_text(f"{len(every)} orders saved as CSV.")
    console.dialog().get_by_role("button", name="Close").click()
    console.open("#/orders?state=Error")
    _, text = exported(console, "NDJSON")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["OrderID"] for line in lines] == [one["OrderID"] for one in every if one["ProcessState"] == "Error"]
    assert {line["Index"].get("/CorrelationID") for line in lines} >= {f"{FORMULA}{number}" for number in range(3)}


def some_orders(server: Server, count: int) -> list[dict[str, Any]]:
    """The same order many times."""
    return server.get("/orders?limit=1")["Orders"] * count


def test_an_export_ends_at_its_bound_and_says_so(console: Console, server: Server) -> None:
    page = {"Orders": some_orders(server, 100), "NextCursor": "next"}
    console.open("#/orders")
    console.page.route("**/orders?*", lambda route: route.fulfill(json=page))
    _, text = exported(console, "CSV")
    assert text.count("\r\n") == 10_001
    expect(console.dialog().locator("#dialog-result")).to_contain_text("10,000 orders saved as CSV. There are more")


def test_an_export_is_cancelled(console: Console, server: Server) -> None:
    page = {"Orders": some_orders(server, 100), "NextCursor": "next"}
    waiting: list[Route] = []
    downloads: list[Download] = []
    console.page.on("download", lambda download: downloads.append(download))
    console.open("#/orders?state=Processed")
    console.page.route("**/orders?*limit=100*", lambda route: route.fulfill(json=page))
    # The second page never comes.
    console.page.route("**/orders?*cursor=next*", lambda route: waiting.append(route))
    console.page.get_by_role("button", name="Export…").click()
    dialog = console.dialog()
    expect(dialog).to_contain_text("Orders with state Processed.")
    dialog.get_by_role("button", name="Export as CSV").click()
    expect(dialog.locator("#export-progress")).to_have_text("100 orders read…")
    assert console.violations() == []
    dialog.get_by_role("button", name="Cancel").click()
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    expect(console.page.get_by_role("button", name="Export…")).to_be_focused()
    assert (len(waiting), downloads) == (1, [])


@pytest.mark.parametrize("status", [400, 503])
def test_an_export_that_fails_saves_nothing_and_says_why(console: Console, status: int) -> None:
    console.open("#/orders")
    problem = {"status": status, "detail": "this cannot be read at the moment; ask again"}
    console.page.route("**/orders?*limit=100*", lambda route: route.fulfill(status=status, json=problem))
    console.page.get_by_role("button", name="Export…").click()
    console.dialog().get_by_role("button", name="Export as NDJSON").click()
    expect(console.dialog().locator("#dialog-result")).to_have_text(
        "Nothing was saved: this cannot be read at the moment; ask again. Start the export again."
    )
