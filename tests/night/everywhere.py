"""All places that show numbers: API, metrics, command line, and the console on a desk and on a phone."""

from __future__ import annotations

from functools import partial
from typing import Any

import pages
import surfaces
from compare import Surface
from console.console import Console
from harness.serve import Server, ask
from services import SERVICES
from surfaces import SPANS, Shown, exactly
from truth import STATES

ORDERS = r"orders/[^/]+/(accepted|processed|compensated|closed|failed)"
PERCENTILES = r"(orders|step|service)/.+/p\d\d"
ATTEMPTS = r"/.+/(begun|done|expired|rejected)"
HEALTH = r"health/.+"
# The overview has the percentiles of its minutes. The night lasts no longer.
LAST_MINUTES = r"orders/all/p\d\d"
MINUTES = r"minute/.+"
# A table leaves out a minute in which nothing happened, whatever was under way in it.
MINUTES_OF_TABLES = r"minute/\d+/(accepted|processed|compensated|closed|failed)"


def either(*patterns: str) -> str:
    """Any of these names."""
    return "|".join(f"({pattern})" for pattern in patterns)


def of_api(server: Server, services_url: str) -> list[Surface]:
    """The API, the metrics, the command line, and the books of the services."""
    whole = either("(state|oldest)/.+", ORDERS, PERCENTILES, "(step|service)" + ATTEMPTS)
    printed = either("state/.+", ORDERS, r"(orders|step)/.+/p\d\d", "step" + ATTEMPTS, "step/.+/share")
    metrics = either(
        "state/.+", r"orders/(?!all/)[^/]+/(took|\w+ed)", "step" + ATTEMPTS, "step/.+/took", "health/.+/open"
    )
    sums = "orders/all/(accepted|processed|compensated|closed|failed)"
    commands = [
        ("overview", surfaces.command_overview, either("state/.+", "cause/.+", sums, HEALTH, "letters", LAST_MINUTES)),
        ("services", surfaces.command_services, HEALTH),
        ("alerts", surfaces.command_alerts, "alert/.+"),
        ("bulk list", surfaces.command_jobs, "job/(matching|recovered)"),
        ("dead-letters", surfaces.command_letters, "letters"),
        ("list --state Error", surfaces.command_list, "waiting"),
    ]
    calls = [
        (
            "/overview",
            surfaces.overview,
            either("(state|oldest)/.+", "(cause|since|last)/.+", MINUTES, HEALTH, "letters", LAST_MINUTES),
        ),
        ("/services", surfaces.services, HEALTH),
        ("/alerts", surfaces.alerts, "alert/.+"),
        ("/bulk", surfaces.jobs, "job/.+"),
        ("/metrics", surfaces.metrics, metrics),
    ]
    return [
        *(Surface(f"GET {path}", partial(read, server), names) for path, read, names in calls),
        *(
            Surface(
                f"GET /numbers?last={last}",
                partial(surfaces.numbers, server, last),
                either(whole, MINUTES) if last == "30m" else whole,
            )
            for last in SPANS
        ),
        *(Surface(f"stepwarden {words}", partial(read, server), names) for words, read, names in commands),
        *(
            Surface(f"stepwarden numbers --last {last}", partial(surfaces.command_numbers, server, last), printed)
            for last in SPANS
        ),
        Surface("the books of the services", partial(books, services_url), "service/.+/(done|rejected)"),
    ]


def of_console(console: Console, size: str) -> list[Surface]:
    """The pages of the console at one size."""
    sums = "orders/all/(accepted|processed|compensated|closed|failed)"
    first = either("state/.+", "cause/.+", "waiting", HEALTH, "letters", sums, MINUTES_OF_TABLES, LAST_MINUTES)
    tables = either(ORDERS, PERCENTILES, "(step|service)" + ATTEMPTS, "(step|service)/.+/share")
    return [
        Surface(f"{size}: overview", partial(pages.overview, console), first),
        *(
            Surface(
                f"{size}: numbers of {last}",
                partial(pages.numbers, console, last),
                either(tables, MINUTES_OF_TABLES) if last == "30m" else tables,
            )
            for last in SPANS
        ),
        *(
            Surface(f"{size}: list of {state}", partial(pages.orders, console, state), f"state/{state}")
            for state in STATES
        ),
        Surface(f"{size}: lists of the causes", partial(pages.orders_of_causes, console), "cause/.+"),
        Surface(f"{size}: alerts", partial(pages.alerts, console), "alert/.+"),
        *(
            Surface(f"{size}: service {name}", partial(pages.service, console, name), f"health/{name}/.+")
            for name in SERVICES
        ),
        Surface(f"{size}: jobs", partial(pages.jobs, console), "job/.+"),
        Surface(f"{size}: dead letters", partial(pages.letters, console), "letters"),
    ]


def books(services_url: str) -> Shown:
    """What the services say of themselves: steps done, undone and refused, each key once."""
    counts: dict[str, dict[str, Any]] = ask("GET", f"{services_url}/books")[1]
    for service, of in counts.items():
        for operation, direction in (("do", "Forward"), ("undo", "Undo")):
            yield f"service/{service}/{direction}/done", exactly(of.get(f"{operation} done", 0))
            yield f"service/{service}/{direction}/rejected", exactly(of.get(f"{operation} refused", 0))
        yield f"{service}: calls with another body", exactly(of.get("other bodies", 0))
        yield f"{service}: calls after their undo", exactly(of.get("do after undo", 0))
