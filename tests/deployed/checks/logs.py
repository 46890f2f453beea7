"""What the functions wrote down."""

from __future__ import annotations

import functools
import json
from typing import Any

from harness.deployment import client
from harness.report import expect, expect_equal, until
from world import SECRET, World

FUNCTIONS = ("api", "submission", "scheduler", "agents", "supervisor")


def logs_name_orders_and_keep_documents_out(world: World) -> None:
    """Each line is one JSON object; metrics are among them; nothing of a document is."""
    metrics: set[str] = set()
    for function in FUNCTIONS:
        lines = until(f"{function} logged something", functools.partial(own_lines, world, function), 20)
        expect(SECRET not in "\n".join(lines), f"{function} logs what is in a document")
        broken = [line for line in lines if not isinstance(decoded(line), dict)]
        expect_equal(f"lines of {function} that are no JSON object", broken[:3], [])
        for line in map(decoded, lines):
            metrics |= {name for name in line if name.islower()} if "_aws" in line else set()
    expect(
        metrics >= {"orders_accepted", "orders_processed", "agent_calls", "supervisor_runs"}, f"found {sorted(metrics)}"
    )


def tails(world: World, count: int) -> str:
    """The last lines of each function, for a reader who wonders what went wrong."""
    lines = []
    for function in FUNCTIONS:
        lines += [f"-- {function}", *own_lines(world, function)[-count:]]
    return "\n".join(lines)


def own_lines(world: World, function: str, since_ms: int = 0) -> list[str]:
    """What a function wrote since a time, without the platform's own lines."""
    logs = client(world.deployment.emulator, "logs")
    group = f"/aws/lambda/{world.deployment.function(function)}"
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since_ms)
    texts = [event["message"] for page in pages for event in page["events"]]
    lines = [line for text in texts for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("START ", "END ", "REPORT ", "INIT_START "))]


def decoded(line: str) -> Any:
    """A line as JSON; nothing where it is none."""
    try:
        return json.loads(line)
    except ValueError:
        return None
