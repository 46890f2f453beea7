"""The list of orders: filters, search, pages, selection."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Browser, expect
from world import PROCESSED, declined, held, stuck


def rows(console: Console) -> list[str]:
    """The ids of the orders that are listed."""
    return console.page.locator("tbody th a").evaluate_all("(links) => links.map((link) => link.title)")


def test_the_list_is_filtered_by_state_reason_and_step(console: Console, server: Server) -> None:
    console.open("#/orders")
    page = console.page
    form = page.get_by_role("form", name="Filter")
    form.get_by_label("State", exact=True).select_option("Error")
    form.get_by_label("Reason", exact=True).select_option("compensation-failed")
    form.get_by_label("Step", exact=True).select_option("reserve-inventory")
    page.get_by_role("button", name="Show").click()
    console.shown("#/orders?state=Error&reason=compensation-failed&step=reserve-inventory")
    expect(form.get_by_label("State", exact=True)).to_have_value("Error")
    expected = server.get("/orders?state=Error&reason=compensation-failed&step=reserve-inventory")["Orders"]
    assert rows(console) == [order["OrderID"] for order in expected] != []
    expect(page.locator("#reach")).to_contain_text(re.compile(r"Looked at \d+ orders?"))
    page.get_by_role("link", name="All orders").click()
    console.shown("#/orders")


def test_an_order_is_found_by_its_correlation_id_and_by_a_field_of_its_document(
    console: Console, server: Server
) -> None:
    order = server.order(CorrelationID="find me / please", Customer={"Email": "only@example.org"})
    console.open("#/orders")
    page = console.page
    form = page.get_by_role("form", name="Filter")
    page.get_by_text("Time, correlation id, document").click()
    form.get_by_label("Correlation id", exact=True).fill("find me / please")
    # A blank is %20: whoever signs the query, or passes it on, takes "+" for a plus.
    with page.expect_request(lambda asked: "correlation=find%20me%20%2F%20please" in asked.url):
        form.get_by_label("Correlation id", exact=True).press("Enter")
    console.shown("#/orders?correlation=find%20me%20%2F%20please")
    assert rows(console) == [order["OrderID"]]
    console.open("#/orders?correlation=find+me+%2F+please")
    assert rows(console) == [order["OrderID"]], "an address of old"
    form.get_by_label("Correlation id", exact=True).fill("")
    page.get_by_label("Field of the document").fill("/Customer/Email")
    page.get_by_label("Its value").fill("only@example.org")
    page.get_by_role("button", name="Show").click()
    console.shown("#/orders?field=%2FCustomer%2FEmail&value=only%40example.org")
    assert rows(console) == [order["OrderID"]]


def test_the_list_is_filtered_by_time_in_the_readers_own_zone(console: Console, server: Server) -> None:
    order = server.order(Item="timed")
    at = datetime.fromisoformat(order["SubmittedAt"])
    since, until = at - timedelta(milliseconds=1), at + timedelta(hours=1)
    iso = "%Y-%m-%dT%H:%M:%S.000Z"
    console.open(f"#/orders?since={since.strftime(iso)}&until={until.strftime(iso)}")
    field = console.page.get_by_label("Submitted since")
    # Berlin is one or two hours ahead of UTC.
    shown = datetime.fromisoformat(field.input_value())
    assert (shown - since.replace(tzinfo=None, microsecond=0)) in (timedelta(hours=1), timedelta(hours=2))
    assert order["OrderID"] in rows(console)
    console.page.get_by_role("button", name="Show").click()
    # What was read off the address goes back into it unchanged.
    console.shown(
        f"#/orders?since={since.strftime(iso).replace(':', '%3A')}&until={until.strftime(iso).replace(':', '%3A')}"
    )
    console.open(f"#/orders?until={(at - timedelta(days=9)).strftime(iso)}")
    expect(console.page.locator(".empty")).to_be_visible()


def test_pages_go_on_and_a_page_can_be_sent_to_a_colleague(console: Console, browser: Browser, server: Server) -> None:
    console.open("#/orders?state=Processed")
    first = rows(console)
    assert len(first) == 50
    console.page.get_by_role("link", name="Older").click()
    expect(console.page.get_by_role("link", name="First page")).to_be_visible()
    second = rows(console)
    assert second and not set(first) & set(second) and len(first) + len(second) >= PROCESSED
    address = console.page.url
    with Console.on(browser, server.url) as colleague:
        colleague.page.goto(address)
        expect(colleague.page.locator("tbody th a").first).to_have_attribute("title", second[0])
        assert rows(colleague) == second
    console.page.get_by_role("link", name="First page").click()
    console.shown("#/orders?state=Processed")


def test_a_search_that_is_not_through_says_how_far_it_went_and_goes_on(console: Console) -> None:
    half = {"Orders": [], "NextCursor": "next", "Examined": 2000, "SearchedBackTo": "2026-01-02T03:04:05.000Z"}
    whole = {"Orders": [], "Examined": 12}
    console.page.route(
        "**/orders?*", lambda route: route.fulfill(json=whole if "cursor=next" in route.request.url else half)
    )
    console.open("#/orders?field=%2FItem&value=rare")
    reach = console.page.locator("#reach")
    expect(reach).to_contain_text("Looked at 2,000 orders, back to")
    expect(reach.get_by_title("2026-01-02T03:04:05.000Z").first).to_be_visible()
    expect(console.page.locator(".empty")).to_have_text("None on this page. There may be more: go on with “Older”.")
    console.page.get_by_role("link", name="Older").click()
    expect(reach).to_contain_text("That is all of them.")
    assert "field=%2FItem&value=rare&cursor=next" in console.page.url


def test_a_page_from_the_index_says_so_and_whether_there_is_more(console: Console, server: Server) -> None:
    server.order(CorrelationID="basket-of-the-index")
    console.open("#/orders?correlation=basket-of-the-index")
    reach = console.page.locator("#reach")
    expect(reach).to_have_text("From the index. That is all of them.")
    assert len(rows(console)) == 1
    page = {"Orders": [], "NextCursor": "next", "Examined": 0, "FromIndex": True}
    console.page.route("**/orders?*", lambda route: route.fulfill(json=page))
    console.open("#/orders?field=%2FItem&value=rare")
    expect(reach).to_have_text("From the index. “Older” goes on, also through orders that are not in it.")


def test_a_filter_that_the_api_refuses_is_explained(console: Console) -> None:
    console.open("#/orders?since=yesterday")
    expect(console.page.locator("#problem")).to_contain_text(re.compile("^Since .*"))
    console.page.get_by_role("link", name="Back to the list").click()
    console.shown("#/orders")


def test_the_search_above_takes_an_order_id_or_a_correlation_id(console: Console, server: Server) -> None:
    order = server.order(CorrelationID="above")
    console.open()
    find = console.page.get_by_role("searchbox")
    find.fill(f" {order['OrderID'].upper()} ")
    find.press("Enter")
    console.shown(f"#/order/{order['OrderID']}")
    find.fill("above")
    find.press("Enter")
    console.shown("#/orders?correlation=above")
    assert rows(console) == [order["OrderID"]]


def test_several_orders_are_selected_and_acted_on_each_in_the_version_that_was_shown(
    console: Console, server: Server, inventory: Inventory
) -> None:
    one, other, third = (held(server, inventory, f"many-{n}", CorrelationID="many") for n in range(3))
    try:
        console.open("#/orders?correlation=many")
        page = console.page
        page.get_by_label("Select all on this page").check()
        expect(page.locator("#selection")).to_contain_text("3 orders selected")
        page.get_by_label(f"Select order {third['OrderID'][-8:]}").uncheck()
        expect(page.locator("#selection")).to_contain_text("2 orders selected")
        # A refresh in between forgets no tick.
        with page.expect_response(re.compile(r"/orders\?")):
            pass
        expect(page.get_by_label(f"Select order {one['OrderID'][-8:]}")).to_be_checked()
        dialog = console.act("Pause…")
        expect(dialog).to_contain_text("The attempt under way (reserve-inventory) may end.")
        # A colleague is faster with one of them.
        server.post(f"/orders/{other['OrderID']}/pause", {"By": "bob", "Reason": "mine"})
        server.seen(other["OrderID"], lambda task: "Paused" in task)
        console.send("Pause: 2 orders", "changed meanwhile")
        expect(dialog.locator('[data-tone="good"]')).to_have_count(1)
        dialog.get_by_role("button", name="Close").click()
        paused = server.seen(one["OrderID"], lambda task: "Paused" in task)
        assert (paused["Paused"]["By"], paused["Paused"]["Reason"]) == ("ann", "checked with the shop")
        assert server.get(f"/orders/{other['OrderID']}")["Paused"]["By"] == "bob"
        assert "Paused" not in server.get(f"/orders/{third['OrderID']}")
        expect(page.locator("#selection")).to_be_hidden()
    finally:
        inventory.holding.clear()


def test_of_the_selected_orders_only_those_are_acted_on_whose_state_allows_it(
    console: Console, server: Server, inventory: Inventory
) -> None:
    done = declined(server, CorrelationID="mixed")
    waiting = stuck(server, inventory, "mixed", CorrelationID="mixed")
    console.open("#/orders?correlation=mixed")
    page = console.page
    page.get_by_label("Select all on this page").check()
    buttons = ["Resubmit…", "Cancel order…", "Close order…", "Post again…"]
    expect(page.locator("#selection").get_by_role("button")).to_have_text(buttons)
    inventory.refusing.discard("mixed")
    dialog = console.act("Resubmit…")
    expect(dialog).to_contain_text("1 selected order in a state that does not allow this: left out.")
    dialog.get_by_role("button", name="Leave them").click()
    expect(page.locator("#selection")).to_contain_text("2 orders selected")
    console.act("Resubmit…").get_by_role("button", name="Resubmit: 1 order").click()
    console.dialog().get_by_role("button", name="Close").click()
    server.seen(waiting["OrderID"], lambda task: task["ProcessState"] == "Compensated")
    assert server.get(f"/orders/{done['OrderID']}")["Version"] == done["Version"]
