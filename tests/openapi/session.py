"""Holds the API contract and the running API to each other with thousands of calls.

    tests/run openapi [--program FILE] [argument of schemathesis run ...]

Starts `stepwarden serve` in a folder of its own with orders in every state. schemathesis reads the contract that it
serves and sends at least 2,000 requests: examples, edge cases, valid and invalid generated ones, and chains of calls,
with all checks. The seed is fixed. The examples in the contract are checked as well. Takes about two minutes.

--program FILE  uses this `stepwarden` instead of a debug build
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jsonschema_rs
from harness import command, tools
from harness.report import Report, expect
from harness.serve import Server
from seeds import CHANNEL, plant
from strict import examples, strict

HERE = Path(__file__).resolve().parent
CASES_MIN = 2_000
EXAMPLES_MIN = 50


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("openapi")
    parser.add_argument("--program")
    options, arguments = parser.parse_known_args()
    program = tools.stepwarden(options.program)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="stepwarden-openapi-") as folder:
        # Nothing listens at the reply channel, and no order needs that.
        data, channel = Path(folder) / "data", f"{CHANNEL}=http://127.0.0.1:9/"
        with Server(program, data, "--reply-channel", channel) as server:
            seeds = report.check("orders in every state", lambda: plant(server))
            if seeds is not None:
                report.check("the examples in the contract", lambda: examples_are_valid(server.get("/openapi.json")))
                report.check("the API does as the contract says", lambda: api_conforms(server, seeds, arguments))
                report.check("the server runs on without a panic", lambda: nothing_broke(server))
    return report.close()


def examples_are_valid(contract: dict[str, Any]) -> str:
    """Every example is allowed by its own schema."""
    strict(contract)
    wrong, all_of_them = [], examples(contract)
    for place, schema, value in all_of_them:
        dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        whole = {**dialect, **schema, "components": contract["components"]}
        for error in jsonschema_rs.validator_for(whole, validate_formats=True).iter_errors(value):
            wrong.append(f"the example at {place} is wrong: {error.message}")
    expect(not wrong, "\n".join(wrong))
    expect(len(all_of_them) > EXAMPLES_MIN, f"{len(all_of_them)} examples, more than {EXAMPLES_MIN} wanted")
    return f"{len(all_of_them)} examples"


def api_conforms(server: Server, seeds: dict[str, list[str]], arguments: list[str]) -> str:
    """Schemathesis finds nothing, in enough cases."""
    status, cases = schemathesis(server, seeds, arguments)
    # The reason of a 503 is in the server's log only.
    unavailable = [line for line in server.log().splitlines() if "answered 503" in line]
    expect(status == 0, "\n".join([f"schemathesis ended with {status} after {cases} cases", *unavailable]))
    expect(cases >= CASES_MIN or bool(arguments), f"{cases} cases, at least {CASES_MIN} wanted")
    return f"{cases} cases"


def schemathesis(server: Server, seeds: dict[str, list[str]], arguments: list[str]) -> tuple[int, int]:
    """Runs schemathesis; its status, and the number of cases that it tried."""
    # Its files are in the folder that it runs in.
    with tempfile.TemporaryDirectory(prefix="stepwarden-openapi-") as folder:
        command_line = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run",
            f"{server.url}/openapi.json", "--no-color", *arguments,
        ]
        variables = {
            "SCHEMATHESIS_HOOKS": "hooks", "OPENAPI_SEEDS": json.dumps(seeds), "OPENAPI_CHANNEL": CHANNEL,
        }
        child = subprocess.Popen(
            command_line, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
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


def nothing_broke(server: Server) -> None:
    """The process is there, and no request made it panic."""
    expect(server.is_running(), f"stepwarden serve ended: {server.log()}")
    panics = [line for line in server.log().splitlines() if "panicked" in line]
    expect(not panics, "\n".join(panics))


if __name__ == "__main__":
    command.run(main)
