"""What the stand-ins for the three services did: calls and effects of each idempotency key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from harness.deployment import Deployment, client

# Which service carries out which step of the shipped workflow.
STEPS = {"reserve-inventory": "inventory", "charge-payment": "payment", "ship-order": "shipping"}


@dataclass(frozen=True)
class Entry:
    """One step of one order, at the service."""

    forward_calls: int = 0
    forward_effects: int = 0
    undo_calls: int = 0
    undo_effects: int = 0

    @property
    def is_undone(self) -> bool:
        """Nothing is left of it."""
        return self.forward_effects == self.undo_effects


class Ledger:
    """Reads the stand-ins' table."""

    def __init__(self, deployment: Deployment) -> None:
        self._dynamo = client(deployment.emulator, "dynamodb")
        self._table = deployment.table("StandIns")

    def of(self, order_id: str, step: str) -> Entry:
        """One step of an order; nothing happened where there is no item."""
        key = f"{STEPS[step]}/{order_id}/{step}"
        item = self._dynamo.get_item(TableName=self._table, Key={"Key": {"S": key}}, ConsistentRead=True).get("Item")
        return entry(item or {})

    def all(self) -> dict[str, Entry]:
        """Everything, by `{service}/{order}/{step}`."""
        pages = self._dynamo.get_paginator("scan").paginate(TableName=self._table, ConsistentRead=True)
        return {item["Key"]["S"]: entry(item) for page in pages for item in page["Items"]}


def entry(item: dict[str, Any]) -> Entry:
    """An item of the table as counts."""
    count = {name: int(value["N"]) for name, value in item.items() if "N" in value}
    # An effect that came later is booked at the next call; until then it stands in a list of times.
    for side in ("Forward", "Undo"):
        due = [int(at["N"]) for at in item.get(f"{side}DueAt", {"L": []})["L"]]
        count[f"{side}Effects"] = count.get(f"{side}Effects", 0) + sum(at <= time.time() * 1000 for at in due)
    names = ("ForwardCalls", "ForwardEffects", "UndoCalls", "UndoEffects")
    return Entry(*(count.get(name, 0) for name in names))
