"""Compares what is shown with what is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from harness.report import expect
from surfaces import ALL, Numbers, Range, Shown, collected, exactly
from truth import Truth

TRIES = 4
NAMED_MAX = 12
NOTHING = exactly(0)


@dataclass(frozen=True)
class Surface:
    """A place that shows numbers of a span. `names` is the pattern of those that it has to show, if they are not 0."""

    title: str
    read: Callable[[], Shown]
    names: str
    span: str = ALL


@dataclass
class Compared:
    """How much was compared, and how much of it while nothing moved."""

    numbers: int = 0
    exact: int = 0


def compare(truth: Truth, surface: Surface, compared: Compared) -> str:
    """Compares all numbers of a surface with the counts before and after the look at it.

    While nothing moves, both counts are the same, and each number must be exactly that. If something moved, a number
    must lie between the two. It may also have moved forth and back, so the look is repeated before it is called wrong.
    """
    for turn in range(TRIES):
        number, before = truth.numbers(surface.span)
        shown = collected(surface.read())
        is_still, after = number == (later := truth.numbers(surface.span))[0], later[1]
        wrong = list(differences(shown, before, after, surface.names))
        if not wrong:
            compared.numbers += len(shown)
            compared.exact += len(shown) if is_still else 0
            return f"{len(shown)} numbers{'' if is_still else ', between two counts'}"
        if is_still or turn + 1 == TRIES:
            break
    words = wrong[:NAMED_MAX] + ([f"and {len(wrong) - NAMED_MAX} more"] if len(wrong) > NAMED_MAX else [])
    expect(False, "\n".join([f"{surface.title}{'' if is_still else ' (while something moved)'}:", *words]))
    return ""


def differences(shown: Numbers, before: Numbers, after: Numbers, names: str) -> list[str]:
    """What is wrong with the numbers that are shown."""
    wrong = []
    for name, value in sorted(shown.items()):
        true = both(before.get(name, NOTHING), after.get(name, NOTHING))
        if value[1] < true[0] or true[1] < value[0]:
            wrong.append(f"{name} is {words(true)}, and shown as {words(value)}")
    pattern = re.compile(names)
    for name in sorted(set(before) & set(after) - set(shown)):
        if pattern.fullmatch(name) and before[name][0] > 0 and after[name][0] > 0:
            wrong.append(f"{name} is {words(both(before[name], after[name]))}, and not shown")
    return wrong


def both(one: Range, other: Range) -> Range:
    """The range from the lower to the higher."""
    return (min(one[0], other[0]), max(one[1], other[1]))


def words(value: Range) -> str:
    """A range for people."""
    low, high = (f"{end:g}" if end < 1e6 else str(end) for end in value)
    return low if low == high else f"{low} to {high}"
