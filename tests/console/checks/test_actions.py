"""What an operator does to one order: every action, what it says before, and what may go wrong."""

from __future__ import annotations

import re

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import expect
from world import held, stuck


def test_a_resubmit_says_what_will_happen_and_is_followed_to_its_end(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "resubmit")
    inventory.refusing.discard("resubmit")
    console.open(f"#/order/{order['OrderID']}")
    actions = console.page.locator("#actions").get_by_role("button")
    expect(actions).to_have_text(["Resubmit…", "Cancel order…", "Settle step…", "Note…", "Close order…"])
    dialog = console.act("Resubmit…", reason="stock-taking is over")
    expect(dialog).to_contain_text(
        "The undo of reserve-inventory is tried afresh as attempt 3, with no failures counted "
        "and under the same idempotency key."
    )
    expect(dialog).to_contain_text("The order ends undone.")
    console.done("Resubmit", "The order was resubmitted at")
    expect(console.page.locator("#standing-head")).to_have_text("Compensated.")
    lines = [
        (line["Who"], line["What"], line.get("Why")) for line in server.get(f"/orders/{order['OrderID']}")["History"]
    ]
    assert ("ann", "resubmitted", "stock-taking is over") in lines
    expect(console.page.get_by_role("row", name=re.compile("resubmitted ann stock-taking is over"))).to_be_visible()


def test_a_step_that_was_undone_by_hand_is_settled(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "settle")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Settle step…", reason="back on the shelf")
    expect(dialog.get_by_label("The step that you mended by hand")).to_have_text("reserve-inventory: undone")
    expect(dialog.get_by_label("Output")).to_have_count(0)
    console.done("Settle step", "The order was settled at")
    expect(console.page.locator("#standing-head")).to_have_text("Compensated.")


def test_an_order_is_closed_as_it_is(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "close")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Close order…", reason="refunded at the bank")
    expect(dialog).to_contain_text("nothing is undone")
    console.done("Close order", "The order was closed at")
    expect(console.page.locator("#standing-head")).to_have_text("Closed.")
    expect(console.page.locator("#actions").get_by_role("button")).to_have_count(0)


def test_an_order_that_is_over_is_erased_once_its_id_was_typed(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "erase")
    console.open(f"#/order/{order['OrderID']}")
    erase = console.page.get_by_role("button", name="Erase…")
    expect(erase).to_have_count(0)
    dialog = console.act("Close order…", reason="refunded to zoe quill")
    dialog.get_by_role("button", name="Close order", exact=True).click()
    dialog.get_by_role("button", name="Close", exact=True).click()
    holds = console.page.locator("#holds")
    expect(holds).to_contain_text("erase")
    dialog = console.act("Erase…", by="dpo", reason="asked for in letter 7")
    expect(dialog).to_contain_text("Only an administrator may erase.")
    confirm, button = dialog.get_by_label("The order's ID"), dialog.get_by_role("button", name="Erase", exact=True)
    for wrong in ("", order["OrderID"][:-1], "another"):
        confirm.fill(wrong)
        button.click()
        expect(dialog.locator("#dialog-result")).to_have_count(0)
    assert "ErasedAt" not in server.get(f"/orders/{order['OrderID']}")
    confirm.fill(order["OrderID"])
    button.click()
    expect(dialog.locator("#dialog-result")).to_contain_text("The order was erased at")
    assert console.violations() == []
    dialog.get_by_role("button", name="Close", exact=True).click()
    expect(erase).to_have_count(0)
    expect(console.page.get_by_role("row", name=re.compile("erased dpo asked for in letter 7"))).to_be_visible()
    expect(console.page.locator("#view")).not_to_contain_text("zoe quill")
    assert server.get(f"/orders/{order['OrderID']}/document")["Document"] == {}


def test_a_note_is_written_and_the_order_taken_on(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "note")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Note…", reason="asked the shop", label="Note")
    expect(dialog).to_contain_text("Nothing else changes.")
    dialog.get_by_label("Who works on it").select_option("I take it on")
    console.done("Note", "The order was noted at")
    expect(console.page.get_by_text("taken on by ann")).to_be_visible()
    expect(console.page.get_by_role("row", name=re.compile("taken on ann asked the shop"))).to_be_visible()
    expect(console.page.locator("#standing-head")).to_contain_text("Waiting for an operator")


def test_a_pause_and_a_resume(console: Console, server: Server, inventory: Inventory) -> None:
    order = held(server, inventory, "pause")
    console.open(f"#/order/{order['OrderID']}")
    expect(console.page.locator("#actions").get_by_role("button")).to_have_text(["Cancel order…", "Pause…", "Note…"])
    dialog = console.act("Pause…", reason="stock-taking")
    expect(dialog).to_contain_text("The attempt under way (reserve-inventory) may end.")
    console.done("Pause", "The order was paused")
    expect(console.page.locator("#standing-head")).to_contain_text("Paused by ann since")
    inventory.holding.discard("pause")
    console.sees(server.seen(order["OrderID"], lambda task: task["Steps"][0]["ProcessState"] == "Processed"))
    # The name is known from the last time.
    console.page.get_by_role("button", name="Resume…").click()
    dialog = console.dialog()
    expect(dialog.get_by_label("Your name")).to_have_value("ann")
    dialog.get_by_label("Reason").fill("counted")
    dialog.get_by_label("Reason").press("Enter")
    expect(dialog.locator("#dialog-result")).to_contain_text("The order was resumed")
    dialog.get_by_role("button", name="Close", exact=True).click()
    expect(console.page.locator("#standing-head")).to_have_text("Processed.")


def test_a_cancel_undoes_what_was_begun(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "cancel")
    inventory.refusing.discard("cancel")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Cancel order…", reason="customer called")
    expect(dialog).to_contain_text("What was begun is undone in reverse order: reserve-inventory.")
    expect(dialog).to_contain_text("This cannot be taken back.")
    console.done("Cancel order", "The order was cancelled")
    expect(console.page.locator("#standing-head")).to_have_text("Compensated.")
    assert server.get(f"/orders/{order['OrderID']}")["Reason"]["Code"] == "cancelled"


def test_an_order_that_was_changed_meanwhile_is_looked_at_again_before_anything_is_done(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = held(server, inventory, "raced")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Cancel order…")
    server.post(f"/orders/{order['OrderID']}/pause", {"By": "bob", "Reason": "was here first"})
    paused = server.seen(order["OrderID"], lambda task: "Paused" in task)
    with console.page.expect_response(re.compile("/cancel$")) as answer:
        dialog.get_by_role("button", name="Cancel order").click()
    assert answer.value.status == 412
    expect(dialog.locator("#dialog-error")).to_contain_text(
        "Nothing was done: the order was changed while you looked at it. "
        f"It was Processing in version {order['Version']}, "
        f"and is Processing in version {paused['Version']}. Look at what will happen now, then decide again."
    )
    assert server.get(f"/orders/{order['OrderID']}")["Version"] == paused["Version"]
    # What was typed is still there, and a second thought goes through.
    expect(dialog.get_by_label("Reason")).to_have_value("checked with the shop")
    inventory.holding.discard("raced")
    settled = server.seen(order["OrderID"], lambda task: task["Steps"][0]["ProcessState"] == "Processed")
    dialog.get_by_role("button", name="Cancel order").click()
    expect(dialog.locator("#dialog-error")).to_contain_text(f"is Processing in version {settled['Version']}")
    console.send("Cancel order", "The order was cancelled")
    server.seen(order["OrderID"], lambda task: task["ProcessState"] == "Compensated")


def test_an_action_that_a_changed_order_does_not_allow_is_not_offered_again(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "gone")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Resubmit…")
    inventory.refusing.discard("gone")
    server.post(f"/orders/{order['OrderID']}/resubmit", {"By": "bob", "Reason": "was here first"})
    server.seen(order["OrderID"], lambda task: task["ProcessState"] == "Compensated")
    console.send("Resubmit", "Nothing was done", error=True)
    expect(dialog).to_contain_text("In this state it cannot be resubmitted. Compensated.")
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    dialog.get_by_role("button", name="Close", exact=True).click()
    # The button that opened the dialog is gone, so the focus goes to the heading.
    expect(console.page.get_by_role("heading", level=1)).to_be_focused()


def test_name_and_reason_are_asked_for_and_blanks_are_none(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "blank")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Resubmit…", by="ann", reason="   ")
    dialog.get_by_role("button", name="Resubmit", exact=True).click()
    expect(dialog.get_by_label("Reason")).to_be_focused()
    assert dialog.get_by_label("Reason").evaluate("(field) => field.validity.valueMissing")
    assert not [url for url in console.requests if url.endswith("/resubmit")]
    assert server.get(f"/orders/{order['OrderID']}")["Version"] == order["Version"]


def test_escape_leaves_it_and_gives_the_focus_back(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "escape")
    console.open(f"#/order/{order['OrderID']}")
    console.act("Cancel order…")
    console.page.keyboard.press("Escape")
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    expect(console.page.get_by_role("button", name="Cancel order…")).to_be_focused()
    assert server.get(f"/orders/{order['OrderID']}")["Version"] == order["Version"]


def test_an_answer_that_leaves_it_open_says_that_it_is_safe_to_send_again(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, "unsure")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Resubmit…")
    problem = {"type": "about:blank", "title": "Unavailable", "status": 503, "detail": "the queue does not answer"}
    console.page.route("**/resubmit", lambda route: route.fulfill(status=503, json=problem))
    dialog.get_by_role("button", name="Resubmit", exact=True).click()
    expect(dialog.locator("#dialog-error")).to_have_text(
        "the queue does not answer. It is not known whether it was queued; it is safe to send it again."
    )
    console.page.unroute("**/resubmit")
    console.page.route("**/resubmit", lambda route: route.abort())
    console.send("Resubmit", "the API cannot be reached", error=True)
    console.page.unroute("**/resubmit")
    inventory.refusing.discard("unsure")
    console.send("Resubmit", "The order was resubmitted")


def test_who_may_not_act_is_told_so(console: Console, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "forbidden")
    console.open(f"#/order/{order['OrderID']}")
    dialog = console.act("Resubmit…")
    console.page.route("**/resubmit", lambda route: route.fulfill(status=403, json={"message": "Forbidden"}))
    dialog.get_by_role("button", name="Resubmit", exact=True).click()
    expect(dialog.locator("#dialog-error")).to_have_text("You may not do this: the API answered 403.")
