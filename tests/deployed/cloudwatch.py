"""CloudWatch's rules for alarms, which the emulator stores and does not evaluate."""

from __future__ import annotations

import ast
import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report import CheckFailed

Alarm = dict[str, Any]
Value = float | None

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Average": statistics.fmean,
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
    "Sum": sum,
}
FUNCTIONS = {"AVG": statistics.fmean, "MAX": max, "MIN": min, "SUM": sum}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}
# The periods before the evaluation periods that may stand in for missing ones. AWS does not say how many they are; its
# examples have two.
EXTRA_PERIODS = 2


@dataclass(frozen=True)
class Series:
    """A metric with its dimensions."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"{self.namespace} {self.name} {dict(sorted(self.dimensions))}"


# What was written in a time: values with their units.
Data = dict[Series, list[tuple[str, float]]]


@dataclass(frozen=True)
class Change:
    """A new state, in minutes since the phase began that brought it about."""

    state: str
    phase: int
    minutes: float


def metrics(alarm: Alarm) -> dict[str, dict[str, Any]]:
    """The metrics that an alarm looks at, by their ids in its expression."""
    several = {one["Id"]: one["MetricStat"] for one in alarm.get("Metrics") or [] if "MetricStat" in one}
    if several:
        return several
    single = {key: alarm[key] for key in ("Namespace", "MetricName", "Dimensions")}
    return {"": {"Metric": single, "Stat": alarm["Statistic"], "Period": alarm["Period"], "Unit": alarm.get("Unit")}}


def series_of(stat: dict[str, Any]) -> Series:
    """The series of one of the metrics of an alarm."""
    metric = stat["Metric"]
    dimensions = frozenset((one["Name"], one["Value"]) for one in metric.get("Dimensions", []))
    return Series(metric["Namespace"], metric["MetricName"], dimensions)


def datapoint(alarm: Alarm, data: Data) -> Value:
    """What an alarm compares with its threshold, for a period in which this was written."""
    found = {name: aggregate(stat, data) for name, stat in metrics(alarm).items()}
    expressions = [one for one in alarm.get("Metrics") or [] if one.get("ReturnData", True)]
    if not expressions:
        return found[""]
    (returned,) = expressions
    if "Expression" not in returned:
        return found[returned["Id"]]
    value = calculate(ast.parse(returned["Expression"], mode="eval").body, found)
    if isinstance(value, list):
        raise CheckFailed(f"{returned['Expression']} is no single time series")
    return value


def aggregate(stat: dict[str, Any], data: Data) -> Value:
    """The statistic of a period. A metric with a unit takes values with that unit alone."""
    values = [value for unit, value in data.get(series_of(stat), []) if stat.get("Unit") in (None, unit)]
    return float(STATISTICS[stat["Stat"]](values)) if values else None


def calculate(node: ast.expr, found: dict[str, Value]) -> Value | list[Value]:
    """Metric math, as far as its functions look at one period alone."""
    match node:
        case ast.Name(id=name) if name in found:
            return found[name]
        case ast.List(elts=elements):
            return [one for element in elements for one in listed(calculate(element, found))]
        case ast.Call(func=ast.Name(id="METRICS"), args=[]):
            return list(found.values())
        case ast.Call(func=ast.Name(id="FILL"), args=[what, ast.Constant(value=int(filler))]):
            value = calculate(what, found)
            filled = [float(filler) if one is None else one for one in listed(value)]
            return filled if isinstance(value, list) else filled[0]
        case ast.Call(func=ast.Name(id=name), args=[what]) if name in FUNCTIONS:
            known = [one for one in listed(calculate(what, found)) if one is not None]
            return float(FUNCTIONS[name](known)) if known else None
    raise CheckFailed(f"metric math that these tests do not know: {ast.unparse(node)}")


def listed(value: Value | list[Value]) -> list[Value]:
    """An array of time series, also of one."""
    return value if isinstance(value, list) else [value]


def state(alarm: Alarm, points: Sequence[Value], before: str) -> str:
    """The state of an alarm after these datapoints, the newest last."""
    needed: int = alarm["EvaluationPeriods"]
    breaching_needed: int = alarm.get("DatapointsToAlarm") or needed
    compare, threshold = COMPARISONS[alarm["ComparisonOperator"]], alarm["Threshold"]
    points = points[-(needed + EXTRA_PERIODS) :]
    ages = [len(points) - place for place, point in enumerate(points) if point is not None]
    breaching = [compare(point, threshold) for point in points if point is not None]
    is_of_dynamodb = any(stat["Metric"]["Namespace"] == "AWS/DynamoDB" for stat in metrics(alarm).values())
    missing = alarm.get("TreatMissingData") or ("ignore" if is_of_dynamodb else "missing")
    if len(breaching) >= needed:
        breaching = breaching[-needed:]
    elif missing in ("breaching", "notBreaching"):
        breaching += [missing == "breaching"] * (needed - len(breaching))
    elif all(breaching):
        # Too few datapoints, and none of them is good.
        if missing == "ignore" or (breaching and max(ages) < breaching_needed):
            return before
        return "ALARM" if breaching else "INSUFFICIENT_DATA"
    return "ALARM" if sum(breaching) >= breaching_needed else "OK"


def history(alarm: Alarm, phases: Sequence[Data]) -> list[Change]:
    """The states of an alarm while each phase lasts as long as it looks back, with the same written in each period."""
    periods = alarm["EvaluationPeriods"] + EXTRA_PERIODS
    minutes = next(iter(metrics(alarm).values()))["Period"] / 60
    points: list[Value] = []
    changes: list[Change] = []
    now = "INSUFFICIENT_DATA"
    for phase, data in enumerate(phases):
        for period in range(1, periods + 1):
            points.append(datapoint(alarm, data))
            after = state(alarm, points, now)
            # Before the first phase is over, an alarm knows too little.
            if after != now and (phase > 0 or period == periods):
                changes.append(Change(after, phase, period * minutes))
                now = after
    return changes
