"""A folder whose orders have lines, and its services: a warehouse that is out of some things, and a carrier that refuses
some until it is mended."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from harness.serve import Server
from harness.serve import folder as folder_of
from harness.stub import Answer, Call, Stub

EACH = 'for_each = "/Order/Lines"\nitem_id = "/SKU"\nsend = { sku = "/Item/SKU" }\n'
UNDO = '[step.undo]\nsend = { sku = "/Item/SKU" }\n'
SALE = f"""name = "sale"
version = 1

[[step]]
name = "reserve"
agent = "warehouse"
on_rejected = "drop"
drop_max = "50%"
{EACH}{UNDO}
[[step]]
name = "ship"
agent = "carrier"
after = ["reserve"]
on_rejected = "hold"
{EACH}{UNDO}
[[step]]
name = "tell"
agent = "carrier"
after = ["ship"]
send = {{ parcels = "/Outputs/ship" }}
undo = "none"
"""
# As many steps as an order may have.
PICK = f"""name = "pick"
version = 1

[[step]]
name = "pick"
agent = "carrier"
on_rejected = "hold"
{EACH}{UNDO}"""
REFUSED_S_MAX = 30
THINGS = ("mug", "lamp", "rug", "chair", "table", "clock", "vase", "bowl", "tray")


class Shelves(Stub):
    """Plays the warehouse and the carrier. It has no lamps, and refuses what is in `refused`."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        # A refusal of the carrier waits for this, so that the warehouse has answered before the order waits for a person.
        self.may_refuse = threading.Event()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """At once."""
        sku = json.loads(call.body).get("sku", "")
        if call.path == "/warehouse/do" and sku.startswith("lamp"):
            return 422, {"code": "out-of-stock", "message": f"no {sku} is left"}
        if call.path == "/carrier/do" and sku in self.refused:
            self.may_refuse.wait(REFUSED_S_MAX)
            return 422, {"code": "too-heavy", "message": f"{sku} weighs more than 30 kg"}
        return 200, {"Place": f"{len(sku)}-{sku[-2:]}"}


def folder(into: Path, shelves: Shelves) -> Path:
    """The folder."""
    settings = 'default = "sale"\n'
    for name in ("warehouse", "carrier"):
        settings += f'[agents.{name}]\nurl = "{shelves.url}/{name}"\n'
    return folder_of(into, settings, {"sale-1": SALE, "pick-1": PICK})


def lines(count: int) -> list[dict[str, Any]]:
    """So many lines, each with a name of its own."""
    names = [f"{THINGS[place % len(THINGS)]}-{place + 1:03}" for place in range(count)]
    return [{"SKU": name, "Price": 12.5, "Quantity": 1} for name in names]


def held(server: Server, shelves: Shelves, count: int, workflow: str = "sale") -> dict[str, Any]:
    """An order of so many lines that waits for an operator because of those that the carrier refuses. No call is under
    way."""

    def is_reserved(task: dict[str, Any]) -> bool:
        steps = [step for step in task["Steps"] if step["Name"].startswith("reserve/")]
        return all(step["ProcessState"] in ("Processed", "Skipped") for step in steps)

    def waits(task: dict[str, Any]) -> bool:
        states = Counter(step["ProcessState"] for step in task["Steps"])
        is_quiet = task["Watch"].startswith("error") and not states["Processing"]
        return task["ProcessState"] == "Error" and is_quiet and states["Error"] == len(shelves.refused)

    shelves.may_refuse.clear()
    order = server.order(wait=False, Workflow=workflow, Lines=lines(count))
    server.seen(order["OrderID"], is_reserved)
    shelves.may_refuse.set()
    return server.seen(order["OrderID"], waits)
