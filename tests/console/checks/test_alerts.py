"""The alerts: one for each cause, those that are on and those that ended."""

from __future__ import annotations

import re

from console import Console
from harness.report import until
from harness.serve import Server
from playwright.sync_api import expect

AT, ENDED = "2026-11-20T17:26:43.007Z", "2026-11-20T18:00:00.000Z"
ALERT = {"Since": AT, "Text": "Orders wait.", "ToDo": "Resubmit them.", "Count": 3, "AtLeast": False}


def test_the_page_shows_the_causes_that_the_api_has_and_the_overview_leads_there(
    console: Console, server: Server
) -> None:
    cause = "order/compensation-failed/reserve-inventory"
    until("the alert is on", lambda: cause in [one["Cause"] for one in server.get("/alerts")["Alerts"]])
    console.open()
    console.page.get_by_role("link", name="All alerts").click()
    console.shown("#/alerts")
    expect(console.page.locator("nav [aria-current=page]")).to_have_text("Overview")
    expect(console.page).to_have_title(re.compile(r"^\(\d+\) Alerts"))
    [alert] = [one for one in server.get("/alerts")["Alerts"] if one["Cause"] == cause]
    row = console.page.locator("#on tbody tr", has_text=cause)
    expect(row).to_contain_text(alert["ToDo"])
    expect(row.locator("td").first).to_contain_text(re.compile(r"^\d"))
    expect(row.get_by_title(alert["Since"]).first).to_be_visible()
    row.get_by_role("link", name=cause).click()
    console.shown("#/orders?state=Error&reason=compensation-failed&step=reserve-inventory")


def test_those_that_ended_are_told_apart_and_each_cause_leads_to_what_it_holds_up(console: Console) -> None:
    of_causes = {
        "service/payment/failing": "#/service/payment",
        "order/late/-": "#/orders?state=Error&reason=late",
        "approval/shop": "#/orders?approval=true&workflow=shop",
        "late/shop": "#/orders?late=true&workflow=shop",
        "dead-letter/Refused": "#/dead-letters",
    }
    alerts = [{**ALERT, "Cause": cause} for cause in of_causes]
    alerts[0] |= {"Count": 1200, "AtLeast": True, "NotTold": ["team", "mail"]}
    alerts.append({**ALERT, "Cause": "service/shipping/failing", "EndedAt": ENDED})
    console.page.route("**/alerts", lambda route: route.fulfill(json={"Alerts": alerts}))
    console.open("#/alerts")
    expect(console.page).to_have_title("(5) Alerts · Stepwarden")
    on, ended = console.page.locator("#on tbody tr"), console.page.locator("#ended tbody tr")
    expect(on).to_have_count(5)
    expect(on.first).to_contain_text("Orders wait. Resubmit them.")
    expect(on.first).to_contain_text("≥ 1,200")
    expect(on.first).to_contain_text("Not told to team, mail.")
    for cause, address in of_causes.items():
        expect(on.get_by_role("link", name=cause)).to_have_attribute("href", address)
    expect(ended).to_have_count(1)
    expect(ended.get_by_title(ENDED).first).to_be_visible()
    expect(ended).not_to_contain_text("Resubmit them.")


def test_without_alerts_it_says_so_and_the_keyboard_leads_there(console: Console) -> None:
    console.page.route("**/alerts", lambda route: route.fulfill(json={"Alerts": []}))
    console.open()
    console.page.get_by_role("link", name="All alerts").focus()
    console.page.keyboard.press("Enter")
    console.shown("#/alerts")
    expect(console.page.get_by_role("heading", level=1)).to_be_focused()
    expect(console.page).to_have_title("Alerts · Stepwarden")
    expect(console.page.locator("#on .empty")).to_have_text("None. Nothing makes orders wait for you.")
