"""One run: a server with seeds, the contract's own examples, schemathesis, and what came of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jsonschema_rs

from seeds import plant
from server import CHANNEL, Server
from strict import examples, strict

HERE = Path(__file__).resolve().parent
CASES_MIN = 2_000


def main(program: str, arguments: list[str]) -> int:
    """0: fine, 1: something is wrong, 2: could not be found out."""
    began = time.monotonic()
    with Server(program) as server:
        print(f"openapi: {server.url} is up; planting orders", flush=True)
        seeds = plant(server)
        status, contract = server.ask("GET", "/openapi.json")
        assert status == 200, contract
        wrong = wrong_examples(contract)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        status, cases = ask(server, seeds, arguments)
        if not server.still_runs():
            print(f"openapi: stepwarden serve ended under it: {server.log()}")
            return 1
        if status:
            # Why it could not answer is told here, and not to callers.
            print(*[line for line in server.log().splitlines() if "answered 503" in line], sep="\n")
        panics = [line for line in server.log().splitlines() if "panicked" in line]
        print(*panics, sep="\n", end="\n" if panics else "")
    took = time.monotonic() - began
    print(f"openapi: {cases} cases in {took:.0f} s, at least {CASES_MIN} wanted; schemathesis ended with {status}")
    if status not in (0, 1):
        return 2
    return 1 if status or wrong or panics or (cases < CASES_MIN and not arguments) else 0


def wrong_examples(contract: dict[str, Any]) -> list[str]:
    """What the contract shows as an answer or a value, and forbids."""
    strict(contract)
    wrong, all_of_them = [], examples(contract)
    for place, schema, value in all_of_them:
        whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "components": contract["components"]}
        for error in jsonschema_rs.validator_for(whole, validate_formats=True).iter_errors(value):
            wrong.append(f"openapi: the example at {place} is wrong: {error.message}")
    print(f"openapi: {len(all_of_them)} examples, {len(wrong)} wrong")
    return wrong if len(all_of_them) > 50 else [*wrong, "openapi: there are too few examples"]


def ask(server: Server, seeds: dict[str, list[str]], arguments: list[str]) -> tuple[int, int]:
    """Runs schemathesis; its status, and how many cases it tried."""
    # What it keeps from run to run, it keeps in the folder that it runs in.
    with tempfile.TemporaryDirectory(prefix="stepwarden-openapi-") as folder:
        command = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run",
            f"{server.url}/openapi.json", "--no-color", *arguments,
        ]
        hooked = {
            "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "OPENAPI_SEEDS": json.dumps(seeds),
            "OPENAPI_CHANNEL": CHANNEL,
        }
        child = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **hooked}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        lines = []
        try:
            assert child.stdout is not None
            for line in child.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            status = child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    counted = re.findall(r"^\s*(\d[\d,]*) generated", "".join(lines), re.MULTILINE)
    return status, int(counted[-1].replace(",", "")) if counted else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except (RuntimeError, AssertionError) as error:
        print(f"openapi: {error}", file=sys.stderr)
        sys.exit(2)
