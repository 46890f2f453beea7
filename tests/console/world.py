"""Orders that really happen, each in its own way."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.serve import Server
from inventory import Inventory

# More than one page of each list.
LETTERS = 30
WAKE = json.dumps({"Wake": {"OrderID": "01900000-0000-7000-8000-000000000000"}})
BURIED = [WAKE if number % 2 else "<b>no message</b>" for number in range(LETTERS)]
PROCESSED = 60
# The correlation ids of the orders that are stuck begin as a formula does.
FORMULA = "=stuck-"

DECLINED = {"payment": {"Decline": "card-declined"}}


def happen(server: Server, inventory: Inventory) -> None:
    """Posts the orders that most views show."""
    with ThreadPoolExecutor(8) as posters:
        mugs = [
            posters.submit(
                server.order,
                wait=number % 10 == 0,
                Item="mug",
                CorrelationID=f"shop-{number}",
                Customer={"Email": f"c{number}@example.org"},
            )
            for number in range(PROCESSED)
        ]
        for mug in mugs:
            mug.result()
    declined(server)
    for number in range(3):
        stuck(server, inventory, f"stuck-{number}", CorrelationID=f"{FORMULA}{number}")


def declined(server: Server, **document: object) -> dict[str, Any]:
    """An order whose card is declined, so that it is undone."""
    return server.order(Item="tea", StandIn=DECLINED, **document)


def stuck(server: Server, inventory: Inventory, tag: str, **document: object) -> dict[str, Any]:
    """An order that waits in Error: its card is declined and the release of its stock refused, until the tag is taken
    out of `refusing`."""
    inventory.refusing.add(tag)
    task = declined(server, Tag=tag, **document)
    assert (task["ProcessState"], task["Reason"]["Code"]) == ("Error", "compensation-failed"), task
    return alerted(server, task["OrderID"])


def alerted(server: Server, order_id: str) -> dict[str, Any]:
    """The order in Error once its alert is known to be sent: that makes one more version, and it is the operator's."""
    return server.seen(order_id, lambda task: task["ProcessState"] == "Error" and task["Watch"].startswith("error"))


def held(server: Server, inventory: Inventory, tag: str, **document: object) -> dict[str, Any]:
    """An order whose first attempt is under way, until the tag is taken out of `holding`."""
    inventory.holding.add(tag)
    order = server.order(wait=False, Tag=tag, **document)
    return server.seen(order["OrderID"], lambda task: task["Steps"][0]["ProcessState"] == "Processing")
