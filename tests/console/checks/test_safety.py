"""What an order holds is never markup; the page talks to nobody else; and it says so when the API is away."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from console import Console
from harness.serve import Server
from inventory import Inventory
from playwright.sync_api import Browser, Route, expect
from proxy import Proxy
from world import declined, held, stuck

MARKUP = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script><b id="pwned">'


def test_markup_in_documents_ids_names_and_errors_is_text(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = stuck(server, inventory, MARKUP, CorrelationID=MARKUP, **{MARKUP: [MARKUP, {"<i>": MARKUP}]})
    for by, reason in [(MARKUP, MARKUP)]:
        server.post(f"/orders/{order['OrderID']}/resubmit", {"By": by, "Reason": reason})
    server.seen(order["OrderID"], lambda task: task["ProcessState"] == "Error" and task["Version"] > order["Version"])
    job = server.post(
        "/bulk", {"By": MARKUP, "Reason": MARKUP, "Selector": {"ReasonCode": MARKUP[:64], "Step": MARKUP[:64]}}
    )
    page = console.page
    console.open(f"#/order/{order['OrderID']}")
    expect(page.get_by_role("region", name="The document")).to_contain_text("onerror=")
    expect(page.get_by_role("row", name=re.compile("resubmitted <img src=x"))).to_be_visible()
    harmless(console)
    from urllib.parse import quote

    for view in (
        f"#/orders?correlation={quote(MARKUP)}",
        f"#/order/{quote(MARKUP, safe='')}",
        f"#/jobs/new?reason={quote(MARKUP)}&step={quote(MARKUP)}",
        "#/jobs",
        f"#/job/{job['JobID']}",
        "#/",
    ):
        page.goto(f"{server.url}/{view}")
        expect(page.locator("#view")).to_have_attribute("data-shown", re.compile(re.escape(view[:8])))
        harmless(console)
    console.open(f"#/order/{order['OrderID']}")
    console.act("Cancel order…", by=MARKUP, reason=MARKUP)
    inventory.refusing.discard(MARKUP)
    console.send("Cancel order", "cancelled")
    harmless(console)


# What the page decides by, or counts: it is of the API, and no text of others.
KEPT = ("State", "Direction", "Priority", "Waits", "Actions", "OrderID")
TIME = re.compile(r"\d{4}-\d\d-\d\dT.*Z")


def marked(value: Any, name: str = "") -> Any:
    """An answer of the API with markup for every text in it."""
    if isinstance(value, dict):
        return {key: marked(inner, key) for key, inner in value.items()}
    if isinstance(value, list) and name not in KEPT:
        return [marked(inner, name) for inner in value]
    is_text = isinstance(value, str) and not name.endswith(KEPT) and not TIME.fullmatch(value)
    return MARKUP if is_text else value


def answering(answer: object) -> Callable[[Route], None]:
    """What answers a request with this document."""
    return lambda route: route.fulfill(json=answer)


def test_markup_in_every_text_that_a_service_or_the_api_may_send_is_text(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order_id = stuck(server, inventory, "marked")["OrderID"]
    task = {**marked(server.get(f"/orders/{order_id}")), "Reason": {"Code": MARKUP, "Message": MARKUP, "Step": MARKUP}}
    broken = {"Service": "broken", "State": "Open", "Since": task["SubmittedAt"], "Until": task["SubmittedAt"]}
    broken |= {"FailuresInARow": 1, "Reason": "failing", "Problem": MARKUP, "Text": MARKUP, "ToDo": MARKUP}
    alert = {"Cause": "service/broken/failing", "Since": task["SubmittedAt"], "Text": MARKUP, "ToDo": MARKUP}
    answers = {
        f"**/orders/{order_id}": task,
        "**/dead-letters?*": marked(server.get("/dead-letters?limit=25")),
        "**/overview": marked(server.get("/overview")),
        "**/services": {"Services": [broken]},
        "**/alerts": {"Alerts": [alert]},
    }
    page = console.page
    for path, answer in answers.items():
        page.route(path, answering(answer))
    page.route("**/orders?*", lambda route: route.fulfill(status=400, json={"detail": MARKUP}))
    for view in (f"#/order/{order_id}", "#/dead-letters", "#/", "#/orders?state=Error", "#/service/broken"):
        console.open(view)
        expect(page.locator("#view")).to_contain_text("<img src=x onerror=")
        harmless(console)


def test_markup_in_what_an_order_is_found_by_is_text(console: Console, server: Server) -> None:
    page = server.get("/orders?limit=1")
    page["Orders"][0]["Index"] = {"/CorrelationID": MARKUP, MARKUP: MARKUP}
    console.page.route("**/orders?*", lambda route: route.fulfill(json=page))
    console.open("#/orders")
    console.page.locator("#columns summary").click()
    for name in ("Correlation id", "Indexed members"):
        console.page.locator("#columns").get_by_label(name).check()
    expect(console.page.locator("thead")).to_contain_text("<img src=x onerror=")
    harmless(console)


def harmless(console: Console) -> None:
    """No text became an element or was run."""
    assert console.page.evaluate("window.pwned") is None
    assert console.page.evaluate("document.querySelectorAll('img, #pwned, body script, b[id]').length") == 0


def test_the_policy_lets_nothing_else_in_and_nobody_else_is_asked(console: Console, server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/") as response:
        policy, kinds = response.headers["Content-Security-Policy"], response.headers["X-Content-Type-Options"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert kinds == "nosniff"
    console.open()
    # The browser holds the page to it.
    script = """() => {
        const script = document.createElement('script');
        script.textContent = 'window.pwned = 3';
        document.body.append(script);
        script.remove();
        return window.pwned;
    }"""
    assert console.page.evaluate(script) is None
    assert any("Content Security Policy" in text for text in console.complaints)
    console.complaints.clear()
    for view in ("#/orders", "#/dead-letters", "#/jobs"):
        console.open(view)
    assert {urlsplit(url).netloc for url in console.requests if not url.startswith("data:")} == {
        urlsplit(server.url).netloc
    }


def test_what_did_not_change_is_not_sent_again(console: Console, server: Server) -> None:
    order = declined(server)
    console.open(f"#/order/{order['OrderID']}")
    with console.page.expect_response(lambda answer: answer.url.endswith(order["OrderID"])) as answer:
        pass
    assert answer.value.status == 304
    expect(console.page.locator("#standing-head")).to_have_text("Compensated.")


def test_an_api_that_is_away_is_said_to_be_away_and_the_page_goes_on_when_it_is_back(
    console: Console, server: Server, inventory: Inventory
) -> None:
    order = held(server, inventory, "away")
    page = console.page
    page.clock.install()
    console.open(f"#/order/{order['OrderID']}")
    expect(page.locator("#live")).to_have_text("live")
    server.stop()
    try:
        expect(page.get_by_role("alert")).to_contain_text("The API does not answer.")
        expect(page.get_by_role("alert")).to_contain_text("What you see is from before.")
        expect(page.locator("#live")).to_have_text(re.compile(r"no answer since \d\d:\d\d:\d\d"))
        # What was seen last stays to be read.
        expect(page.locator("#standing-head")).to_contain_text("Reserve-inventory was handed to inventory")
        assert console.violations() == []
        # A view that was never read says so.
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page.locator(".empty")).to_have_text("Nothing could be read yet.")
        with page.expect_event("requestfailed"):
            page.go_back()
        # From the next failure on, the page's time stands still: only the button asks.
        with page.expect_event("requestfailed"):
            page.clock.pause_at(datetime.now() + timedelta(hours=1))
    finally:
        inventory.holding.discard("away")
        server.start()
    page.get_by_role("button", name="Ask now").click()
    expect(page.locator("#away")).to_be_hidden()
    page.clock.resume()
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#standing-head")).to_have_text("Processed.")


def test_every_page_says_that_stand_ins_play_services_and_none_does_where_all_are_real(console: Console) -> None:
    warning = console.page.get_by_text("Nothing real happens there.")
    for view in ("#/", "#/orders"):
        console.open(view)
        expect(warning).to_be_visible()
    console.page.route("**/health", lambda route: route.fulfill(json={"Status": "ok", "Version": "0.1.0"}))
    console.page.reload()
    console.shown("#/orders")
    expect(warning).to_be_hidden()


def test_an_answer_503_leaves_the_page_as_it_was(console: Console, server: Server) -> None:
    console.open()
    expect(console.page.locator("#live")).to_have_text("live")
    problem = {
        "type": "about:blank",
        "title": "Unavailable",
        "status": 503,
        "detail": "this cannot be read at the moment; ask again",
    }
    console.page.route("**/overview", lambda route: route.fulfill(status=503, json=problem))
    expect(console.page.get_by_role("alert")).to_contain_text("This cannot be read at the moment; ask again.")
    expect(console.page.locator(".tiles")).to_be_visible()
    console.page.unroute("**/overview")
    expect(console.page.locator("#live")).to_have_text("live")


def test_who_may_not_look_is_told_so(console: Console) -> None:
    console.page.route("**/overview", lambda route: route.fulfill(status=403, json={"message": "Forbidden"}))
    console.open()
    expect(console.page.locator("#problem")).to_have_text("You may not see this.")


def test_the_page_works_below_a_path_of_a_proxy(browser: Browser, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "below")
    inventory.refusing.discard("below")
    with Proxy(server.url, "/stage/prod") as proxy, Console.on(browser, proxy.page) as console:
        console.open()
        console.heading("Overview")
        console.page.get_by_role("link", name="Orders", exact=True).click()
        console.shown("#/orders")
        console.open(f"#/order/{order['OrderID']}")
        console.act("Resubmit…")
        console.send("Resubmit", "The order was resubmitted")
        assert all(
            urlsplit(url).path.startswith("/stage/prod/") for url in console.requests if not url.startswith("data:")
        )
        assert console.complaints == []


@contextmanager
def page_of_the_command_line(server: Server) -> Iterator[str]:
    """`stepwarden console` for this server; gives the address of its page, without the slash at its end."""
    command = [str(server.program), "console", "--api", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.search(r"is at (\S+)/", line)
            assert address is not None, line
            yield address[1]
        finally:
            process.terminate()


def test_the_page_works_as_the_command_line_serves_it(browser: Browser, server: Server, inventory: Inventory) -> None:
    order = stuck(server, inventory, "by-program")
    inventory.refusing.discard("by-program")
    with page_of_the_command_line(server) as address, Console.on(browser, address) as console:
        console.open()
        console.heading("Overview")
        console.open(f"#/order/{order['OrderID']}")
        console.act("Resubmit…")
        console.send("Resubmit", "The order was resubmitted")
        assert all(url.startswith(f"{address}/") for url in console.requests if not url.startswith("data:"))
        assert console.complaints == []
