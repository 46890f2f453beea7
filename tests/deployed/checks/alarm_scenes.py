"""The alarms on our own metrics: each cause is brought about, and the logs of the functions have the metrics."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import cloudwatch
from cloudwatch import Data, Series
from harness.deployment import BUILD, STACK, client
from harness.emulator import ACCOUNT, REGION
from harness.report import expect, expect_equal, until
from world import World

from checks import alarms, logs
from checks.alarms import Scene
from checks.repeats import settle
from checks.supervision import switch_schedule

NAMESPACE = f"Stepwarden/{STACK}"
# The folders of the programs of the functions that handle messages.
PROGRAMS = {
    "submission": "Submission",
    "scheduler": "Scheduler",
    "agents": "AgentsFunction",
    "supervisor": "Supervisor",
}
MINUTE_MS = 60_000
# Lines may have the time at which their invocation began.
INVOCATION_MS = 2 * MINUTE_MS
# How long payment refuses the calls of an order: as long as an attempt lasts. The agent then gives the attempt back.
DOWN_MS = 30_000
# Orders whose calls open the breaker at once.
ORDERS_TO_OPEN = 5
RECOVERS_S_MAX = 240.0
WRITTEN_S_MAX = 120.0
# When a dead letter that failed comes again.
LETTER_S = 3

# It stops twice: before its cause, and while its cause lasts. Afterwards it takes its cause away.
Play = Callable[[World], Generator[None, None, None]]


def they_ring_for_what_the_functions_write(world: World) -> str:
    """Scene by scene. Each counts as lasting for as many periods as an alarm looks back. The supervisors' schedule rests
    from here on."""
    own = alarms.some(world, of_aws=False)
    switch_schedule(world, "DISABLED")
    quiet, scenes = usual(world), []
    for play, rings in SCENES.items():
        before, during = played(world, play, quiet)
        after = usual(world)
        scenes.append(Scene(play.__name__, rings, before, during, after))
        quiet = after
    scenes += [panicked(function, quiet) for function in PROGRAMS]
    alarms.judged(own, scenes)
    return f"{len(own)} alarms, {len(scenes)} scenes"


def usual(world: World) -> Data:
    """What is written while an order is processed, its channel is told and a supervisor runs."""
    began_ms = now_ms()
    processed(world, ReplyChannel="shop")
    supervise(world)
    return data(world, began_ms, *logs.FUNCTIONS)


def played(world: World, play: Play, quiet: Data) -> tuple[Data, Data]:
    """What is written before a cause, beside what is usual, and while it lasts. Then the cause is taken away."""
    with contextlib.closing(play(world)) as acts:
        began_ms = now_ms()
        next(acts)
        before = cloudwatch.merged(quiet, data(world, began_ms, *logs.FUNCTIONS))
        began_ms = now_ms()
        next(acts)
        during = data(world, began_ms, *logs.FUNCTIONS)
        expect(next(acts, "over") == "over", f"{play.__name__} has an end")
    return before, during


# ---- the scenes


def a_service_is_down(world: World) -> Generator[None, None, None]:
    """Payment answers 503 to some orders: its breaker opens, and attempts are put off. The outage is made 14 minutes
    old, and then 16."""
    orders = [world.post("Processed", {"payment": {"DownMs": DOWN_MS}}) for _ in range(ORDERS_TO_OPEN)]
    until("payment is down for 14 minutes", functools.partial(is_down_for, world, 14))
    yield
    began_ms = now_ms()
    until("payment is down for 16 minutes", functools.partial(is_down_for, world, 16))
    until_written(world, began_ms, "scheduler", "attempts_put_off")
    yield
    for order_id in orders:
        world.reach(order_id, "Processed", RECOVERS_S_MAX)


def an_order_is_in_error(world: World) -> Generator[None, None, None]:
    """An undo was refused five minutes less than four hours ago, then five more. An operator takes the order on."""
    refused = {"payment": {"Decline": "no"}, "inventory": {"Undo": {"Decline": "too-late"}}}
    order_id = world.post("Error", refused)
    world.reach(order_id, "Error")
    for minutes in (235, 245):
        fail_before(world, order_id, minutes)
        supervise(world)
        yield
    note = {"By": "ann", "Reason": "I call the customer", "Take": True}
    expect_equal("a note", world.operator.post(f"/orders/{order_id}/note", note).status, 202)
    until("it is taken on", lambda: (world.task(order_id) or {}).get("Taken"))


def a_supervisor_is_late(world: World) -> Generator[None, None, None]:
    """An order in flight is due for less than five minutes, and then for more."""
    with order_in_flight(world) as order_id:
        for minutes in (4.5, 5.5):
            due_before(world, order_id, minutes)
            supervise(world)
            yield


def a_supervisor_leaves_something_out(world: World) -> Generator[None, None, None]:
    """It may not read the task of an order that is due, and then not the index."""
    with order_in_flight(world) as order_id:
        yield
        began_ms = now_ms()
        tasks = table(world, "Tasks")
        with denied(world, "supervisor", tasks, "dynamodb:GetItem"):
            due_before(world, order_id, 0)
            supervise(world)
        expect(sum(values(world, began_ms, "supervisor", "supervisor_failed")) > 0, "it could not handle the order")
        with denied(world, "supervisor", f"{tasks}/index/watch", "dynamodb:Query", "dynamodb:Scan"):
            supervise(world)
        yield


def no_supervisor_runs(world: World) -> Generator[None, None, None]:
    """Orders are processed all the same."""
    yield
    processed(world)
    yield


def messages_fail(world: World) -> Generator[None, None, None]:
    """One function after the other may not make a call that it needs for a message."""
    yield
    orders = []
    for function, resource, action in [
        ("submission", table(world, "Orders"), "dynamodb:PutItem"),
        ("scheduler", table(world, "Tasks"), "dynamodb:UpdateItem"),
        ("agents", "*", "sqs:SendMessage"),
    ]:
        began_ms = now_ms()
        with denied(world, function, resource, action):
            orders.append(world.post("Processed"))
            until_written(world, began_ms, function, "records_failed")
    with world.visibility("submission", LETTER_S, "dead"):
        began_ms = now_ms()
        with denied(world, "supervisor", table(world, "DeadLetters"), "dynamodb:PutItem"):
            world.send("submission", "dead", "this is no order")
            until_written(world, began_ms, "supervisor", "records_failed")
    supervise(world)
    yield
    for order_id in orders:
        world.reach(order_id, "Processed")
    settle(world, "submission", "dead")


def messages_to_a_channel_fail(world: World) -> Generator[None, None, None]:
    """One function after the other may not send to the reply channel."""
    yield
    attributes = world.sqs.get_queue_attributes(QueueUrl=world.deployment.channel_url, AttributeNames=["QueueArn"])
    channel = attributes["Attributes"]["QueueArn"]
    began_ms = now_ms()
    with denied(world, "submission", channel, "sqs:SendMessage"):
        first = world.post("Processed", None, ReplyChannel="shop")
        until_written(world, began_ms, "submission", "notices_unsent")
    with contextlib.ExitStack() as stack:
        for function in ("scheduler", "supervisor"):
            stack.enter_context(denied(world, function, channel, "sqs:SendMessage"))
        second = world.post("Processed", None, ReplyChannel="shop")
        world.reach(second, "Processed")
        until_written(world, began_ms, "scheduler", "notices_unsent")
        due_before(world, second, 0)
        supervise(world)
        until_written(world, began_ms, "supervisor", "notices_unsent")
    yield
    for order_id in (first, second):
        until(f"the channel is told of {order_id}", functools.partial(is_told, world, order_id))


def panicked(function: str, quiet: Data) -> Scene:
    """No input makes a handler panic. So its program must have the name of the metric, and the value is given."""
    name = "records_panicked"
    program = (BUILD / PROGRAMS[function] / "bootstrap").read_bytes()
    expect(f"monotonic_counter.{name}".encode() in program, f"the program of {function} counts {name}")
    during = {**quiet, series(function, name): [("Count", 1.0)]}
    return Scene(f"{function} panics", {"records-panicked"}, quiet, during, quiet)


SCENES: dict[Play, set[str]] = {
    no_supervisor_runs: {"supervisor-missing"},
    an_order_is_in_error: {"orders-untaken"},
    a_supervisor_is_late: {"supervisor-late"},
    a_supervisor_leaves_something_out: {"supervisor-failing"},
    messages_fail: {"records-failed"},
    messages_to_a_channel_fail: {"notices-unsent"},
    a_service_is_down: {"services-down", "attempts-put-off"},
}


# ---- what the functions wrote


def now_ms() -> int:
    """The time of the functions' lines."""
    return int(time.time() * 1000)


def series(function: str, name: str) -> Series:
    """A metric of a function."""
    return Series(NAMESPACE, name, frozenset({("Function", function)}))


def data(world: World, since_ms: int, *functions: str) -> Data:
    """What functions wrote since a time."""
    lines = [line for name in functions for line in logs.own_lines(world, name, since_ms - INVOCATION_MS)]
    metrics = [line for line in map(logs.decoded, lines) if isinstance(line, dict) and "_aws" in line]
    return cloudwatch.emitted(line for line in metrics if line["_aws"]["Timestamp"] >= since_ms)


def values(world: World, since_ms: int, function: str, name: str) -> list[float]:
    """The values of a metric since a time."""
    return [value for _, value in data(world, since_ms, function).get(series(function, name), [])]


def until_written(world: World, since_ms: int, function: str, name: str) -> None:
    """Waits until a function counts something."""
    until(f"{function} writes {name}", lambda: sum(values(world, since_ms, function, name)), WRITTEN_S_MAX)


# ---- what is done


def processed(world: World, **members: str) -> None:
    """An order goes through, and is counted."""
    began_ms = now_ms()
    world.reach(world.post("Processed", None, **members), "Processed")
    until_written(world, began_ms, "scheduler", "orders_processed")


def supervise(world: World) -> None:
    """Has a supervisor run once, also one that fails in the end."""
    began_ms = now_ms()
    world.lambdas.invoke(FunctionName=world.deployment.live("supervisor"), Payload=b"{}")
    until_written(world, began_ms, "supervisor", "supervisor_runs")


def is_told(world: World, order_id: str) -> bool:
    """Whether its channel has all messages of an order. If not, a supervisor sends those that are owed."""
    if {event["type"] for event in world.shop.of_order(order_id)} >= {"OrderReceived", "OrderProcessed"}:
        return True
    # Of an order that owes nothing, the last message is on its way.
    with contextlib.suppress(world.dynamo.exceptions.ConditionalCheckFailedException):
        due_before(world, order_id, 0)
    supervise(world)
    return False


@contextmanager
def denied(world: World, function: str, resource: str, *actions: str) -> Iterator[None]:
    """Within, the role of a function may not do this."""
    iam = client(world.deployment.emulator, "iam")
    configuration = world.lambdas.get_function_configuration(FunctionName=world.deployment.function(function))
    names = {"RoleName": configuration["Role"].rpartition("/")[2], "PolicyName": "denied"}
    statement = {"Effect": "Deny", "Action": list(actions), "Resource": resource}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    iam.put_role_policy(**names, PolicyDocument=json.dumps(policy))
    try:
        yield
    finally:
        iam.delete_role_policy(**names)


def table(world: World, name: str) -> str:
    """The ARN of a table."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{world.deployment.table(name)}"


@contextmanager
def order_in_flight(world: World) -> Iterator[str]:
    """Within, an order waits for the agents. Afterwards it goes on."""
    with world.closed_lane("agents", "agents"):
        order_id = world.post("Processed", None, Priority="high")
        world.reach_step(order_id, "reserve-inventory", ProcessState="Processing")
        yield order_id
    world.reach(order_id, "Processed", RECOVERS_S_MAX)


# ---- time that is not waited for


def due_before(world: World, order_id: str, minutes: float) -> None:
    """The supervisor's next look at an order was due so long ago."""
    condition = {"ConditionExpression": "attribute_exists(Watch)"}
    world.change_task(order_id, "SET WatchAt = :at", condition, at=now_ms() - int(minutes * MINUTE_MS))


def fail_before(world: World, order_id: str, minutes: int) -> None:
    """An order in `Error` failed so long ago. The other times of its history count from the first."""
    task = world.item("Tasks", "OrderID", order_id)
    failed_ms = now_ms() - minutes * MINUTE_MS
    first_ms, _, what = task["History"]["L"][0]["S"].partition(" ")
    first = f"{int(first_ms) + failed_ms - int(task['FailedAt']['N'])} {what}"
    world.change_task(order_id, "SET History[0] = :first, FailedAt = :failed", first=first, failed=failed_ms)


def is_down_for(world: World, minutes: int) -> bool:
    """Whether a supervisor writes that payment is down for so long, once its outage is made so old. An agent that
    writes the health of payment at the same time wins."""
    item = world.item("Services", "Service", "payment")
    health = json.loads(item["Record"]["S"]) if item else {}
    if not health.get("Outage"):
        return False
    since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=minutes)
    health["Outage"]["Since"] = since.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    try:
        world.dynamo.put_item(
            TableName=world.deployment.table("Services"),
            Item={**item, "Record": {"S": json.dumps(health)}},
            ConditionExpression="Version = :seen",
            ExpressionAttributeValues={":seen": item["Version"]},
        )
    except world.dynamo.exceptions.ConditionalCheckFailedException:
        return False
    began_ms = now_ms()
    supervise(world)
    return max(values(world, began_ms, "supervisor", "services_down_ms")) >= minutes * MINUTE_MS
