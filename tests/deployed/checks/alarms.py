"""The deployed alarms: each rings for its causes, is quiet before and afterwards, and tells the topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cloudwatch
from cloudwatch import Alarm, Change, Data, Series, Value
from harness.deployment import STACK, client
from harness.inbox import subscribe
from harness.report import CheckFailed, expect, expect_equal, until
from world import World

# The alarms, and the minutes after which they ring. While nothing is written, two periods more are looked at.
RINGS_AFTER_MIN: dict[str, float] = {
    "agents-age": 3,
    "agents-errors": 5,
    "alert-rule-failing": 5,
    "alert-topic-failing": 5,
    "alerts-undelivered": 5,
    "api-faults": 5,
    "attempts-put-off": 30,
    "dead-letters": 15,
    "notices-unsent": 120,
    "numbers-late": 10,
    "orders-untaken": 5,
    "records-failed": 15,
    "records-panicked": 5,
    "scheduler-age": 3,
    "scheduler-errors": 5,
    "services-down": 5,
    "store-failing": 10,
    "submission-age": 3,
    "submission-errors": 5,
    "supervisor-errors": 5,
    "supervisor-failing": 15,
    "supervisor-late": 10,
    "supervisor-missing": 5,
    "throttles": 10,
    "unsettled-letters": 15,
}
# A broken subscriber fails on the message of the end as well, and the alarm would go on and off for ever.
WITHOUT_END = {"alert-topic-failing"}

# Our metrics, by their alarm: the functions that write it, its highest value that is well, and one that is not. Rust
# tests hold that the functions write them for these causes (tests/tests/adapters/alarms.rs).
OURS: list[tuple[str, str, tuple[str, ...], float, float]] = [
    ("supervisor-late", "supervisor_lag_ms", ("supervisor",), 300_000, 300_001),
    ("services-down", "services_down_ms", ("supervisor",), 900_000, 900_001),
    ("orders-untaken", "orders_untaken_ms", ("supervisor",), 14_400_000, 14_400_001),
    ("attempts-put-off", "attempts_put_off", ("scheduler",), 0, 1),
    ("supervisor-failing", "supervisor_failed", ("supervisor",), 0, 1),
    ("supervisor-failing", "supervisor_shards_unreached", ("supervisor",), 0, 1),
    ("notices-unsent", "notices_unsent", ("submission", "scheduler", "supervisor"), 0, 1),
    ("records-failed", "records_failed", ("submission", "scheduler", "agents", "supervisor"), 0, 1),
    ("records-panicked", "records_panicked", ("submission", "scheduler", "agents", "supervisor"), 0, 1),
]
# What AWS documents: the unit of each metric, and the dimensions that it is written for.
WRITTEN_BY_AWS: dict[tuple[str, str], tuple[str, list[set[str]]]] = {
    ("AWS/ApiGateway", "5xx"): ("Count", [{"ApiId"}, {"ApiId", "Stage"}]),
    ("AWS/DynamoDB", "ReadThrottleEvents"): ("Count", [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}]),
    ("AWS/DynamoDB", "SystemErrors"): ("Count", [{"TableName", "Operation"}]),
    ("AWS/DynamoDB", "WriteThrottleEvents"): ("Count", [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}]),
    ("AWS/Events", "FailedInvocations"): ("Count", [{"EventBusName", "RuleName"}]),
    ("AWS/Lambda", "Errors"): ("Count", [{"FunctionName"}, {"FunctionName", "Resource"}]),
    ("AWS/Lambda", "IteratorAge"): ("Milliseconds", [{"FunctionName"}, {"FunctionName", "Resource"}]),
    ("AWS/Lambda", "Throttles"): ("Count", [{"FunctionName"}, {"FunctionName", "Resource"}]),
    ("AWS/SNS", "NumberOfNotificationsFailed"): ("Count", [{"TopicName"}]),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): ("Seconds", [{"QueueName"}]),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): ("Count", [{"QueueName"}]),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): ("Count", [{"QueueName"}]),
}
# They write nothing where nothing happened.
SPARSE = {"AWS/DynamoDB", "AWS/Events"}
OPERATIONS = {"PutItem", "DeleteItem", "UpdateItem", "GetItem", "BatchGetItem", "Scan", "Query", "BatchWriteItem"}
# For how long the oldest message of a queue may wait, in seconds.
WAITS_S = {"submission": 300, "scheduler": 300, "agents": 900}

# States, each with the phase that brings it about.
QUIET, RINGS = [("OK", 0)], [("OK", 0), ("ALARM", 1), ("OK", 2)]


@dataclass(frozen=True)
class Scene:
    """A cause of some alarms: what is written before it, while it lasts, and afterwards."""

    title: str
    rings: set[str]
    before: Data
    during: Data
    after: Data


# ---- the evaluator


def the_rules_are_those_of_cloudwatch(_: World) -> None:
    """The tables of AWS's documentation about missing data: `0` is a good datapoint, and `X` a bad one. The states are
    those for `missing`, `ignore`, `breaching` and `notBreaching`."""
    kept, unknown = "kept", "INSUFFICIENT_DATA"
    for needed, points, states in [
        (3, "0-X-X", ["OK", "OK", "OK", "OK"]),
        (3, "----0", ["OK", "OK", "OK", "OK"]),
        (3, "-----", [unknown, kept, "ALARM", "OK"]),
        (3, "0XX-X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        (3, "--X--", ["ALARM", kept, "ALARM", "OK"]),
        (2, "0-X-X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        (2, "00X0X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        (2, "0-X--", ["OK", "OK", "ALARM", "OK"]),
        (2, "----0", ["OK", "OK", "ALARM", "OK"]),
        (2, "---X-", ["ALARM", kept, "ALARM", "OK"]),
    ]:
        values: list[Value] = [{"0": 0.0, "X": 2.0, "-": None}[point] for point in points]
        found = [
            cloudwatch.state(made(needed, TreatMissingData=missing), values, kept)
            for missing in ("missing", "ignore", "breaching", "notBreaching")
        ]
        expect_equal(f"{needed} of 3, {points}", found, states)
    a, b, c = (Series("N", name, frozenset()) for name in "abc")
    stat = {name: {"Metric": {"Namespace": "N", "MetricName": name}, "Stat": "Sum", "Period": 60} for name in "abc"}
    data: Data = {a: [("Count", 2.0), ("Count", 3.0)], b: [("Seconds", 1.0)]}
    for expression, value in [
        ("SUM(FILL(METRICS(), 7))", 13.0),
        ("MAX([a, b, c])", 5.0),
        ("MIN(METRICS())", 1.0),
        ("FILL(c, 0)", 0.0),
        ("AVG([a, b])", 3.0),
        ("c", None),
    ]:
        several = [{"Id": name, "MetricStat": one, "ReturnData": False} for name, one in stat.items()]
        alarm = {"Metrics": [{"Id": "all", "Expression": expression}, *several]}
        expect_equal(expression, cloudwatch.datapoint(alarm, data), value)
    of_unit = [cloudwatch.aggregate({**stat[name], "Unit": "Seconds"}, data) for name in "ab"]
    expect_equal("those in seconds", of_unit, [None, 1.0])
    expect_equal("the highest", cloudwatch.aggregate({**stat["a"], "Stat": "Maximum"}, data), 3.0)
    changes = cloudwatch.history(made(3, Period=300), [{a: [("Count", 0.0)]}, {a: [("Count", 2.0)]}, {}])
    expect_equal("a story", changes, [Change("OK", 0, 25), Change("ALARM", 1, 15), Change("OK", 2, 15)])


def made(needed: int, **members: Any) -> Alarm:
    """An alarm above 1, for so many bad datapoints of three."""
    of = {"EvaluationPeriods": 3, "DatapointsToAlarm": needed, "Threshold": 1.0, "Metrics": [], "Namespace": "N"}
    one = {"MetricName": "a", "Dimensions": [], "Statistic": "Sum", "Period": 60, "TreatMissingData": "notBreaching"}
    return {**of, **one, "ComparisonOperator": "GreaterThanThreshold", **members}


# ---- the deployed alarms


def deployed(world: World) -> dict[str, Alarm]:
    """The alarms of the stack, by their names without that of the stack."""
    pages = client(world.deployment.emulator, "cloudwatch").get_paginator("describe_alarms").paginate()
    alarms = [alarm for page in pages for alarm in page["MetricAlarms"]]
    found = {alarm["AlarmName"].removeprefix(f"{STACK}-"): alarm for alarm in alarms}
    expect_equal("alarms", sorted(found), sorted(RINGS_AFTER_MIN))
    return found


def some(world: World, *, of_aws: bool) -> dict[str, Alarm]:
    """Those that look at AWS's metrics, or those that look at our own."""

    def is_of_aws(alarm: Alarm) -> bool:
        return any(stat["Metric"]["Namespace"].startswith("AWS/") for stat in cloudwatch.metrics(alarm).values())

    return {name: alarm for name, alarm in deployed(world).items() if is_of_aws(alarm) == of_aws}


def the_topic_is_told(world: World) -> None:
    """Once of the beginning, and once of the end: the emulator tells its subscribers when a state is set."""
    topic = world.deployment.outputs["AlertTopicArn"]
    url = subscribe(world.deployment, "operator-alarms", "AlarmName")
    watch = client(world.deployment.emulator, "cloudwatch")
    wanted: list[tuple[str, str]] = []
    told: list[tuple[str, str]] = []
    for name, alarm in deployed(world).items():
        ends = [] if name in WITHOUT_END else [topic]
        actions = (alarm["ActionsEnabled"], alarm["AlarmActions"], alarm["OKActions"])
        expect_equal(f"actions of {name}", actions, (True, [topic], ends))
        expect("To do:" in alarm["AlarmDescription"], f"{name} says what to do")
        for state in ("ALARM", "OK"):
            watch.set_alarm_state(AlarmName=alarm["AlarmName"], StateValue=state, StateReason="a test")
        wanted += [(name, "ALARM"), *((name, "OK") for _ in ends)]

    def all_came() -> bool:
        received = world.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in received:
            said = json.loads(json.loads(message["Body"])["Message"])
            told.append((said["AlarmName"].removeprefix(f"{STACK}-"), said["NewStateValue"]))
            world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return not received and len(told) >= len(wanted)

    until(f"{len(wanted)} messages about alarms", all_came)
    expect_equal("messages about alarms", sorted(told), sorted(wanted))


def judged(alarms: dict[str, Alarm], scenes: list[Scene]) -> None:
    """Fails unless exactly the alarms of each scene ring, once and in time, and each metric of an alarm makes it ring
    by itself in one scene."""
    wrong: dict[object, str] = {}
    for scene in scenes:
        for name, alarm in alarms.items():
            changes = cloudwatch.history(alarm, [scene.before, scene.during, scene.after])
            is_wanted = name in scene.rings
            found = [(change.state, change.phase) for change in changes]
            if found != (RINGS if is_wanted else QUIET):
                what = "rings once" if is_wanted else "is quiet"
                wrong.setdefault(name, f"{scene.title}: {name} {what}; found {changes}")
            elif is_wanted and changes[1].minutes != RINGS_AFTER_MIN[name]:
                minutes = f"{RINGS_AFTER_MIN[name]:g} min; found {changes[1].minutes:g} min"
                wrong.setdefault(name, f"{scene.title}: {name} rings after {minutes}")
    for name, alarm in alarms.items():
        for series in map(cloudwatch.series_of, cloudwatch.metrics(alarm).values()):
            if not any(name in scene.rings and rings_by(alarm, scene, series) for scene in scenes):
                is_known = any(series in data for scene in scenes for data in (scene.before, scene.during))
                what = "never rings" if is_known else "nobody writes"
                wrong[name, series] = f"{name} looks at {series}, which {what}"
    if wrong:
        raise CheckFailed("\n".join(wrong.values()))


def rings_by(alarm: Alarm, scene: Scene, series: Series) -> bool:
    """Whether an alarm rings in a scene if its other metrics stay as they were."""
    others = {cloudwatch.series_of(stat) for stat in cloudwatch.metrics(alarm).values()} - {series}
    during = {one: values for one, values in scene.during.items() if one not in others}
    during |= {one: scene.before[one] for one in others if one in scene.before}
    changes = cloudwatch.history(alarm, [scene.before, during, scene.after])
    return [(change.state, change.phase) for change in changes] == RINGS


# ---- our metrics


def they_ring_for_our_metrics(world: World) -> str:
    """One is too high at a time, and the others have the highest value that is well. Then no supervisor runs."""

    def written(function: str, name: str, value: float) -> Data:
        return {Series(f"Stepwarden/{STACK}", name, frozenset({("Function", function)})): [("None", value)]}

    causes = [(alarm, name, function, low, high) for alarm, name, of, low, high in OURS for function in of]
    quiet = runs = written("supervisor", "supervisor_runs", 1)
    for _, name, function, low, _ in causes:
        quiet = {**quiet, **written(function, name, low)}
    scenes = [Scene("no supervisor runs", {"supervisor-missing"}, quiet, {**quiet, next(iter(runs)): []}, quiet)]
    for alarm, name, function, _, high in causes:
        during = {**quiet, **written(function, name, high)}
        scenes.append(Scene(f"{name} of {function} is {high:g}", {alarm}, quiet, during, quiet))
    alarms = some(world, of_aws=False)
    judged(alarms, scenes)
    return f"{len(alarms)} alarms, {len(scenes)} causes"


# ---- the metrics of AWS


def they_ring_for_metrics_of_aws(world: World) -> str:
    """AWS's metrics are given as it documents them, for things that are there, and one is too high at a time. The
    others have the highest value that is well."""
    alarms, names = some(world, of_aws=True), names_there(world)
    for name, alarm in alarms.items():
        for stat in cloudwatch.metrics(alarm).values():
            is_written(f"{name} looks at", cloudwatch.series_of(stat), stat.get("Unit"), names)
    causes = list(causes_of_aws(world))
    quiet: Data = {}
    for _, series, low, _ in causes:
        is_written("this test writes", series, None, names)
        if series.namespace not in SPARSE:
            quiet[series] = written(series, low)
    scenes = []
    for name, series, _, high in causes:
        scenes.append(Scene(f"{series} is {high:g}", {name}, quiet, {**quiet, series: written(series, high)}, quiet))
    judged(alarms, scenes)
    return f"{len(alarms)} alarms, {len(scenes)} causes"


def written(series: Series, value: float) -> list[tuple[str, float]]:
    """A value with its unit."""
    return [(WRITTEN_BY_AWS[series.namespace, series.name][0], value)]


def is_written(who: str, series: Series, unit: str | None, names: dict[str, set[str]]) -> None:
    """Fails unless AWS writes this metric, with these dimensions, for a thing that is there."""
    documented = WRITTEN_BY_AWS.get((series.namespace, series.name))
    expect(documented is not None, f"{who} {series}, which AWS does not write")
    assert documented is not None
    expect(unit in (None, documented[0]), f"{who} {series} in {unit}, and AWS writes {documented[0]}")
    dimensions = dict(series.dimensions)
    expect(set(dimensions) in documented[1], f"{who} {series}, which AWS does not write for these dimensions")
    for dimension, value in dimensions.items():
        expect(value in names[dimension], f"{who} {series}, and there is no {dimension} {value}")


def causes_of_aws(world: World) -> Iterator[tuple[str, Series, float, float]]:
    """An alarm, a metric, its highest value that is well, and one that is not."""
    of = world.deployment

    def named(namespace: str, name: str, **dimensions: str) -> Series:
        return Series(namespace, name, frozenset(dimensions.items()))

    for function in ("api", "submission", "scheduler", "agents", "supervisor"):
        if function != "api":
            yield f"{function}-errors", named("AWS/Lambda", "Errors", FunctionName=of.function(function)), 0, 1
        yield "throttles", named("AWS/Lambda", "Throttles", FunctionName=of.function(function)), 0, 1
    counting = of.function("supervisor")
    listed = world.lambdas.list_event_source_mappings(FunctionName=counting)["EventSourceMappings"]
    expect(any(":dynamodb:" in one["EventSourceArn"] for one in listed), f"{counting} reads a stream")
    yield "numbers-late", named("AWS/Lambda", "IteratorAge", FunctionName=counting), 600_000, 600_001
    visible, in_flight = "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"
    for queue, waits_s in WAITS_S.items():
        for lane in ("normal", "high"):
            series = named("AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName=last_of(of.queue(queue, lane)))
            yield f"{queue}-age", series, waits_s, waits_s + 1
        dead = last_of(of.queue(queue, "dead"))
        yield "dead-letters", named("AWS/SQS", visible, QueueName=dead), 0, 1
        yield "unsettled-letters", named("AWS/SQS", in_flight, QueueName=dead), 0, 1
    yield "alerts-undelivered", named("AWS/SQS", visible, QueueName=f"{STACK}-alerts-dead"), 0, 1
    bus = of.outputs["EventBusName"]
    rule = named("AWS/Events", "FailedInvocations", EventBusName=bus, RuleName=f"{STACK}-alerts")
    yield "alert-rule-failing", rule, 0, 1
    topic = of.outputs["AlertTopicArn"].rpartition(":")[2]
    yield "alert-topic-failing", named("AWS/SNS", "NumberOfNotificationsFailed", TopicName=topic), 0, 1
    for table, operations in {"Orders": ["PutItem"], "Tasks": ["PutItem", "GetItem", "UpdateItem", "Query"]}.items():
        for name in ("ReadThrottleEvents", "WriteThrottleEvents"):
            yield "store-failing", named("AWS/DynamoDB", name, TableName=of.table(table)), 0, 1
        for operation in operations:
            series = named("AWS/DynamoDB", "SystemErrors", TableName=of.table(table), Operation=operation)
            yield "store-failing", series, 0, 1
    yield "api-faults", named("AWS/ApiGateway", "5xx", ApiId=of.api_id), 0, 1


def names_there(world: World) -> dict[str, set[str]]:
    """What is there, by the dimension that names it."""
    emulator, bus = world.deployment.emulator, world.deployment.outputs["EventBusName"]

    def listed(service: str, call: str, member: str, name: Callable[[Any], str], **of: str) -> set[str]:
        return {name(one) for one in getattr(client(emulator, service), call)(**of)[member]}

    return {
        "ApiId": listed("apigatewayv2", "get_apis", "Items", lambda api: str(api["ApiId"])),
        "EventBusName": listed("events", "list_event_buses", "EventBuses", lambda one: str(one["Name"])),
        "FunctionName": listed("lambda", "list_functions", "Functions", lambda one: str(one["FunctionName"])),
        "Operation": OPERATIONS,
        "QueueName": listed("sqs", "list_queues", "QueueUrls", last_of),
        "RuleName": listed("events", "list_rules", "Rules", lambda rule: str(rule["Name"]), EventBusName=bus),
        "TableName": listed("dynamodb", "list_tables", "TableNames", str),
        "TopicName": listed("sns", "list_topics", "Topics", lambda one: str(one["TopicArn"]).rpartition(":")[2]),
    }


def last_of(url: str) -> str:
    """The last part of a queue's URL, its name."""
    return url.rpartition("/")[2]
