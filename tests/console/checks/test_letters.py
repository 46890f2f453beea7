"""The dead letters: what became of each, and pages of them."""

from __future__ import annotations

from console import Console
from playwright.sync_api import expect
from world import LETTERS


def test_each_letter_says_what_became_of_it(console: Console) -> None:
    console.open("#/dead-letters")
    rows = console.page.locator("tbody tr")
    expect(rows).to_have_count(25)
    expect(rows.filter(has_text="it is unreadable").first).to_contain_text("5 times")
    unknown = rows.filter(has_text="there is no such order").first
    expect(unknown).to_contain_text("Scheduler")
    unknown.get_by_role("link", name="order 00000000").click()
    console.shown("#/order/01900000-0000-7000-8000-000000000000")


def test_older_letters_are_on_the_next_page_which_has_an_address(console: Console) -> None:
    console.open("#/dead-letters")
    first = console.page.locator("tbody tr").evaluate_all("(rows) => rows.map((row) => row.dataset.key)")
    console.page.get_by_role("link", name="Older").click()
    expect(console.page.locator("tbody tr")).to_have_count(LETTERS - 25)
    second = console.page.locator("tbody tr").evaluate_all("(rows) => rows.map((row) => row.dataset.key)")
    assert not set(first) & set(second)
    console.page.reload()
    expect(console.page.locator("tbody tr")).to_have_count(LETTERS - 25)
    console.page.get_by_role("link", name="First page").click()
    expect(console.page.locator("tbody tr")).to_have_count(25)


def test_where_there_is_none_the_page_says_so(console: Console) -> None:
    console.page.route("**/dead-letters?*", lambda route: route.fulfill(json={"DeadLetters": []}))
    console.open("#/dead-letters")
    expect(console.page.locator(".empty")).to_have_text("None. Every message was handled.")
