"""Jobs: the dry run, the plan, the start, the progress, the end."""

from __future__ import annotations

import re
from typing import Any

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Locator, expect
from world import DECLINED, alerted, stuck


def plan(console: Console, *, since: str = "", canary: str = "1", reason: str = "stock-taking is over") -> Locator:
    """Fills in a plan for the orders whose undo was refused since then, and has them counted."""
    console.open(f"#/jobs/new?reason=compensation-failed&step=reserve-inventory&since={since}")
    page = console.page
    page.get_by_label("Your name").fill("ann")
    # Two fields are called so: which orders, and why.
    page.locator("#reason").fill(reason)
    page.get_by_label("Canaries").fill(canary)
    page.get_by_role("button", name="Count them (dry run)").click()
    standing = page.locator("#standing-head")
    expect(standing).to_contain_text("Plan: ")
    return standing


def group(server: Server, inventory: Inventory, name: str, size: int) -> tuple[list[str], str]:
    """Orders that wait in Error, and when the first of them failed: older ones are not meant."""
    tasks = [stuck(server, inventory, f"{name}-{number}") for number in range(size)]
    return [task["OrderID"] for task in tasks], tasks[0]["UpdatedAt"]


def test_a_group_is_counted_started_and_followed_to_its_end(
    console: Console, server: Server, inventory: Inventory
) -> None:
    for order in server.get("/orders?state=Error&limit=100")["Orders"]:
        document = server.get(f"/orders/{order['OrderID']}/document")["Document"]
        inventory.refusing.discard(document.get("Tag", ""))
    group(server, inventory, "job", 3)
    for number in range(3):
        inventory.refusing.discard(f"job-{number}")
    console.open()
    matching = next(one["Count"] for one in server.get("/overview")["Failures"] if one["Code"] == "compensation-failed")
    console.page.get_by_role("link", name="Resubmit group… compensation-failed at reserve-inventory").click()
    console.heading("Handle many orders")
    page = console.page
    page.get_by_label("Your name").fill("ann")
    page.locator("#reason").fill("stock-taking is over")
    page.get_by_label("Canaries").fill("2")
    page.get_by_label("Orders per second").fill("100")
    page.get_by_role("button", name="Count them (dry run)").click()
    expect(page.locator("#standing-head")).to_have_text(f"Plan: {matching} orders match. Nothing is done yet.")
    page.get_by_role("button", name=f"Start: resubmit {matching} orders…").click()
    dialog = console.dialog()
    expect(dialog).to_contain_text(f"{matching} orders in Error are resubmitted, each under the same idempotency key")
    expect(dialog).to_contain_text("The first 2 go alone. If more than 20 % of them fail again, the job stops.")
    expect(dialog.get_by_label("Reason")).to_have_value("stock-taking is over")
    dialog.get_by_role("button", name=f"Resubmit {matching} orders").click()
    expect(page.locator("#standing-head")).to_have_text(f"Done: {matching} orders recovered.")
    expect(page.locator("#progress")).to_contain_text(f"{matching} recovered")
    expect(page.locator("#progress").get_by_role("img")).to_have_accessible_name(
        re.compile(f"^{matching} recovered, 0 under way, 0 failed again")
    )
    assert server.get("/orders?state=Error&reason=compensation-failed")["Orders"] == []
    page.get_by_role("link", name="Jobs", exact=True).click()
    row = page.get_by_role("row", name=re.compile("stock-taking is over")).first
    expect(row).to_contain_text("Done")
    expect(row).to_contain_text(f"{matching} of {matching}")
    expect(row).to_contain_text("compensation-failed, at reserve-inventory")


def test_a_plan_is_discarded_without_touching_an_order(console: Console, server: Server, inventory: Inventory) -> None:
    (order_id,), since = group(server, inventory, "discard", 1)
    before = server.get(f"/orders/{order_id}")["Version"]
    standing = plan(console, since=since)
    expect(standing).to_have_text("Plan: 1 order matches. Nothing is done yet.")
    dialog = console.act("Discard…")
    expect(dialog).to_contain_text("The plan is put away; no order is touched.")
    dialog.get_by_role("button", name="Cancel job").click()
    expect(standing).to_have_text("It was discarded before it did anything.")
    expect(console.page.locator("#actions").get_by_role("button")).to_have_count(0)
    assert server.get(f"/orders/{order_id}")["Version"] == before


def test_a_plan_that_matches_nothing_has_nothing_to_start(console: Console) -> None:
    console.open("#/jobs/new?reason=hop-limit")
    console.page.get_by_label("Your name").fill("ann")
    console.page.locator("#reason").fill("just looking")
    console.page.get_by_role("button", name="Count them (dry run)").click()
    standing = console.page.locator("#standing-head")
    expect(standing).to_have_text("Plan: no order matches. There is nothing to start.")
    expect(console.page.locator("#actions").get_by_role("button")).to_have_text(["Discard…"])


def test_a_job_whose_canaries_fail_again_stops_itself_and_says_why(
    console: Console, server: Server, inventory: Inventory
) -> None:
    ids, since = group(server, inventory, "again", 3)
    standing = plan(console, since=since)
    console.act("Start: resubmit 3 orders…").get_by_role("button", name="Resubmit 3 orders").click()
    expect(standing).to_have_text("It stopped itself. What was sent is carried out; nothing more is sent.")
    expect(console.page.locator("#standing")).to_contain_text("1 of 1 canaries failed again, more than 20 %")
    expect(console.page.locator("#progress")).to_contain_text("1 failed again")
    expect(console.page.locator("#progress")).to_contain_text("2 were left as they are")
    states = [server.get(f"/orders/{order_id}")["ProcessState"] for order_id in ids]
    assert states == ["Error"] * 3


def test_a_job_under_way_is_shown_on_the_first_page_and_can_be_cancelled(
    console: Console, server: Server, inventory: Inventory
) -> None:
    ids, since = group(server, inventory, "slow", 3)
    # The canary is on its way as long as its release has no answer.
    inventory.holding.update(f"slow-{number}" for number in range(3))
    standing = plan(console, since=since, reason="try one")
    console.act("Start: resubmit 3 orders…").get_by_role("button", name="Resubmit 3 orders").click()
    expect(standing).to_have_text("The first one is on its way; the others wait for how it fares.")
    address = console.page.url.split("/", 3)[3]
    console.open()
    expect(console.page.locator("#jobs")).to_contain_text("Canary")
    console.page.locator("#jobs").get_by_role("link", name="try one").click()
    console.shown(address)
    dialog = console.act("Cancel job…")
    expect(dialog).to_contain_text("Nothing more is put on its way. What was sent is carried out.")
    dialog.get_by_role("button", name="Cancel job").click()
    expect(standing).to_have_text("It was cancelled. What was sent is carried out; nothing more is sent.")
    expect(console.page.locator("#standing")).to_contain_text("by ann: checked with the shop")
    assert [server.get(f"/orders/{order_id}")["ProcessState"] for order_id in ids].count("Error") == 2
    inventory.holding.clear()
    # What was sent is carried out, and refused again.
    for order_id in ids:
        alerted(server, order_id)


def test_a_plan_that_was_started_by_somebody_else_is_not_started_twice(
    console: Console, server: Server, inventory: Inventory
) -> None:
    _, since = group(server, inventory, "twice", 1)
    standing = plan(console, since=since)
    dialog = console.act("Start: resubmit 1 order…")
    job = console.page.url.rsplit("/", 1)[1]
    server.post(f"/bulk/{job}/cancel", {"By": "bob", "Reason": "not now"})
    console.send("Resubmit 1 order", "Refused: it was changed meanwhile", error=True)
    dialog.get_by_role("button", name="Leave it").click()
    expect(standing).to_have_text("It was discarded before it did anything.")


def test_a_plan_that_the_api_refuses_keeps_what_was_filled_in(console: Console) -> None:
    console.open("#/jobs/new?since=2026-11-21T10:00:00.000Z&until=2026-11-20T10:00:00.000Z")
    page = console.page
    page.get_by_label("Your name").fill("ann")
    page.locator("#reason").fill("the wrong way round")
    page.get_by_role("button", name="Count them (dry run)").click()
    expect(page.locator("#plan-error")).to_have_text("Refused: Selector.FailedUntil must not be before FailedSince.")
    expect(page.locator("#reason")).to_have_value("the wrong way round")
    expect(page.get_by_label("Failed since")).not_to_have_value("")


def test_a_job_that_is_not_there_is_said_to_be_not_there(console: Console) -> None:
    console.open("#/job/nothing")
    expect(console.page.locator("#problem")).to_have_text("There is no job of this id.")


def test_compensated_orders_are_posted_again_by_a_job(console: Console, server: Server) -> None:
    since = server.order(Item="tea", StandIn=DECLINED)["UpdatedAt"]
    server.order(Item="tea", StandIn=DECLINED)
    console.open(f"#/jobs/new?action=Again&reason=rejected&step=charge-payment&since={since}")
    page = console.page
    page.get_by_label("Your name").fill("ann")
    page.locator("#reason").fill("the bank is back")
    page.get_by_role("button", name="Count them (dry run)").click()
    standing = page.locator("#standing-head")
    expect(standing).to_have_text("Plan: 2 orders match. Nothing is done yet.")
    expect(page.locator("#standing")).to_contain_text("Compensated orders: rejected, at charge-payment")
    dialog = console.act("Start: post 2 orders again…")
    expect(dialog).to_contain_text("2 orders are posted again. Each becomes one new order with new idempotency keys.")
    dialog.get_by_role("button", name="Post 2 orders again").click()
    # The card is declined again.
    expect(standing).to_have_text("Done: 0 recovered, 2 failed again.")
    assert sum("AgainOf" in server.get(f"/orders/{one['OrderID']}/document") for one in compensated(server)) >= 1


def compensated(server: Server) -> list[dict[str, Any]]:
    """The newest compensated orders."""
    return list(server.get("/orders?state=Compensated&limit=100")["Orders"])
