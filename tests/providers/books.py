"""Orders of every kind against the three providers: each order's end and the providers' books agree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from card import Card, CardProvider, Intent
from carrier import SOLD_OUT, UNDELIVERABLE, Carrier
from harness.report import expect, expect_equal, until
from shop import Shop, failure_counts, order

# Kind, its number, its document, its end, and the code of its rejection.
KINDS: list[tuple[int, dict[str, Any], str, str]] = [
    (160, order(), "Processed", ""),
    (10, order(PaymentMethod=Card.LOST), "Processed", ""),
    (20, order(PaymentMethod=Card.DECLINED), "Compensated", "card_declined"),
    (5, order(PaymentMethod=Card.LOST_AND_DECLINED), "Compensated", "card_declined"),
    (10, order(PaymentMethod=Card.ASKS_CUSTOMER), "Compensated", "requires_action"),
    (10, order(PaymentMethod=Card.PROCESSING), "Compensated", "processing"),
    (5, order(PaymentMethod=Card.HOLD_EXPIRED), "Compensated", "charge_expired_for_capture"),
    (5, order(Total=0.07), "Compensated", "amount_too_small"),
    (10, order(Items=[{"SKU": SOLD_OUT, "Quantity": 1}]), "Compensated", "sold_out"),
    (10, order(ShipTo={"City": "Nowhere", "PostalCode": UNDELIVERABLE}), "Compensated", "address_undeliverable"),
]
CANCELLED = 3
TOKEN_S = 3
SEED = 7


def agree(program: Path, folder: Path) -> str:
    """Every order ends as its kind does, and the books say the same."""
    card = CardProvider("card-secret-1")
    # Every second token ends before its time.
    carrier = Carrier("carrier-secret", token_s=TOKEN_S, revoked_after_s=TOKEN_S / 2)
    kinds = [kind for kind in KINDS for _ in range(kind[0])]
    # With a seed: too many rejections in a row would hold the services back (rule 18).
    random.Random(SEED).shuffle(kinds)
    with Shop(program, folder, card, carrier) as shop:
        cancelled = cancel_during_capture(shop)
        ids = shop.post([document for _, document, _, _ in kinds])
        tasks = shop.settled([*ids, *cancelled], within_s=170)
        problems = []
        for order_id, (_, _, state, code) in zip(ids, kinds, strict=True):
            problems += unlike(tasks[order_id], state, code)
        for order_id in cancelled:
            problems += unlike(tasks[order_id], "Compensated", "")
            expect_equal("charges and refunds", counted(card, order_id), (1, 1))
        problems += [f"{order_id}: {fault}" for order_id, task in tasks.items() for fault in uneven(shop, task)]
        expect(not problems, "\n".join(problems[:20]))
        expect(set(carrier.shipments) | {one.order_id for one in card.intents.values()} <= set(tasks), "unknown orders")
        no_trace_of_secrets(shop, tasks)
        # Neither a token that ended nor a broken connection costs a failure.
        expect_equal("failures counted", dict(failure_counts(tasks)), {})
        for provider, status in ((card, 402), (card, 409), (card, 400), (carrier, 401)):
            expect(provider.statuses[status] > 0, f"nothing was answered {status}")
        expect(carrier.tokens_given > 3, f"{carrier.tokens_given} tokens")
        return (
            f"{len(tasks)} orders; card: {answers(card)}; carrier: {answers(carrier)}, {carrier.tokens_given} tokens; "
            f"alerts: {len(shop.alerts())}"
        )


def answers(provider: Any) -> str:
    """The statuses of a provider, counted."""
    return ", ".join(f"{count} × {status or 'none'}" for status, count in sorted(provider.statuses.items()))


def cancel_during_capture(shop: Shop) -> list[str]:
    """Orders that an operator cancels while the provider works on the capture; it has its effect afterwards."""
    ids = shop.post([order(PaymentMethod=Card.CAPTURE_HELD) for _ in range(CANCELLED)])
    for order_id in ids:
        shop.server.seen(order_id, lambda task: task["Steps"][4]["ProcessState"] == "Processing")
    # The capture has begun, and its caller lost the connection.
    until("the captures are asked for again", lambda: shop.card.statuses[409] >= CANCELLED)
    for order_id in ids:
        shop.server.post(f"/orders/{order_id}/cancel", {"By": "shop", "Reason": "the customer called"})
    for order_id in ids:
        shop.server.seen(order_id, lambda task: task["ProcessState"] == "Compensating")
    shop.card.release()
    return ids


def unlike(task: dict[str, Any], state: str, code: str) -> list[str]:
    """The differences between an order and its kind."""
    codes = {step["LastError"]["Code"] for step in task["Steps"] if step.get("LastError")}
    found = [] if task["ProcessState"] == state else [f"{task['ProcessState']} in place of {state}: {task}"]
    return found + ([] if not code or code in codes else [f"{task['OrderID']}: no {code} in {codes}"])


def of_order(card: CardProvider, order_id: str) -> list[Intent]:
    """The payments of an order; there is at most one."""
    return [intent for intent in card.intents.values() if intent.order_id == order_id]


def counted(card: CardProvider, order_id: str) -> tuple[int, int]:
    """The charges and refunds of an order."""
    intents = of_order(card, order_id)
    return sum(intent.charges for intent in intents), sum(intent.refunds for intent in intents)


def uneven(shop: Shop, task: dict[str, Any]) -> list[str]:
    """What in the providers' books does not fit the end of an order."""
    order_id = task["OrderID"]
    intents, (charges, refunds) = of_order(shop.card, order_id), counted(shop.card, order_id)
    shipments = shop.carrier.shipments.get(order_id, [])
    shipped = sum(not shipment.canceled for shipment in shipments)
    expected, money = int(task["ProcessState"] == "Processed"), charges - refunds
    faults = []
    if len(intents) > 1 or charges > 1 or len(shipments) > 1:
        faults.append(f"doubled: {len(intents)} payments, {charges} charges, {len(shipments)} shipments")
    if (money, shipped, shop.stock.reserved.get(order_id, 0)) != (expected,) * 3:
        reserved = shop.stock.reserved.get(order_id, 0)
        faults.append(f"{task['ProcessState']}, with {money} paid, {shipped} shipped, {reserved} reserved")
    if expected == 0 and any(intent.status not in ("canceled", "succeeded") for intent in intents):
        faults.append(f"a payment is still open: {[intent.status for intent in intents]}")
    return faults


def no_trace_of_secrets(shop: Shop, tasks: dict[str, dict[str, Any]]) -> None:
    """No order and no log shows a secret, nor what the workflow does not keep."""
    seen = str(tasks) + shop.server.log()
    for secret in (shop.card.secret, shop.carrier.secret, "secret_hidden", "token_"):
        expect(secret not in seen, f"{secret} is shown")
