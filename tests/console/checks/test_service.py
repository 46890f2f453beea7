"""The page of one service: why it fails, what waits for it, its outages and its numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from console import Console
from harness.serve import Server
from playwright.sync_api import expect

AT = "2026-11-20T17:26:43.007Z"


def service(**members: object) -> dict[str, Any]:
    """A service that is held back, as the API shows it."""
    failing = {"Service": "payment", "State": "Open", "Since": AT, "Until": AT, "FailuresInARow": 5, "OutageSince": AT}
    return {**failing, "Reason": "failing", "Problem": "HTTP 503", "Text": "It fails.", "ToDo": "Mend it.", **members}


def answers(console: Console, one: dict[str, Any]) -> None:
    """Lets the page have this service."""
    console.page.route("**/services", lambda route: route.fulfill(json={"Services": [one]}))


def test_a_service_that_fails_says_since_when_with_what_and_which_orders_wait(console: Console, server: Server) -> None:
    server.switch("payment", down=True)
    try:
        waiting = [server.order(wait=False, Item="waits for it") for _ in range(4)]
        console.open()
        console.page.locator("#services").get_by_role("link", name="payment").click()
        console.shown("#/service/payment")
        console.heading("payment")
        standing = console.page.locator("#standing")
        expect(standing).to_contain_text("payment is failing since")
        expect(standing).to_contain_text("status 503")
        expect(standing).to_contain_text(re.compile(r"next probe in \d|a probe is"))
        expect(standing).to_contain_text("What to do: Restore payment.")
        expect(standing).to_contain_text("4 orders wait for it")
        standing.get_by_role("link", name="under way").click()
        console.shown("#/orders?state=Processing&service=payment")
        for order in waiting:
            expect(console.page.locator(f'tbody [data-key="{order["OrderID"]}"]')).to_be_visible()
        expect(console.page.locator("tbody tr")).to_have_count(4)
        console.open("#/orders?state=Processing&service=shipping")
        expect(console.page.locator(".empty")).to_be_visible()
        console.open("#/service/payment")
    finally:
        server.switch("payment", down=False)
    expect(console.page.locator("#standing-head")).to_have_text("payment answers.")
    expect(console.page.locator("#outages")).to_contain_text("Its calls go through since")
    for order in waiting:
        server.seen(order["OrderID"], lambda task: task["ProcessState"] == "Processed")


def test_it_has_the_charts_of_its_attempts_its_steps_and_the_workflows_that_ask_it(
    console: Console, server: Server
) -> None:
    console.open("#/service/inventory?last=30m")
    points = server.get("/numbers?last=30m&service=inventory")["Points"]
    called = [point["Forward"] for point in points if "Forward" in point]
    begun, expired = (sum(one[name] for one in called) for name in ("Begun", "Expired"))
    chart = console.page.locator("#numbers figure").first
    expect(chart.get_by_role("img").first).to_have_accessible_name(
        re.compile(rf"{begun:,} attempts begun in the last 30 minutes: \d.* done, 0 rejected, {expired:,} without an")
    )
    # Releases of stock were refused.
    undone = console.page.locator("#numbers figure").nth(1)
    expect(undone.get_by_role("img", name=re.compile("the share that was rejected"))).to_be_visible()
    expect(undone.get_by_role("img", name=re.compile("the 99th percentile"))).to_be_visible()
    undone.get_by_text("The numbers").click()
    expect(undone.get_by_role("table", name="Attempts in each minute")).to_be_visible()
    expect(console.page.locator("#steps tbody tr")).to_have_count(2)
    expect(console.page.locator("#asked-by")).to_contain_text("reserve-inventory")
    console.page.get_by_role("link", name="7 days").click()
    console.shown("#/service/inventory?last=7d")


@pytest.mark.parametrize(
    ("problem", "reason", "words"),
    [
        ("HTTP 503 Service Unavailable", "failing", "status 503"),
        ("HTTP 401 Unauthorized", "misconfigured", "misconfigured, status 401"),
        ("client error (Connect): tcp connect error: Connection refused (os error 111)", "failing", "is refused"),
        ("dns.tls.example:443: client error (Connect): tcp connect error: Connection refused", "failing", "is refused"),
        ("client error (Connect): dns error: failed to lookup address information", "failing", "(DNS)"),
        ("client error (Connect): invalid peer certificate: UnknownIssuer", "failing", "(TLS)"),
        ("no answer in time", "failing", "no answer in time"),
        ("the agent has no url", "misconfigured", "misconfigured"),
        ("12 of the last 20 answers were rejections", "rejections", "rejections"),
        ("out of paper", "failing", "failing"),
    ],
)
def test_a_problem_is_named_by_its_kind(console: Console, problem: str, reason: str, words: str) -> None:
    answers(console, service(Problem=problem, Reason=reason))
    console.open("#/service/payment")
    expect(console.page.locator("#standing dd strong")).to_contain_text(words)
    expect(console.page.locator("#standing")).to_contain_text(problem)


def test_the_rejections_of_a_service_are_accepted_on_its_page(console: Console) -> None:
    answers(console, service(Reason="rejections", Problem="12 of the last 20 answers were rejections"))
    sent: list[Any] = []

    def take(route: Any) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(json={"Service": "payment", "State": "Closed"})

    console.page.route("**/services/payment/accept-rejections", take)
    console.open("#/service/payment")
    dialog = console.act("Accept rejections…", reason="sold out")
    answers(console, {"Service": "payment", "State": "Closed"})
    dialog.locator("button[type=submit]").click()
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    assert sent == [{"By": "ann", "Reason": "sold out"}]
    expect(console.page.locator("#standing-head")).to_have_text("payment answers.")
    expect(console.page.get_by_role("button", name="Accept rejections…")).to_have_count(0)


def test_its_outages_are_those_that_were_reported(console: Console) -> None:
    alert = {"Since": AT, "Text": "payment is failing: HTTP 503.", "ToDo": "Restore it.", "Count": 3, "AtLeast": False}
    alerts = [
        {**alert, "Cause": "service/payment/failing", "EndedAt": "2026-11-20T18:00:00.000Z"},
        {**alert, "Cause": "service/payment-eu/failing"},
    ]
    console.page.route("**/alerts", lambda route: route.fulfill(json={"Alerts": alerts}))
    console.open("#/service/payment")
    rows = console.page.locator("#outages tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("payment is failing: HTTP 503.")
    expect(rows.first.get_by_title("2026-11-20T18:00:00.000Z").first).to_be_visible()


def test_an_api_without_numbers_and_alerts_still_shows_the_service(console: Console) -> None:
    for path in ("**/numbers?*", "**/alerts"):
        console.page.route(path, lambda route: route.fulfill(status=404, json={"detail": "there is no such path"}))
    console.open("#/service/payment")
    console.heading("payment")
    expect(console.page.locator("#numbers")).to_contain_text("This API keeps no numbers.")
    expect(console.page.locator("#steps")).to_have_count(0)


def test_a_service_that_is_not_known_is_said_to_be_unknown(console: Console) -> None:
    console.open("#/service/nobody")
    expect(console.page.locator("#problem")).to_have_text("There is no service nobody.")
