"""asyncapi.json against the specification's own schema, which npm brings. Rust tests check what it refers to."""

from __future__ import annotations

import json

import jsonschema
from harness import tools
from harness.report import expect

DOCUMENT = tools.ROOT / "infra" / "contracts" / "asyncapi.json"
SPECIFICATION = ("@asyncapi/specs", "6.11.1")


def check() -> str:
    """The document is as its specification says."""
    document = json.loads(DOCUMENT.read_text())
    version = document["asyncapi"]
    rules = json.loads(tools.npm_file(*SPECIFICATION, f"schemas/{version}.json").read_text())
    errors = list(jsonschema.validators.validator_for(rules)(rules).iter_errors(document))
    expect(not errors, "\n".join(f"{'/'.join(map(str, error.path))}: {error.message[:300]}" for error in errors))
    return f"AsyncAPI {version}"
