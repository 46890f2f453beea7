"""One order: how it stands in words, its way, its history, and what it holds."""

from __future__ import annotations

import re
from typing import Any

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import expect
from world import declined, held, stuck


def test_a_declined_order_shows_its_undo_step_by_step(console: Console, server: Server) -> None:
    order = declined(server)
    console.open(f"#/order/{order['OrderID']}")
    page = console.page
    expect(page.locator("#standing-head")).to_have_text("Compensated.")
    expect(page.locator("#standing")).to_contain_text(
        "Reason: rejected. Charge-payment: payment was told to decline (card-declined)."
    )
    expect(page.locator("#actions").get_by_role("button")).to_have_text(["Post again…"])
    reserve = page.get_by_role("img", name=re.compile("^reserve-inventory: "))
    expect(reserve).to_have_accessible_name(re.compile(r"attempt 1: done, after .* for .*; undo, attempt 2: done"))
    charge = page.get_by_role("img", name=re.compile("^charge-payment: "))
    expect(charge).to_have_accessible_name(
        re.compile(r"attempt 1: rejected: payment was told to decline \(card-declined\).*undo")
    )
    expect(page.get_by_role("img", name="ship-order: nothing yet.")).to_be_visible()
    step = page.get_by_role("table", name="The order's steps").get_by_role("row", name=re.compile("^charge-payment"))
    expect(step).to_contain_text("Undone")
    expect(step).to_contain_text("payment was told to decline")
    expect(step).to_contain_text("card-declined, attempt 1")
    expect(step).to_contain_text(re.compile(r"call \d+ ms"))


def test_the_history_says_who_did_what_and_why_the_last_first(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = held(server, inventory, "told")
    server.post(f"/orders/{order['OrderID']}/pause", {"By": "ann", "Reason": "stock-taking"})
    server.seen(order["OrderID"], lambda task: "Paused" in task)
    console.open(f"#/order/{order['OrderID']}")
    history = console.page.get_by_role("table", name="What happened, the last first")
    expect(history.locator("tbody tr").first).to_have_text(re.compile("paused.*ann.*stock-taking"))
    expect(history.locator("tbody tr").last).to_contain_text("submitted")
    at = server.get(f"/orders/{order['OrderID']}")["History"][0]["At"]
    expect(history.locator("tbody tr").last.locator("time")).to_have_attribute("title", at)
    inventory.holding.discard("told")


def test_document_and_outputs_are_shown_digit_for_digit_and_what_is_secret_is_not(
    console: Console, server: Server
) -> None:
    order = server.post(
        "/orders",
        {"CorrelationID": "secret", "Card": {"CardNumber": "4111-2222", "Holder": "Ann"}, "Amount": 0},
        {"Prefer": "wait=20"},
    )
    raw = server.post("/orders", b'{"Total": 12.10, "Large": 12345678901234567890}')
    exact = server.seen(raw["OrderID"], lambda task: task["ProcessState"] == "Processed")
    console.open(f"#/order/{exact['OrderID']}")
    document = console.page.get_by_role("region", name="The document")
    expect(document).to_contain_text('"Total": 12.10')
    expect(document).to_contain_text('"Large": 12345678901234567890')
    expect(console.page.get_by_role("region", name="The output of reserve-inventory")).to_contain_text('"Shelf": "B7"')
    console.open(f"#/order/{order['OrderID']}")
    expect(console.page.get_by_role("region", name="The document")).to_contain_text('"Holder": "Ann"')
    expect(console.page.locator("#holds")).to_contain_text("secret")
    assert "4111-2222" not in console.page.content()


def test_an_order_that_waits_for_a_service_says_so_and_when_the_next_probe_is(console: Console, server: Server) -> None:
    server.switch("payment", down=True)
    try:
        orders = [server.order(wait=False, Item="waits") for _ in range(6)]
        console.open(f"#/order/{orders[0]['OrderID']}")
        head = console.page.locator("#standing-head")
        expect(console.page.locator("#standing")).to_contain_text(
            re.compile(r"payment is failing since \d\d:\d\d:\d\d: HTTP 503 .*; the next probe is at \d\d:\d\d:\d\d\.")
        )
        expect(console.page.locator(".todo")).to_have_text(
            "What to do: Restore payment. Its orders then go on by themselves."
        )
    finally:
        server.switch("payment", down=False)
    # The page follows it to its end by itself.
    expect(head).to_have_text("Processed.")
    expect(console.page.get_by_role("img", name=re.compile("^charge-payment"))).to_have_accessible_name(
        re.compile("put off|done")
    )


def test_an_attempt_under_way_says_until_when(console: Console, server: Server, inventory: Inventory) -> None:
    order = held(server, inventory, "busy")
    console.open(f"#/order/{order['OrderID']}")
    expect(console.page.locator("#standing-head")).to_have_text(
        re.compile(r"Reserve-inventory was handed to inventory \(attempt 1\), answer due by \d\d:\d\d:\d\d\.")
    )
    inventory.holding.discard("busy")
    expect(console.page.locator("#standing-head")).to_have_text("Processed.")


def test_an_order_whose_undo_was_refused_says_why_and_what_to_do(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "why")
    console.open(f"#/order/{order['OrderID']}")
    expect(console.page.locator("#standing-head")).to_have_text(
        "Waiting for an operator: compensation-failed at reserve-inventory."
    )
    expect(console.page.locator("#standing")).to_contain_text("The order was being undone. Reason: rejected.")
    expect(console.page.locator(".todo")).to_contain_text(
        "Remove the cause at the service, then resubmit: the undo goes on."
    )


def step(name: str, agent: str, state: str, **more: Any) -> dict[str, Any]:
    """A step as the API shows it."""
    bare = {"LockedBy": None, "CompleteBy": None, "FailureCount": 0, "Attempt": 0, "Direction": "Forward"}
    return {"Name": name, "Agent": agent, "ProcessState": state, **bare, **more}


PAST = "2020-01-01T00:00:00.000Z"


def test_the_situation_and_the_actions_are_those_of_the_api(console: Console, server: Server) -> None:
    order_id = "01900000-0000-7000-8000-000000000001"
    task = {
        "OrderID": order_id,
        "Version": 7,
        "Workflow": "order",
        "WorkflowVersion": 1,
        "ProcessState": "Processing",
        "Steps": [step("a", "payment", "Pending", Attempt=1, NotBefore=PAST)],
        "Priority": "high",
        "History": [{"At": PAST, "Who": "shop", "What": "submitted", "Kind": "Submitted"}],
        "Situation": {"Head": f"a waits until {PAST}.", "Text": "In words.", "ToDo": "Wait.", "Waits": True},
        "Actions": ["resume", "a-new-one"],
    }
    console.page.route(f"**/orders/{order_id}", lambda route: route.fulfill(json=task))
    console.page.route(
        "**/services",
        lambda route: route.fulfill(json={"Services": [{"Service": "payment", "State": "Closed", "Since": PAST}]}),
    )
    console.open(f"#/order/{order_id}")
    page = console.page
    expect(page.locator("#standing-head")).to_have_text("a waits until 1 Jan, 01:00:00.")
    expect(page.locator("#actions").get_by_role("button")).to_have_text(["Resume…"])
    expect(page.locator("#standing > p")).to_have_text(["In words.", "What to do: Wait."])
    expect(page.locator("#view")).to_contain_text("high priority")
    # Of an order that is not stored the API has no document.
    expect(page.locator("#holds")).to_contain_text("The document cannot be shown.")


def test_a_long_way_is_read_off_the_history(console: Console) -> None:
    order_id = "01900000-0000-7000-8000-000000000002"
    undo = {"Direction": "Undo"}
    lines: list[tuple[str, str, str, str | None, dict[str, Any]]] = [
        ("00:00", "Submitted", "shop", None, {}),
        ("00:01", "Claimed", "s1", None, {"Attempt": 1}),
        ("00:31", "Expired", "s1", "attempt 1 expired, failure 1 of 3", {"Attempt": 1}),
        ("00:33", "Claimed", "s1", None, {"Attempt": 2}),
        ("00:34", "Deferred", "s1", None, {"Attempt": 2}),
        ("00:50", "Paused", "ann", "stock-taking", {}),
        ("05:00", "Resumed", "ann", "done", {}),
        ("05:01", "Claimed", "s1", None, {"Attempt": 3}),
        ("05:02", "GivenUp", "s1", None, {"Attempt": 3}),
        ("05:02", "Entered", "s1", "a: no", {"State": "Error"}),
        ("09:00", "Entered", "s1", "cancelled by bob", {"State": "Compensating"}),
        ("09:00", "Cancelled", "bob", "enough", {}),
        ("09:01", "Claimed", "s1", None, {"Attempt": 4, **undo}),
        ("09:01", "Frozen", "s1", None, {"Attempt": 4, **undo}),
        ("09:02", "Processed", "s1", None, {"Attempt": 4, **undo}),
        ("09:02", "Entered", "s1", None, {"State": "Compensated"}),
    ]
    history = [
        {
            "At": f"2020-01-01T00:{at}.000Z",
            "What": "in words",
            "Kind": kind,
            "Who": who,
            **({"Why": why} if why else {}),
            # A name with the words of another line is still only a name.
            **({"Step": "a claimed #9", "Direction": "Forward", **more} if "Attempt" in more else more),
        }
        for at, kind, who, why, more in lines
    ]
    task = {
        "OrderID": order_id,
        "Version": 15,
        "Workflow": "order",
        "WorkflowVersion": 1,
        "ProcessState": "Compensated",
        "Situation": {"Head": "Compensated.", "Waits": False},
        "Actions": [],
        "Priority": "normal",
        "History": history,
        "SubmittedAt": "2020-01-01T00:00:00.000Z",
        "Steps": [step("a claimed #9", "x", "Processed", Attempt=4, Direction="Undo")],
    }
    console.page.route(f"**/orders/{order_id}", lambda route: route.fulfill(json=task))
    console.open(f"#/order/{order_id}")
    expect(console.page.get_by_role("img", name=re.compile("^a claimed"))).to_have_accessible_name(
        "a claimed #9: attempt 1: not done in time, after 1.0 s, for 30 s; "
        "waits before it is tried again, after 31 s, for 2.0 s; "
        "attempt 2: put off, after 33 s, for 1.0 s; "
        "waits before it is tried again, after 34 s, for 4 min 27 s; "
        "attempt 3: given up, after 5 min 1 s, for 1.0 s; undo, attempt 4: done, after 9 min 1 s, for 1.0 s."
    )
    expect(console.page.get_by_role("img", name=re.compile("^The order: "))).to_have_accessible_name(
        re.compile("paused by ann: stock-taking.*Error: a: no.*cancelled by bob: enough")
    )


def test_an_order_that_is_not_there_is_said_to_be_not_there(console: Console) -> None:
    console.open("#/order/no-such-order")
    expect(console.page.locator("#problem")).to_contain_text("There is no order of this id")
    console.page.get_by_role("link", name="Look for it as a correlation id").click()
    console.shown("#/orders?correlation=no-such-order")
    expect(console.page.locator(".empty")).to_contain_text("No orders match.")


def test_an_address_that_names_no_view_says_so(console: Console) -> None:
    console.open("#/nowhere")
    console.heading("Nothing here")
    console.page.get_by_role("link", name="To the overview").click()
    console.heading("Overview")
