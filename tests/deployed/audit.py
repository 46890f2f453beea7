"""The books at the end: every order ended as it should, no effect was made twice, nothing is left on any queue."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.report import CheckFailed, expect, expect_equal, until
from ledger import STEPS, Entry
from world import World

QUEUES = ("submission", "scheduler", "agents")
LANES = ("normal", "high", "dead")
# A killed agent's request comes back after 40 s, an undo may wait for half a minute.
EMPTY_S_MAX = 90
# The batching window, twice, on a busy machine.
COUNTED_S_MAX = 90


def queues_are_empty(world: World, within_s: float = EMPTY_S_MAX) -> None:
    """Nothing is ready, in flight or delayed, on any lane, nor among the dead letters."""

    def left() -> dict[str, dict[str, int]]:
        looked_at = [(queue, lane) for queue in QUEUES for lane in LANES]
        depths = {f"{queue} {lane}": world.depth(queue, lane) for queue, lane in looked_at}
        return {name: depth for name, depth in depths.items() if any(depth.values())}

    last: dict[str, dict[str, int]] = {}

    def empty() -> bool:
        last.clear()
        last.update(left())
        return not last

    try:
        until("all queues are empty", empty, within_s, pause_s=1.0)
    except CheckFailed as late:
        raise CheckFailed(f"{late}: {last}") from late


def every_order_ended(world: World) -> str:
    """The store holds exactly the orders that were posted, each in the state that it was to end in."""
    stored = {item["OrderID"]["S"]: item["ProcessState"]["S"] for item in world.items("Tasks")}
    expect_equal("orders stored that nobody posted", sorted(set(stored) - set(world.ends)), [])
    expect_equal("orders lost", sorted(set(world.ends) - set(stored)), [])
    wrong = {order_id: (end, stored[order_id]) for order_id, end in world.ends.items() if stored[order_id] != end}
    expect(not wrong, f"ended otherwise than expected: {wrong}")
    return f"{len(stored)} orders: {dict(Counter(stored.values()))}"


def numbers_are_those_of_the_tables(world: World) -> str:
    """`/numbers` and the overview count what the table of tasks has: orders by state, and each claim of a step."""
    tasks = world.items("Tasks")
    stored = Counter(item["ProcessState"]["S"] for item in tasks)
    claims = sum(int(step["M"]["Attempt"]["N"]) for item in tasks for step in item["Steps"]["L"])
    expected = (stored, stored, len(tasks), claims)

    def counted() -> tuple[object, ...]:
        numbers, overview = (world.operator.get(path).body for path in ("/numbers", "/overview"))
        begun = sum(service["Attempts"]["Begun"] for service in numbers["Services"])
        return (states(numbers), states(overview), numbers["Orders"]["Accepted"], begun)

    try:
        until("everything is counted", lambda: counted() == expected, COUNTED_S_MAX, pause_s=1.0)
    except CheckFailed as late:
        raise CheckFailed(f"{late}: {counted()}, not {expected}") from late
    expect("CountedSince" in world.operator.get("/overview").body, "the overview says since when it counts")
    return f"{len(tasks)} orders, {claims} claims"


def states(answer: dict[str, Any]) -> Counter[str]:
    """The counts of the states, where there are any. None may be a bound."""
    expect(not any(count["AtLeast"] for count in answer["Counts"]), f"exact counts: {answer['Counts']}")
    return Counter({count["State"]: count["Count"] for count in answer["Counts"] if count["Count"]})


def effects_were_made_once(world: World) -> str:
    """Each service did each step of each order at most once: all of them where the order is processed, none that is not
    undone where it is compensated."""
    ledger = world.ledger.all()
    twice = {key: entry for key, entry in ledger.items() if entry.forward_effects > 1 or entry.undo_effects > 1}
    expect(not twice, f"made twice: {twice}")
    for order_id, end in world.ends.items():
        if order_id in world.own:
            continue
        entries = {name: ledger.get(f"{service}/{order_id}/{name}", Entry()) for name, service in STEPS.items()}
        if end == "Processed":
            expect(all(is_done(entry) for entry in entries.values()), f"{order_id} is {end}, but {entries}")
        if end == "Compensated":
            expect(all(entry.is_undone for entry in entries.values()), f"{order_id} is {end}, but {entries}")
    return f"{sum(entry.forward_effects + entry.undo_effects for entry in ledger.values())} effects"


def is_done(entry: Entry) -> bool:
    """Made once and not taken back."""
    return (entry.forward_effects, entry.undo_effects) == (1, 0)


def watch_is_empty(world: World) -> None:
    """No order is left for a supervisor to look after; what waits for an operator is what was to."""
    watched = {item["OrderID"]["S"]: item["Watch"]["S"] for item in world.items("Tasks", IndexName="watch")}
    due = {order_id: watch for order_id, watch in watched.items() if not watch.startswith("error#")}
    expect_equal("orders due", due, {})
    expect_equal("orders in Error", set(watched), {order_id for order_id, end in world.ends.items() if end == "Error"})
