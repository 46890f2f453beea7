"""A card provider that answers 401 for a minute, and 1,000 orders."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from card import CardProvider
from carrier import Carrier
from harness.report import STOPPED, expect, expect_equal, not_stopped
from shop import EXAMPLE, Shop, failure_counts, order

ORDERS = 1_000
ORDERS_PER_S = 50
DOWN_S = 60.0
# The naive client calls again after the first wait of the agents' back-off, which does not grow, and has no breaker.
NAIVE_EVERY_S = 0.1
SHARE_MAX_PERCENT = 0.1


def is_survived(program: Path, folder: Path) -> str:
    """No order is compensated, and one alert says what to do."""
    card, carrier = CardProvider("new-key"), Carrier("carrier-secret", calls_per_s=1_000)
    # The key was changed at the provider, and not yet here.
    with Shop(program, folder, card, carrier, EXAMPLE / "workflows" / "shop-1.toml", card_secret="old-key") as shop:
        began = time.monotonic()
        ids, naive = [], 0.0
        for second in range(ORDERS // ORDERS_PER_S):
            ids += shop.post([order() for _ in range(ORDERS_PER_S)])
            naive += ORDERS_PER_S * (DOWN_S - (time.monotonic() - began)) / NAIVE_EVERY_S
            STOPPED.wait(max(0.0, began + second + 1 - time.monotonic()))
        STOPPED.wait(max(0.0, began + DOWN_S - time.monotonic()))
        not_stopped()
        calls = len(card.calls)
        shop.card_secret.write_text(card.secret)
        tasks = shop.settled(ids, within_s=100)
        states = Counter(task["ProcessState"] for task in tasks.values())
        expect_equal("orders by state", dict(states), {"Processed": ORDERS})
        charges = [intent.charges for intent in card.intents.values()]
        expect_equal("payments, and charges", (len(charges), set(charges)), (ORDERS, {1}))
        alerts = shop.alerts()
        expect(len(alerts) == 1 and "payment" in alerts[0], f"one alert expected: {alerts}")
        # A busy machine may wake some requests after their deadline, which costs an attempt and no order.
        late = sum(failure_counts(tasks).values())
        share = 100 * calls / naive
        expect(share <= SHARE_MAX_PERCENT, f"{calls} calls are {share:.3f} % of {naive:.0f}")
        return (
            f"{calls} calls in {DOWN_S:.0f} s, {share:.3f} % of the {naive:.0f} of a client that repeats each "
            f"{NAIVE_EVERY_S} s; with a repeat each second it would be {share / NAIVE_EVERY_S:.3f} %\n"
            f"{late} attempts expired\n{alerts[0]}"
        )
