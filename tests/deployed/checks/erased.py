"""Orders without personal data (rule 46)."""

from __future__ import annotations

import uuid

from harness.api import caller
from harness.report import expect, expect_equal, until
from world import World

TABLES = ("Orders", "Tasks", "Index", "Memos", "DeadLetters", "Services", "Jobs")


def an_administrator_erases_an_order(world: World) -> None:
    """It is erased by an administrator alone. Then no table has the person, and a repeat changes nothing."""
    person = f"zoe-{uuid.uuid4()}"
    order_id = world.post("Processed", None, CorrelationID=person, Name=person)
    world.reach(order_id, "Processed")
    found = f"/orders?correlation={person}"
    until("it is found", lambda: len(world.operator.get(found).body["Orders"]) == 1, 15)
    wish = {"By": "dpo", "Reason": "letter 7"}
    for who in (world.application, world.operator, world.stranger):
        expect_equal("erase by another", who.post(f"/orders/{order_id}/erase", wish).status, 403)
    administrator = caller(world.deployment, "administrator", "AdministratorPolicyArn")
    expect_equal("cancel by that policy alone", administrator.post(f"/orders/{order_id}/cancel", wish).status, 403)
    expect_equal("erase", administrator.post(f"/orders/{order_id}/erase", wish).status, 202)
    task = until("it is erased", lambda: shown if "ErasedAt" in (shown := world.task(order_id) or {}) else None, 45)
    expect_equal("left", holders(world, person), [])
    line = task["History"][-1]
    expect_equal("last line", (line["Who"], line["Kind"], line["Why"]), ("dpo", "Erased", "letter 7"))
    expect("administrator" in line["Caller"], f"the caller is beside the name: {line}")
    expect_equal("document", world.application.get(f"/orders/{order_id}/document").body["Document"], {})
    expect_equal("found", world.operator.get(found).body["Orders"], [])
    expect_equal("erase again", administrator.post(f"/orders/{order_id}/erase", wish).status, 202)
    expect_equal("version", (world.task(order_id) or {})["Version"], task["Version"])


def holders(world: World, person: str) -> list[str]:
    """The tables with a text."""
    return [table for table in TABLES if person in str(world.items(table))]
