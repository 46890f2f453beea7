"""All places that show numbers: API, metrics, command line, and the console on a desk and on a phone."""

from __future__ import annotations

import math
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
# A table leaves out the 95th percentile of calls.
IN_TABLES = r"{}/.+/(p\d\d|call p50|call p99)"
ATTEMPTS = r"/.+/(begun|done|expired|rejected|deferred|skipped)"
HEALTH = r"health/.+"
# The overview has the percentiles of its minutes. The night lasts no longer.
LAST_MINUTES = r"orders/all/p\d\d"
# A table leaves out a point in which nothing happened, whatever was under way in it.
POINTS = r"point/.+/(accepted|processed|compensated|closed|failed)"
# From the first byte of a call at its service to the last one of the answer at the program, on a busy machine.
OVERHEAD_MS = 1_000
# A bucket of durations is an eighth wide.
EIGHTH_MORE = 1.125


def either(*patterns: str) -> str:
    """Any of these names."""
    return "|".join(f"({pattern})" for pattern in patterns)


def of_api(server: Server, services_url: str) -> list[Surface]:
    """The API, the metrics, the command line, and the books of the services."""
    printed = either("state/.+", ORDERS, IN_TABLES.format("(orders|step)"), "step" + ATTEMPTS, "step/.+/share")
    metrics = either(
        "(state|oldest)/.+",
        r"orders/(?!all/)[^/]+/\w+ed",
        "step" + ATTEMPTS,
        "health/.+/open",
    )
    sums = "orders/all/(accepted|processed|compensated|closed|failed)"
    commands = [
        ("services", surfaces.command_services, HEALTH),
        ("alerts", surfaces.command_alerts, "alert/.+"),
        ("bulk list", surfaces.command_jobs, "job/(matching|recovered)"),
        ("dead-letters", surfaces.command_letters, "letters"),
        ("list --state Error", surfaces.command_list, "waiting"),
    ]
    calls = [
        ("/services", surfaces.services, HEALTH),
        ("/alerts", surfaces.alerts, "alert/.+"),
        ("/metrics", surfaces.metrics, metrics),
    ]
    return [
        Surface(
            "GET /overview",
            partial(surfaces.overview, server),
            either("(state|oldest)/.+", "(cause|since|last)/.+", POINTS, HEALTH, "letters", LAST_MINUTES),
            "30m",
        ),
        *(Surface(f"GET {path}", partial(read, server), names) for path, read, names in calls),
        Surface(
            "stepwarden overview",
            partial(surfaces.command_overview, server),
            either("state/.+", "cause/.+", sums, HEALTH, "letters", LAST_MINUTES),
            "30m",
        ),
        *(Surface(f"stepwarden {words}", partial(read, server), names) for words, read, names in commands),
        *(
            Surface(f"stepwarden numbers of {span}", partial(surfaces.command_numbers, server, span), printed, span)
            for span in SPANS
        ),
        Surface(
            "the books of the services", partial(books, services_url), r"service/.+/(done|rejected|call p\d\d)"
        ),
    ]


def of_console(console: Console, size: str) -> list[Surface]:
    """The pages of the console at one size."""
    sums = "orders/all/(accepted|processed|compensated|closed|failed)"
    first = either("state/.+", "cause/.+", "waiting", HEALTH, "letters", sums, POINTS, LAST_MINUTES)
    percentiles = IN_TABLES.format("(orders|step|service)")
    tables = either(ORDERS, percentiles, "(step|service)" + ATTEMPTS, "(step|service)/.+/share", POINTS)
    return [
        Surface(f"{size}: overview", partial(pages.overview, console), first, "30m"),
        *(
            Surface(f"{size}: numbers of {span}", partial(pages.numbers, console, span), tables, span)
            for span in pages.EACH
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
    """What the services say of themselves: steps done, undone and refused, each key once, and the times of the answers.

    The program sees a call for longer than its service, by up to the overhead. Times are cut to milliseconds.
    """
    counts: dict[str, dict[str, Any]] = ask("GET", f"{services_url}/books")[1]
    for service, of in counts.items():
        for operation, direction in (("do", "Forward"), ("undo", "Undo")):
            yield f"service/{service}/{direction}/done", exactly(of.get(f"{operation} done", 0))
            yield f"service/{service}/{direction}/rejected", exactly(of.get(f"{operation} refused", 0))
        yield f"{service}: calls with another body", exactly(of.get("other bodies", 0))
        yield f"{service}: calls after their undo", exactly(of.get("do after undo", 0))
    for call, times in ask("GET", f"{services_url}/times")[1].items():
        service, operation = call.split("/")
        name = f"service/{service}/{'Undo' if operation == 'undo' else 'Forward'}"
        times.sort()
        for percent in (50, 95, 99):
            own = times[max(1, math.ceil(len(times) * percent / 100)) - 1]
            yield f"{name}/call p{percent}", (own - 1, EIGHTH_MORE * (own + OVERHEAD_MS))
