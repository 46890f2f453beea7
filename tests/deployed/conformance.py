"""The store's conformance suite, in Rust, against the emulator's DynamoDB."""

from __future__ import annotations

import re

from harness.deployment import client
from harness.emulator import Emulator, client_environment
from harness.report import expect
from harness.tools import run

# Where it names a DynamoDB, the suite makes its tables there; else on one in its own process.
ENDPOINT = "STEPWARDEN_DYNAMODB_URL"


def suite_passes(emulator: Emulator) -> str:
    """The same suite that `cargo test` runs on a DynamoDB of its own."""
    before = tables(emulator)
    command = ["cargo", "test", "--locked", "--workspace", "--test", "adapters", "conformance::dynamodb"]
    done = run(command, env={**client_environment(emulator.url), ENDPOINT: emulator.url})
    counted = re.search(r"test result: ok\. (\d+) passed", done.stdout)
    expect(counted is not None and int(counted[1]) > 0, f"tests ran:\n{done.stdout[-2000:]}")
    made = len(tables(emulator) - before)
    expect(made > 0, "it ran somewhere else: no table was made on the emulator")
    return f"{counted[1] if counted else 0} tests on {made} tables"


def tables(emulator: Emulator) -> set[str]:
    """All tables there are."""
    pages = client(emulator, "dynamodb").get_paginator("list_tables").paginate()
    return {name for page in pages for name in page["TableNames"]}
