"""The first page: counts, pictures, failures by cause, services, supervisors."""

from __future__ import annotations

import re
from typing import Any

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import expect
from world import declined, stuck


def tile(console: Console, state: str) -> Any:
    """The number of orders in a state, as the page shows it."""
    return console.page.locator(f'.tiles [data-key="{state}"] .number')


def test_the_page_counts_as_the_api_counts(console: Console, server: Server) -> None:
    console.open()
    for count in server.get("/overview")["Counts"]:
        expect(tile(console, count["State"])).to_have_text(f"{'≥ ' if count['AtLeast'] else ''}{count['Count']}")
    expect(console.page.locator("#verdict")).to_contain_text(re.compile("orders wait for an operator"))
    expect(console.page.locator('.tiles [data-key="Error"]')).to_contain_text(re.compile("oldest .* ago"))
    expect(console.page.locator('.tiles [data-key="Processed"]')).not_to_contain_text("oldest")


def test_the_throughput_is_a_picture_whose_text_says_the_same_and_a_table_of_the_numbers(
    console: Console, server: Server
) -> None:
    console.open()
    minutes = server.get("/overview")["Minutes"]
    accepted = sum(one["Accepted"] for one in minutes)
    picture = console.page.locator("#throughput").get_by_role("img")
    expect(picture).to_have_accessible_name(
        re.compile(rf"\b{accepted} orders accepted in the last 30 minutes: \d+ processed, .* came to Error")
    )
    bars = console.page.locator("#throughput svg g > title")
    assert bars.count() == sum(1 for one in minutes if one["Processed"] + one["Compensated"] + one["Error"])
    console.page.get_by_text("The numbers").click()
    expect(console.page.get_by_role("table", name="What happened in each minute")).to_be_visible()


def test_the_page_follows_what_happens_and_leaves_focus_scroll_and_what_is_open_as_they_are(
    console: Console, server: Server
) -> None:
    console.open()
    page = console.page
    before = int(tile(console, "Compensated").inner_text())
    page.get_by_text("The numbers").click()
    page.locator('.tiles [data-key="Error"] a').focus()
    page.evaluate("scrollTo(0, 120)")
    page.evaluate("document.activeElement.isTheSame = true")
    declined(server)
    expect(tile(console, "Compensated")).to_have_text(str(before + 1))
    kept = page.evaluate(
        "[document.activeElement.isTheSame, scrollY, document.querySelector('#throughput details').open]"
    )
    assert kept == [True, 120, True]


def test_a_service_that_fails_is_shown_with_the_time_to_its_next_probe(console: Console, server: Server) -> None:
    server.switch("payment", down=True)
    try:
        waiting = [server.order(wait=False, Item="waits") for _ in range(6)]
        console.open()
        payment = console.page.locator('#services [data-key="payment"]')
        expect(payment).to_contain_text("is failing")
        expect(payment).to_contain_text(re.compile(r"next probe in \d"))
        expect(payment).to_contain_text(re.compile(r"since .+, \d+ failures? in a row"))
        expect(payment).to_contain_text(re.compile(r"[1-6] orders? waits? for it"))
        expect(console.page.locator("#verdict")).to_contain_text(
            "payment is failing; orders wait for it and go on by themselves."
        )
        first = payment.locator(".probe").inner_text()
        # It is counted down without an answer of the API.
        expect(payment.locator(".probe")).not_to_have_text(first)
    finally:
        server.switch("payment", down=False)
    expect(payment).to_contain_text("answers")
    for order in waiting:
        server.seen(order["OrderID"], lambda task: task["ProcessState"] == "Processed")


def test_failures_are_grouped_by_cause_and_lead_to_their_orders_and_to_a_job(
    console: Console, server: Server, inventory: Inventory
) -> None:
    stuck(server, inventory, "grouped")
    console.open()
    group = console.page.locator('#failures [data-key="compensation-failed reserve-inventory"]')
    count = next(one["Count"] for one in server.get("/overview")["Failures"] if one["Code"] == "compensation-failed")
    expect(group.get_by_role("link", name="show them")).to_have_text(str(count))
    expect(group).to_contain_text("Remove the cause at the service, then resubmit")
    expect(group).to_contain_text("no releases during stock-taking (stock-is-counted)")
    group.get_by_role("link", name="show them").click()
    console.shown("#/orders?state=Error&reason=compensation-failed&step=reserve-inventory")
    expect(console.page.locator("tbody tr")).to_have_count(count)
    console.page.go_back()
    console.shown("#/")
    console.page.get_by_role("link", name="Resubmit group").first.click()
    console.heading("Handle many orders")
    expect(console.page.locator("#p-reason")).to_have_value("compensation-failed")
    expect(console.page.locator("#p-step")).to_have_value("reserve-inventory")


def test_supervisors_and_their_leases_are_shown_with_the_last_run(console: Console) -> None:
    console.open()
    supervisors = console.page.locator("#supervisors")
    row = supervisors.get_by_role("row", name=re.compile("supervisor-1-")).first
    expect(row).to_contain_text(re.compile(r"just now|\d s ago"))
    supervisors.get_by_text(re.compile(r"All \d+ leases")).click()
    expect(
        supervisors.get_by_role("table", name="Leases").get_by_role("rowheader", name="supervisor/run")
    ).to_be_visible()


def test_dead_letters_are_counted(console: Console, server: Server) -> None:
    console.open()
    count = server.get("/overview")["DeadLetters"]["Count"]
    console.page.get_by_role("link", name=f"{count} dead letters").click()
    console.heading("Dead letters")


def test_a_supervisor_that_was_not_heard_of_for_long_is_said_to_be_silent(console: Console, server: Server) -> None:
    quiet = server.get("/overview")
    quiet["Leases"] = [{**lease, "RenewedAt": "2020-01-01T00:00:00.000Z"} for lease in quiet["Leases"]]
    console.page.route("**/overview", lambda route: route.fulfill(json=quiet))
    console.open()
    expect(console.page.locator("#verdict")).to_contain_text("No supervisor was heard of for more than two minutes")


def test_where_nothing_waits_the_page_says_so(console: Console, server: Server) -> None:
    well = server.get("/overview")
    well["Counts"] = [{**count, "Count": 0, "AtLeast": False} for count in well["Counts"]]
    well["Failures"], well["DeadLetters"] = [], {"Count": 0, "AtLeast": False}
    well["Services"] = [{"Service": "payment", "State": "Closed"}]
    console.page.route("**/overview", lambda route: route.fulfill(json=well))
    console.open()
    expect(console.page.locator("#verdict")).to_have_text("No order is in Error, and no service fails.")
    expect(console.page.locator("#failures")).to_contain_text("None.")
