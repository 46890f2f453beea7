"""What an attacker with the rights of a caller tries, as `tests/run attacks` does on one machine."""

from __future__ import annotations

from attacks.bodies import NEARLY, ODD_MEMBERS, ODD_NAMES
from attacks.paths import content_of, handmade
from harness.report import expect_equal, until
from world import World


def bodies_names_and_cursors_are_refused(world: World) -> None:
    """Before anything is queued or read."""
    for body in (body.encode() for body in NEARLY if body.isascii() and body.strip()):
        expect_equal(f"{body!r}", world.application.post("/orders", body).status, 400)
    for name, values in ODD_MEMBERS.items():
        for value in values:
            expect_equal(f"{name} {value!r}"[:80], world.application.post("/orders", {name: value}).status, 400)
    path = "/orders/00000000-0000-7000-8000-000000000000/note"
    for name in ODD_NAMES:
        answer = world.operator.post(path, {"By": name, "Reason": "x"})
        expect_equal(f"By {name!r}"[:80], answer.status, 400)
    for _ in range(2):
        world.post("Processed")
    # The index may lag.
    cursor = until("there are two pages", lambda: world.application.get("/orders?limit=1").body.get("NextCursor"))
    for cursor in handmade(content_of(cursor)):
        answer = world.application.get(f"/orders?limit=1&cursor={cursor}")
        expect_equal(f"{cursor[:80]}", answer.status, 400)
