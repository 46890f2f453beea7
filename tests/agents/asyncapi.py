"""asyncapi.json against the specification's own schema, which npm brings. (What it refers to is held by Rust tests.)"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import jsonschema
import tools

DOCUMENT = tools.ROOT / "infra" / "contracts" / "asyncapi.json"
PACKAGE = "@asyncapi/specs@6.11.1"


def check() -> list[str]:
    """What is wrong with the document; nothing where there is no npm."""
    rules = _meta_schema(json.loads(DOCUMENT.read_text())["asyncapi"])
    if rules is None:
        print("asyncapi.json: not held against its schema, since there is no npm")
        return []
    errors = jsonschema.validators.validator_for(rules)(rules).iter_errors(json.loads(DOCUMENT.read_text()))
    problems = [f"asyncapi.json: {'/'.join(map(str, error.path))}: {error.message[:300]}" for error in errors]
    print(f"asyncapi.json: {'as its specification says' if not problems else 'NOT as its specification says'}")
    return problems


def _meta_schema(version: str) -> dict[str, object] | None:
    folder = tools.CACHE / "asyncapi"
    file = folder / f"{PACKAGE.rsplit('@', 1)[1]}-{version}.json"
    if not file.exists():
        if shutil.which("npm") is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(folder, version, file)
    rules: dict[str, object] = json.loads(file.read_text())
    return rules


def _fetch(folder: Path, version: str, file: Path) -> None:
    tools.run(["npm", "pack", "--silent", "--pack-destination", str(folder), PACKAGE])
    for archive in folder.glob("*.tgz"):
        with tarfile.open(archive) as content:
            member = content.extractfile(f"package/schemas/{version}.json")
            if member is None:
                raise tools.ToolError(f"{PACKAGE} has no schema for {version}")
            file.write_bytes(member.read())
        archive.unlink()
