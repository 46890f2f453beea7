"""The contract as a test reads it."""

from __future__ import annotations

from typing import Any


def strict(contract: dict[str, Any]) -> None:
    """Closes every object that names its members and does not say that it may have others. Readers of the API must ignore
    what they do not know; a test wants to know of it."""
    for schema in contract["components"]["schemas"].values():
        close(schema)


def close(schema: Any) -> None:
    """Closes a schema and those in it."""
    if isinstance(schema, list):
        for part in schema:
            close(part)
    elif isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)
        for name, part in schema.items():
            if name not in ("example", "examples", "enum", "default"):
                close(part)


def examples(contract: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
    """Every example in the contract of a value: where it stands, its schema, and the value."""
    found: list[tuple[str, dict[str, Any], Any]] = []
    collect(contract, "#", found)
    return found


def collect(node: Any, place: str, found: list[tuple[str, dict[str, Any], Any]]) -> None:
    """Those within a part of the contract."""
    if isinstance(node, list):
        for number, part in enumerate(node):
            collect(part, f"{place}/{number}", found)
    if not isinstance(node, dict):
        return
    if "schema" in node:
        values = [example["value"] for example in node.get("examples", {}).values()]
        values += [node["example"]] if "example" in node else []
        found += [(place, node["schema"], value) for value in values]
    elif isinstance(node.get("examples"), list) and ("type" in node or "$ref" in node):
        found += [(place, node, value) for value in node["examples"]]
    for name, part in node.items():
        if name not in ("example", "examples", "enum", "default"):
            collect(part, f"{place}/{name}", found)
