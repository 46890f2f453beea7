"""The numbers of a span: orders, steps and services, with their durations."""

from __future__ import annotations

import re

import pytest
from console import Console
from harness.serve import Server
from playwright.sync_api import expect


@pytest.mark.parametrize("last", ["30m", "24h", "7d", "30d"])
def test_the_page_says_what_the_api_says(console: Console, server: Server, last: str) -> None:
    console.open(f"#/numbers?last={last}")
    numbers = server.get(f"/numbers?last={last}")
    [order] = [one["Orders"] for one in numbers["Workflows"] if one["Workflow"] == "order"]
    cells = console.page.locator('#workflows [data-key="order"] td')
    shown = [f"{order[name]:,}" for name in ("Accepted", "Processed", "Compensated", "Closed", "Failed")]
    for place, number in enumerate(shown):
        expect(cells.nth(place)).to_have_text(number)
    steps = console.page.locator("#steps tbody tr")
    expect(steps).to_have_count(len(numbers["Steps"]))
    slowest = max(numbers["Steps"], key=lambda one: one["Attempts"].get("Took", {"P99Ms": 0})["P99Ms"])
    expect(steps.first).to_contain_text(slowest["Step"])
    picture = console.page.locator("#throughput").get_by_role("img")
    expect(picture).to_have_accessible_name(re.compile(rf"{numbers['Orders']['Processed']:,} processed"))


def test_a_span_is_chosen_by_a_link_and_the_overview_leads_here(console: Console) -> None:
    console.open()
    console.page.get_by_role("link", name="Days, weeks and durations").click()
    console.heading("Numbers")
    expect(console.page.locator("footer")).to_have_text(re.compile(r"Times are in UTC\+[12], the zone of this machine\."))
    console.page.get_by_role("link", name="7 days").click()
    console.shown("#/numbers?last=7d")
    expect(console.page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    expect(console.page.locator("#throughput h2")).to_have_text("Orders of the last 7 days")
    console.page.get_by_role("link", name="yesterday").click()
    console.shown("#/numbers?last=yesterday")
    expect(console.page.locator("#throughput h2")).to_have_text(re.compile(r"Orders of yesterday \(UTC\+[12]\)"))
    picture = console.page.locator("#throughput").get_by_role("img")
    expect(picture).to_have_accessible_name(re.compile(r"\d+ orders? accepted yesterday \(UTC\+[12]\)"))


def test_a_step_leads_to_its_charts_and_back(console: Console, server: Server) -> None:
    console.open("#/numbers?last=30m")
    console.page.locator("#steps").get_by_role("link", name="charge-payment", exact=True).click()
    console.shown("#/numbers?workflow=order&step=charge-payment&service=payment&last=30m")
    points = server.get("/numbers?last=30m&step=charge-payment")["Points"]
    rejected = sum(point["Forward"]["Rejected"] for point in points if "Forward" in point)
    pictures = console.page.locator("#of-step figure").first.get_by_role("img")
    expect(pictures.first).to_have_accessible_name(re.compile(rf" done, {rejected:,} rejected, 0 without an answer"))
    expect(pictures).to_have_count(3)
    console.page.get_by_role("link", name="7 days").click()
    console.shown("#/numbers?workflow=order&step=charge-payment&service=payment&last=7d")
    console.page.get_by_role("link", name="All orders").click()
    console.shown("#/numbers?last=7d")
    expect(console.page.locator("#throughput")).to_be_visible()


def test_a_step_that_was_not_called_has_no_charts(console: Console) -> None:
    console.open("#/numbers?last=30m&step=never")
    expect(console.page.locator("#of-step")).to_contain_text("No attempt in the last 30 minutes.")


def test_the_curves_are_lines_between_neighbours_and_points_where_there_is_none(console: Console, server: Server) -> None:
    numbers = server.get("/numbers?last=30m&step=charge-payment")
    took = {"P50Ms": 20, "P95Ms": 90, "P99Ms": 4000}
    attempts = {"Begun": 10, "Done": 8, "Expired": 1, "Rejected": 1, "Took": took}
    for place, point in enumerate(numbers["Points"]):
        point.pop("Forward", None)
        point.pop("Undo", None)
        if place in (3, 4, 5, 20):
            point["Forward"] = attempts
    numbers["Since"] = numbers["From"] = "2026-11-20T17:00:00.000Z"
    numbers["At"] = "2026-11-20T17:30:00.000Z"
    numbers["Points"][7]["Forward"] = {"Begun": 1, "Done": 0, "Expired": 0, "Rejected": 0}
    console.page.route("**/numbers?*", lambda route: route.fulfill(json=numbers))
    console.open("#/numbers?last=30m&step=charge-payment")
    charts = console.page.locator("#of-step")
    expect(charts.locator("line.curve")).to_have_count(6)
    expect(charts.locator("circle.curve")).to_have_count(3)
    expect(charts.locator(".mark")).to_have_text(["10", "20 %", "10 s", "1 s", "100 ms", "10 ms"])
    expect(charts).to_contain_text("41 attempts begun: 1.4 each minute on average.")
    charts.get_by_text("The numbers").click()
    row = charts.get_by_role("table").get_by_role("row").nth(1)
    expect(row).to_contain_text("20.0 %")
    expect(row).to_contain_text("4.0 s")
