"""Workflows: the list with what new orders get, the drawing, the way from an order to its workflow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from console import Console
from harness.serve import Server
from playwright.sync_api import Browser, Locator, Route, expect
from shapes import SHOP, answer, shops, workflow

CHAIN = ["reserve-inventory", "charge-payment", "ship-order"]
WIDE = {f"step-{number}-with-a-long-name-of-its-own": (f"agent-{number}", []) for number in range(30)}


def boxes(console: Console) -> dict[str, dict[str, float]]:
    """Where the box of each step stands."""
    return {
        str(box.get_attribute("data-step")): place(box.locator("rect"))
        for box in console.page.locator("#drawing [data-step]").all()
    }


def place(element: Locator) -> dict[str, Any]:
    """The place of an element on the page."""
    box = element.bounding_box()
    assert box is not None
    return dict(box)


def ends(console: Console) -> list[tuple[float, float]]:
    """Where on the page the arrows with a head end."""
    script = """(ways) => ways.map((way) => {
        const end = way.getPointAtLength(way.getTotalLength()).matrixTransform(way.getScreenCTM());
        return [end.x, end.y];
    })"""
    return [(x, y) for x, y in console.page.locator("#drawing path[marker-end]").evaluate_all(script)]


def test_the_way_leads_from_an_order_to_its_workflow_and_to_all_workflows(console: Console, server: Server) -> None:
    order = server.order(Item="mug")
    console.open(f"#/order/{order['OrderID']}")
    console.page.get_by_role("link", name="order, version 1").click()
    console.shown("#/workflow/order%401")
    console.heading("order, version 1")
    drawn = boxes(console)
    assert list(drawn) == CHAIN
    # A chain is drawn as one.
    assert all(above["y"] < below["y"] and above["x"] == below["x"] for above, below in pairwise(drawn.values()))
    console.page.get_by_role("link", name="Workflows", exact=True).click()
    console.shown("#/workflows")
    expect(console.page.locator("tbody tr")).to_have_count(1)
    expect(console.page.locator("tbody tr")).to_contain_text("all new orders")


def test_the_way_leads_from_a_workflow_to_its_orders(console: Console, server: Server) -> None:
    order = server.order(Item="of a workflow")
    console.open("#/workflow/order%401")
    console.page.get_by_role("link", name="Its orders").click()
    console.shown("#/orders?workflow=order%2F1")
    expect(console.page.locator(f'[data-key="{order["OrderID"]}"]')).to_be_visible()
    expect(console.page.get_by_role("form").get_by_label("Workflow", exact=True)).to_have_value("order/1")
    console.page.get_by_role("form").get_by_label("Workflow", exact=True).select_option("order")
    console.page.get_by_role("button", name="Show").click()
    console.shown("#/orders?workflow=order")
    expect(console.page.locator(f'[data-key="{order["OrderID"]}"]')).to_be_visible()


def test_the_list_says_which_new_orders_begin_with_which_version(console: Console) -> None:
    answer(console.page, shops())
    console.open("#/workflows")
    rows = [row.locator("th, td").all_inner_texts() for row in console.page.locator("tbody tr").all()]
    assert [(row[0], " ".join(row[1].split()), row[2]) for row in rows] == [
        ("return, version 1", "all new orders", "2"),
        ("shop, version 3", "20 % of new orders default", "7"),
        ("shop, version 2", "80 % of new orders default", "7"),
        ("shop, version 1", "retired, no new orders", "2"),
    ]
    console.page.get_by_role("link", name="shop, version 2").click()
    console.shown("#/workflow/shop%402")
    others = console.page.locator("#versions li")
    assert [text.splitlines()[0] for text in others.all_inner_texts()] == ["shop, version 3", "shop, version 1"]


def test_each_step_stands_below_its_predecessors_and_an_arrow_comes_in_for_each(console: Console) -> None:
    answer(console.page, shops())
    console.open("#/workflow/shop%402")
    drawn = boxes(console)
    assert drawn.keys() == SHOP.keys()
    arrows = ends(console)
    for step, (_, after) in SHOP.items():
        box = drawn[step]
        assert all(drawn[earlier]["y"] + drawn[earlier]["height"] < box["y"] for earlier in after), step
        # The head of an arrow reaches from its end to the box.
        into = [x for x, y in arrows if box["x"] < x < box["x"] + box["width"] and 0 < box["y"] - y < 10]
        assert len(into) == len(after), step
    assert len(arrows) == sum(len(after) for _, after in SHOP.values())
    for one, other in ((one, other) for one in drawn.values() for other in drawn.values() if one is not other):
        assert one["y"] != other["y"] or abs(one["x"] - other["x"]) > one["width"], "boxes overlap"


def test_a_screen_reader_hears_the_order_of_the_steps_and_finds_them_in_a_table(console: Console) -> None:
    answer(console.page, shops())
    console.open("#/workflow/shop%402")
    picture = console.page.locator("#drawing").get_by_role("img")
    expect(picture).to_have_accessible_name(
        "check-order first, reserve-inventory after check-order, charge-payment after check-order, print-invoice after "
        "charge-payment, book-carrier after reserve-inventory, ship-order after book-carrier and charge-payment, "
        "tell-customer after ship-order and print-invoice."
    )
    table = console.page.get_by_role("table", name="The steps and their settings")
    row = table.locator('[data-key="ship-order"]')
    expect(row).to_contain_text("book-carrier, charge-payment")
    expect(row).to_contain_text("30 s")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_wide_drawing_scrolls_by_itself_on_a_phone_and_breaks_no_rule(
    browser: Browser, server: Server, dark: bool
) -> None:
    size = {"width": 360, "height": 740, "is_mobile": True, "has_touch": True}
    with Console.on(browser, server.url, dark=dark, **size) as console:
        answer(console.page, [workflow("wide", 1, WIDE, Current=True), *shops()])
        for view in ("#/workflows", "#/workflow/wide%401", "#/workflow/shop%402"):
            console.open(view)
            assert console.overflow() == [], view
            assert console.violations() == [], view
        region = console.page.get_by_role("region", name="Drawing of shop@2")
        region.focus()
        console.page.keyboard.press("ArrowRight")
        console.page.wait_for_function("() => document.querySelector('.drawing').scrollLeft > 0")
        assert console.complaints == []


def test_a_workflow_that_is_not_there_is_said_to_be_missing(console: Console) -> None:
    console.open("#/workflow/order%409")
    expect(console.page.locator("#problem")).to_contain_text("There is no workflow order@9.")
    console.page.get_by_role("link", name="Back to the list").click()
    console.shown("#/workflows")


def test_a_workflow_of_fifty_steps_is_drawn_whole(console: Console) -> None:
    steps = {
        f"s{number}": ("a", [f"s{other}" for other in sorted({number // 2, number // 3}) if other < number])
        for number in range(50)
    }
    answer(console.page, [workflow("large", 1, steps, Current=True)])
    console.open("#/workflow/large%401")
    assert len(boxes(console)) == 50
    assert len(ends(console)) == sum(len(after) for _, after in steps.values())


def test_an_order_is_tried_without_a_call_and_an_output_may_be_supposed(console: Console, server: Server) -> None:
    orders = server.get("/overview")["Counts"]
    console.open("#/workflow/order%401")
    panel = console.page.get_by_role("region", name="Try an order")
    field = panel.get_by_label("The order, in JSON")
    field.fill('{"Item": "pot", "Total": 1.10')
    panel.get_by_role("button", name="Try", exact=True).click()
    expect(panel.locator("#try-problem")).to_contain_text("The order is no JSON")
    field.fill('{"Item": "pot", "Total": 1.10}')
    panel.get_by_role("button", name="Try", exact=True).click()
    call = panel.get_by_role("region", name="The call of reserve-inventory", exact=True)
    expect(call).to_contain_text("/reserve-inventory\n")
    expect(call).to_contain_text('"Order":{"Item": "pot", "Total": 1.10}')
    expect(panel.locator("#try-problem")).to_have_count(0)
    expect(panel).to_contain_text("What it sends depends on /Outputs/reserve-inventory.")
    assert console.violations() == []
    panel.get_by_label("Suppose this output of reserve-inventory, in JSON").fill('{"ReservationID": "r-1"}')
    panel.get_by_role("button", name="Try", exact=True).click()
    call = panel.get_by_role("region", name="The call of charge-payment", exact=True)
    expect(call).to_contain_text('"Outputs":{"reserve-inventory":{"ReservationID": "r-1"}}')
    # The typed texts stay, also on another page and back.
    console.open("#/workflows")
    console.page.get_by_role("link", name="order, version 1").click()
    expect(field).to_have_value('{"Item": "pot", "Total": 1.10}')
    assert server.get("/overview")["Counts"] == orders
    field.fill('{"Priority": "soon"}')
    panel.get_by_role("button", name="Try", exact=True).click()
    expect(panel.locator("#try-problem")).to_contain_text("Priority")


def test_a_step_may_have_any_name_in_a_try(console: Console) -> None:
    answer(console.page, [workflow("odd", 1, {"constructor": ("a", [])}, Current=True)])
    tried = {"Step": "constructor", "Agent": "a", "Forward": {"NoCall": "people decide"}}
    sent: list[Any] = []

    def fulfill(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(json={"OrderID": "x", "Steps": [tried]})

    console.page.route("**/workflows/odd/1/try", fulfill)
    console.open("#/workflow/odd%401")
    panel = console.page.get_by_role("region", name="Try an order")
    panel.get_by_role("button", name="Try", exact=True).click()
    expect(panel).to_contain_text("No call: people decide.")
    expect(panel.locator("textarea")).to_have_count(1)
    assert sent == [{"Order": {"Item": "mug"}, "Outputs": {}}]
