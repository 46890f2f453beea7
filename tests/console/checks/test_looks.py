"""For every view: no rule of accessibility is broken in light and dark, a phone needs no scrolling to the side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Browser, expect
from world import held, stuck

VIEWS = {
    "overview": "#/",
    "alerts": "#/alerts",
    "numbers": "#/numbers",
    "step": "#/numbers?last=30m&step=reserve-inventory",
    "service": "#/service/payment?last=30m",
    "orders": "#/orders",
    "found": "#/orders?state=Error&field=%2FItem&value=tea",
    "unfound": "#/find?text=0123456789abcdef",
    "letters": "#/dead-letters",
    "jobs": "#/jobs",
    "plan": "#/jobs/new?reason=compensation-failed",
    "job": "#/job/{job}",
    "error": "#/order/{error}",
    "busy": "#/order/{busy}",
    "done": "#/order/{Processed}",
    "undone": "#/order/{Compensated}",
    "workflows": "#/workflows",
    "workflow": "#/workflow/order%401",
    "missing": "#/order/missing",
    "nowhere": "#/nowhere",
}


@pytest.fixture(scope="module")
def addresses(server: Server, inventory: Inventory) -> Iterator[dict[str, str]]:
    """The address of each view."""
    error = stuck(server, inventory, "looks", Note="a-text-without-any-place-to-break-" * 8)
    busy = held(server, inventory, "looks-busy")
    ids = {"error": error["OrderID"], "busy": busy["OrderID"]}
    for state in ("Processed", "Compensated"):
        ids[state] = server.get(f"/orders?state={state}&limit=1")["Orders"][0]["OrderID"]
    plan = {"By": "ann", "Reason": "for the looks of it", "Selector": {"ReasonCode": "compensation-failed"}}
    ids["job"] = server.post("/bulk", plan)["JobID"]
    yield {view: address.format(**ids) for view, address in VIEWS.items()}
    inventory.holding.discard("looks-busy")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_rule_of_accessibility_is_broken(
    browser: Browser, server: Server, addresses: dict[str, str], view: str, dark: bool
) -> None:
    with Console.on(browser, server.url, dark=dark) as console:
        console.open(addresses[view])
        for details in console.page.locator("details").all():
            details.locator("summary").click()
        assert console.violations() == []
        lightness = console.page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
        )
        assert max(lightness) < 40 if dark else min(lightness) > 230
        assert console.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("button", ["Resubmit…", "Cancel order…"])
def test_no_rule_is_broken_in_a_dialog(
    browser: Browser, server: Server, addresses: dict[str, str], button: str, dark: bool
) -> None:
    with Console.on(browser, server.url, dark=dark) as console:
        console.open(addresses["error"])
        console.act(button)
        assert console.violations() == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_needs_no_scrolling_to_the_side(
    browser: Browser, server: Server, addresses: dict[str, str], view: str
) -> None:
    with Console.on(browser, server.url, width=360, height=740, is_mobile=True, has_touch=True) as console:
        console.open(addresses[view])
        for details in console.page.locator("details").all():
            details.locator("summary").tap()
        assert console.overflow() == []
        assert console.violations() == []


def test_a_dialog_fits_a_phone(browser: Browser, server: Server, addresses: dict[str, str]) -> None:
    with Console.on(browser, server.url, width=360, height=740, is_mobile=True, has_touch=True) as console:
        console.open(addresses["error"])
        dialog = console.act("Resubmit…")
        box = dialog.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 360
        assert console.overflow() == []


def test_who_wants_less_motion_gets_none(browser: Browser, server: Server) -> None:
    script = """[...document.querySelectorAll('*')].map((one) => getComputedStyle(one))
        .filter((style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none').length"""
    with Console.on(browser, server.url, reduced_motion="reduce") as console:
        console.open()
        assert console.page.evaluate(script) == 0
    with Console.on(browser, server.url, reduced_motion="no-preference") as console:
        console.open()
        assert console.page.evaluate(script) > 0


def test_colours_are_never_all_there_is(browser: Browser, server: Server, addresses: dict[str, str]) -> None:
    with Console.on(browser, server.url, forced_colors="active") as console:
        console.open(addresses["orders"])
        states = console.page.locator("tbody .state")
        expect(states.first).to_be_visible()
        assert all(text.split()[-1].isalpha() for text in states.all_inner_texts())
