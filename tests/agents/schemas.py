"""The kit's own small validator against a complete one, on valid and on spoilt replies."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema
from harness import tools
from harness.report import expect
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

CONTRACTS = tools.ROOT / "infra" / "contracts"
sys.path.insert(0, str(CONTRACTS))

from kit.contract import faults_of_reply, resolved  # noqa: E402

SPOILERS: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    "",
    "Sideways",
    [],
    {},
    {"Done": 1, "Failed": {}},
    2**64,
    "x" * 500,
)


def check() -> str:
    """Both validators say the same of every reply."""
    files = {file.name: json.loads(file.read_text()) for file in (CONTRACTS / "schemas").glob("*.json")}
    registry: Registry[Any] = Registry().with_resources(
        (name, Resource.from_contents(rules, default_specification=DRAFT202012)) for name, rules in files.items()
    )
    examples = files["reply.json"]["examples"]
    # An output may have members of any name.
    shown = {path[-1] for path in _paths(examples) if "Done" not in path[:-1]}
    unshown = _declared(files["reply.json"], "reply.json") - shown
    expect(not unshown, f"no example of reply.json has {', '.join(map(str, unshown))}, so nothing here tries it")
    complete = jsonschema.Draft202012Validator(files["reply.json"], registry=registry)
    tried = [version for example in examples for version in _versions(example)]
    invalid = sum(not complete.is_valid(message) for message in tried)
    differences = [
        f"the kit's validator says {faults_of_reply(message)} of {json.dumps(message)[:300]}, which is "
        f"{'valid' if complete.is_valid(message) else 'invalid'}"
        for message in tried
        if complete.is_valid(message) == bool(faults_of_reply(message))
    ]
    expect(not differences, "\n".join(differences))
    return f"{len(tried)} replies, {invalid} of them invalid"


def _versions(message: Any) -> Iterator[Any]:
    """The message, without each of its members, with more, and with each of them spoilt."""
    yield message
    for path in _paths(message):
        for spoiler in (*SPOILERS, "remove", "add"):
            version = copy.deepcopy(message)
            parent = version
            for name in path[:-1]:
                parent = parent[name]
            if spoiler == "remove":
                del parent[path[-1]]
            elif spoiler == "add" and isinstance(parent, dict):
                parent["More"] = 1
            elif spoiler == "add":
                parent += ["More"] * 9
            else:
                parent[path[-1]] = spoiler
            yield version


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, inner in inside:
        yield (*path, name)
        yield from _paths(inner, (*path, name))


def _declared(rules: dict[str, Any] | bool, file: str) -> set[str | int]:
    """The names of all members that a schema has, at any depth."""
    if isinstance(rules, bool):
        return set()
    found: set[str | int] = set(rules.get("properties", {}))
    inner = [*rules.get("properties", {}).values(), *rules.get("oneOf", []), *filter(None, [rules.get("items")])]
    for one in inner:
        found |= _declared(one, file)
    if "$ref" in rules:
        found |= _declared(*resolved(rules["$ref"], file))
    return found
