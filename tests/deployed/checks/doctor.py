"""`stepwarden doctor` on the deployment: all is well, and what somebody changed by hand is found."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from harness import tools
from harness.deployment import STACK, client
from harness.emulator import REGION, ROOT_KEYS, client_environment
from harness.report import expect, expect_equal
from world import World

from checks import alarms
from checks.supervision import switch_schedule

# Calls of the `aws` tool, each a process of its own.
DOCTOR_S_MAX = 300


def it_finds_what_was_changed_by_hand_and_otherwise_nothing_wrong(world: World) -> None:
    """Through the API and the `aws` tool; warnings are about what other checks left behind."""
    world.supervise()
    # The emulator evaluates no alarm, and compares queues, but not schedules.
    alarm = f"{STACK}-throttles"
    for one in alarms.deployed(world).values():
        ring(world, one["AlarmName"], "OK")
    ring(world, alarm, "ALARM")
    with world.visibility("agents", 30):
        status, report = look(world, "--stack", STACK)
    wrong = found(report, "wrong")
    queue, rings = "resource AgentsQueue", f"alarm {alarm}"
    expect_equal("what is wrong after two changes", (status, set(wrong)), (1, {queue, rings}))
    expect("/VisibilityTimeout is 30" in wrong[queue] and "throttled" in wrong[rings], f"it says why: {wrong}")
    ring(world, alarm, "OK")
    switch_schedule(world, "ENABLED")
    status, report = look(world, "--stack", STACK)
    expect_equal("what is wrong with the deployment", found(report, "wrong"), {})
    expect_equal("status", status, 0)
    expect_equal("what could not be looked at", found(report, "skipped"), {})
    kinds = {check.split(" ")[0] for check in found(report, "ok")}
    expect(kinds >= {"reachable", "clock", "supervisor", "stack", "drift", "alarms"}, f"{kinds}")
    expect("stand-ins" in found(report, "warning"), f"nothing real happens here: {found(report, 'warning')}")


def ring(world: World, alarm: str, state: str) -> None:
    """Has an alarm ring, or be quiet again."""
    watch = client(world.deployment.emulator, "cloudwatch")
    watch.set_alarm_state(AlarmName=alarm, StateValue=state, StateReason="a test")


def an_operator_sees_the_api(world: World) -> None:
    """The doctor and the other commands sign with whatever credentials are in the environment."""
    keys = world.operator.keys
    expect(keys is not None, "the operator has keys")
    own = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key} if keys else {}
    status, report = look(world, environment=own)
    expect_equal("what is wrong or skipped for the operator", (found(report, "wrong"), found(report, "skipped")), ({}, {}))
    expect_equal("status of the operator", status, 0)


def look(world: World, *words: str, environment: dict[str, str] = ROOT_KEYS) -> tuple[int, dict[str, Any]]:
    """One run of the doctor: its status and its report."""
    done = stepwarden(world, ["doctor", "--output", "json", *words], environment)
    expect(done.stdout.startswith("{"), f"the doctor says {done.stderr}")
    return done.returncode, json.loads(done.stdout)


def stepwarden(world: World, words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The program against the deployed API, signed with the keys in the environment."""
    awscli = tools.environment("awscli")
    command = [str(world.program), *words, "--api", world.deployment.api_url, "--auth", "iam", "--region", REGION]
    return subprocess.run(
        command,
        cwd=tools.ROOT,
        env={
            **os.environ,
            **client_environment(world.deployment.emulator.url),
            **environment,
            "PATH": f"{awscli / 'bin'}{os.pathsep}{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DOCTOR_S_MAX,
        check=False,
    )


def found(report: dict[str, Any], state: str) -> dict[str, str]:
    """The checks that came to a state, and what was found."""
    return {line["Check"]: line["Found"] for line in report["Checks"] if line["State"] == state}
