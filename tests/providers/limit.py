"""A carrier that allows 20 calls a second, under load for a minute."""

from __future__ import annotations

import time
from pathlib import Path

from card import CardProvider
from carrier import Carrier
from harness.report import STOPPED, expect, not_stopped, until
from shop import Shop, order

LIMIT_PER_S = 20
WINDOW_S = 60.0
ORDERS = 1_350
# At most 5 % more than 20 a second. A slow machine makes fewer calls; a test of the agent has a clock of its own.
CALLS = range(1_000, 1_261)
# A pause of the agent or of the carrier may make two calls come together.
REFUSED_MAX = 12


def is_kept(program: Path, folder: Path) -> str:
    """The agent uses the limit, and does not exceed it."""
    carrier = Carrier("carrier-secret", calls_per_s=LIMIT_PER_S)
    workflow = Path(__file__).with_name("ship.toml")
    with Shop(program, folder, CardProvider("unused"), carrier, workflow) as shop:
        shop.post([order() for _ in range(ORDERS)])
        until("the carrier is called", lambda: bool(carrier.call_times))
        began = carrier.call_times[0]
        STOPPED.wait(max(0.0, began + WINDOW_S - time.monotonic()))
        not_stopped()
        calls = sum(at < began + WINDOW_S for at in carrier.call_times)
        refused = carrier.statuses[429]
        expect(len(carrier.shipments) < ORDERS, "the load ended too early")
        expect(calls in CALLS, f"{calls} calls in {WINDOW_S:.0f} s, expected {CALLS.start} to {CALLS.stop - 1}")
        expect(refused <= REFUSED_MAX, f"{refused} of {calls} calls were over the limit")
        doubled = [order_id for order_id, shipments in carrier.shipments.items() if len(shipments) != 1]
        expect(not doubled, f"shipped more than once: {doubled}")
        return f"{calls} calls in {WINDOW_S:.0f} s, {refused} of them refused"
