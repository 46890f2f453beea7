"""Prices, as `tests/benches/bill/prices.json` has them, and what they make of counts."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[1] / "bill" / "prices.json"
LOADED: dict[str, Any] = json.loads(FILE.read_text())
DOLLARS: dict[str, float] = LOADED["dollars"]
ASSUMED: dict[str, Any] = LOADED["assumed"]
STEPS = 3


@dataclass(frozen=True)
class Taken:
    """What one order took, in the middle."""

    write_units: float
    read_units: float
    messages: float
    sqs_requests: float
    events: float
    invocations: float
    duration_ms: float
    log_bytes: float

    def dollars(self) -> float:
        """Dollars for a million such orders, without the time that the functions take."""
        return (
            DOLLARS["http_api_million_requests"]
            + self.write_units * DOLLARS["dynamodb_million_write_units"]
            + self.read_units * DOLLARS["dynamodb_million_read_units"]
            + self.sqs_requests * DOLLARS["sqs_million_requests"]
            + self.events * DOLLARS["eventbridge_million_events"]
            + self.invocations * DOLLARS["lambda_million_requests"]
            + self.log_bytes / 1000 * DOLLARS["logs_gb"]
        )

    def dollars_of_time(self) -> float:
        """Dollars for the time that the functions take for a million such orders."""
        return self.duration_ms / 1000 * ASSUMED["memory_mb"] / 1024 * DOLLARS["lambda_arm64_million_gb_s"]


def standard() -> float:
    """Step Functions Standard: a transition for each step and the start, behind the same HTTP API."""
    return DOLLARS["http_api_million_requests"] + (STEPS + 1) * DOLLARS["standard_million_transitions"]


def express() -> float:
    """Step Functions Express for the same, by its duration in steps of 100 ms."""
    duration_ms = STEPS * ASSUMED["remote_call_ms"] + ASSUMED["express_ms_beside_the_calls"]
    gb_s = math.ceil(duration_ms / 100) * 0.1 * ASSUMED["express_memory_mb"] / 1024
    dollars = DOLLARS["http_api_million_requests"] + DOLLARS["express_million_requests"]
    return dollars + gb_s * DOLLARS["express_million_gb_s"]
