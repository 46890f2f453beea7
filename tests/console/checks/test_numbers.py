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
    shown = [f"{order[name]:,}" for name in ("Accepted", "Processed", "Compensated", "Failed")]
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
    console.page.get_by_role("link", name="7 days").click()
    console.shown("#/numbers?last=7d")
    expect(console.page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    expect(console.page.locator("#throughput h2")).to_have_text("Orders of the last 7 days")
