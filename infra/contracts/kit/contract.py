"""The JSON Schemas of the messages, and as much of a validator as they need.

The kit asks for nothing but boto3, so it reads the schemas itself. A keyword that it does not know is an error, not a
rule that is silently left out.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"

OUTPUT_BYTES_MAX = 16 * 1024
NESTING_MAX = 64

# They say something to people, or are checked through another keyword (`format` comes with a `pattern`).
WORDS = {"$schema", "$defs", "title", "description", "examples", "default", "format"}
KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}
# To Python a truth value is a number, too.
NUMBERS = {"integer", "number"}


class UnknownKeyword(Exception):
    """A schema uses a keyword that this validator does not know."""


def faults_of_reply(message: object) -> list[str]:
    """What is wrong with the shape of a reply, in words; nothing if it is well."""
    return faults(message, schema("reply.json"), "reply.json", "")


def faults(value: object, rules: dict[str, Any] | bool, file: str, at: str) -> list[str]:
    """What `rules`, which stand in `file`, do not allow about `value`, which stands `at` a path in the message. `true`
    allows everything."""
    found: list[str] = []
    if isinstance(rules, bool):
        return found if rules else [f"{_where(at)} may not be there"]
    for keyword, rule in rules.items():
        if keyword in WORDS:
            continue
        if keyword not in CHECKS:
            raise UnknownKeyword(f"{keyword} in {file}")
        found += CHECKS[keyword](value, rule, rules, file, at)
    return found


@functools.cache
def schema(file: str) -> dict[str, Any]:
    """The schema in this file."""
    rules: dict[str, Any] = json.loads((SCHEMAS / file).read_text(encoding="utf-8"))
    return rules


def _where(at: str) -> str:
    return at or "the message"


def _is(value: object, kind: str) -> bool:
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind in NUMBERS):
        return False
    return kind != "number" or _is_finite(value)


def _is_finite(value: object) -> bool:
    """Whether a number is in the range of a double: beyond it readers differ."""
    try:
        return isinstance(value, (int, float)) and math.isfinite(value)
    except OverflowError:
        return False


def resolved(target: str, file: str) -> tuple[dict[str, Any], str]:
    """The rules that a reference in this file names, and the file in which they stand."""
    other, _, pointer = target.partition("#")
    file = other or file
    rules = schema(file)
    for part in filter(None, pointer.split("/")):
        rules = rules[part]
    return rules, file


def _ref(value: object, target: str, _rules: dict[str, Any], file: str, at: str) -> list[str]:
    return faults(value, *resolved(target, file), at)


def _type(value: object, kind: str, _rules: dict[str, Any], _file: str, at: str) -> list[str]:
    return [] if _is(value, kind) else [f"{_where(at)} is {_shown(value)}, not of type {kind}"]


def _enum(value: object, allowed: list[object], _rules: dict[str, Any], _file: str, at: str) -> list[str]:
    return [] if value in allowed else [f"{_where(at)} is {_shown(value)}, not one of {', '.join(map(str, allowed))}"]


def _pattern(value: object, pattern: str, _rules: dict[str, Any], _file: str, at: str) -> list[str]:
    if not isinstance(value, str) or re.search(pattern, value):
        return []
    return [f"{_where(at)} is {_shown(value)}, which does not match {pattern}"]


def _length(value: object, bound: int, is_least: bool, at: str) -> list[str]:
    if not isinstance(value, str) or (len(value) >= bound if is_least else len(value) <= bound):
        return []
    return [f"{_where(at)} has {len(value)} characters, {'at least' if is_least else 'at most'} {bound} are allowed"]


def _bound(value: object, bound: int, is_least: bool, at: str) -> list[str]:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return []
    if (value >= bound) if is_least else (value <= bound):
        return []
    return [f"{_where(at)} is {value}, {'at least' if is_least else 'at most'} {bound} is allowed"]


def _required(value: object, names: list[str], _rules: dict[str, Any], _file: str, at: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [f"{_where(at)} has no {name}" for name in names if name not in value]


def _properties(value: object, properties: dict[str, Any], _rules: dict[str, Any], file: str, at: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    inside = [(name, rules) for name, rules in properties.items() if name in value]
    return [fault for name, rules in inside for fault in faults(value[name], rules, file, f"{at}.{name}".lstrip("."))]


def _additional(value: object, allowed: bool, rules: dict[str, Any], _file: str, at: str) -> list[str]:
    if allowed or not isinstance(value, dict):
        return []
    return [f"{_where(at)} has {name}, which may not be there" for name in value if name not in rules["properties"]]


def _items(value: object, rule: dict[str, Any], _rules: dict[str, Any], file: str, at: str) -> list[str]:
    if not isinstance(value, list):
        return []
    return [fault for place, item in enumerate(value) for fault in faults(item, rule, file, f"{at}[{place}]")]


def _max_items(value: object, bound: int, _rules: dict[str, Any], _file: str, at: str) -> list[str]:
    if not isinstance(value, list) or len(value) <= bound:
        return []
    return [f"{_where(at)} has {len(value)} items, at most {bound} are allowed"]


def _one_of(value: object, branches: list[dict[str, Any]], _rules: dict[str, Any], file: str, at: str) -> list[str]:
    outcomes = [faults(value, branch, file, at) for branch in branches]
    if sum(not found for found in outcomes) == 1:
        return []
    # The branch that was meant is the one with the member that is there.
    meant = [
        found
        for branch, found in zip(branches, outcomes, strict=True)
        if isinstance(value, dict) and set(value) & set(branch.get("properties", {}))
    ]
    # A branch has a word of its own, or a member.
    names = " or ".join(str(name) for branch in branches for name in branch.get("enum", branch.get("required", [])))
    return meant[0] if len(meant) == 1 else [f"{_where(at)} is {_shown(value)}, not exactly one of {names}"]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


CHECKS: dict[str, Callable[[object, Any, dict[str, Any], str, str], list[str]]] = {
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "maxItems": _max_items,
    "oneOf": _one_of,
    "minLength": lambda value, bound, _rules, _file, at: _length(value, bound, True, at),
    "maxLength": lambda value, bound, _rules, _file, at: _length(value, bound, False, at),
    "minimum": lambda value, bound, _rules, _file, at: _bound(value, bound, True, at),
    "maximum": lambda value, bound, _rules, _file, at: _bound(value, bound, False, at),
}
