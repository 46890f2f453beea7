"""Holds agents in any language to the contracts: the example in Python, the shipped one, and 14 with a fault.

    tests/run agents [--shipped BINARY] [--only AGENT]...

Runs the conformance kit (infra/contracts/kit) on queues of an AWS emulator on this machine. The example agent must
pass. Each faulty one must fail in exactly the scenes about its fault. asyncapi.json is checked against the schema of
its specification, from npm. Takes about two minutes.

--shipped BINARY  runs the shipped agent as well, as a function of the emulator. BINARY is a build for this machine:
    .aws-sam/build/AgentsFunction/bootstrap    by tests/run deployed, or sam build --parameter-overrides Architecture=...
    target/debug/agents                 by cargo build -p agents
--only AGENT      runs this agent alone
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
from pathlib import Path

import asyncapi
import burst
import schemas
from harness import command
from harness.emulator import Emulator, client_environment
from harness.report import Check, CheckFailed, Report
from harness.tools import ToolError
from trial import CONTRACTS, Outcome, stop_all, under_test

HERE = Path(__file__).resolve().parent
RIGHT = "agent"
SHIPPED = "shipped"
# Each faulty agent of `wrong.py`, the scenes about its fault, and words of the kit's finding.
WRONG = {
    "NewKey": ({"second-attempt"}, "a call came with the key"),
    "LateReply": (
        {"slow-service", "budget-is-earlier", "complete-by-is-earlier"},
        "a reply was sent after the deadline",
    ),
    "DeletesAnyway": ({"reply-not-taken"}, "the message was deleted before its reply was sent"),
    "WrongAttempt": ({"second-attempt"}, 'what came says Direction "Forward", Attempt 1'),
    "Hammers": (
        {"retry-after", "retry-after-a-date", "errors-for-a-while"},
        "was called (again after 0|[0-9.]+ s before the date|[0-9]+ times in 6 s)",
    ),
    "IgnoresBudget": ({"budget-spent", "budget-is-earlier"}, "must not be any more|after the deadline"),
    "CallsExpired": ({"expired", "complete-by-is-earlier"}, "must not be any more|after the deadline"),
    "DeletesPoison": ({"poison", "poison-in-a-batch"}, "that cannot be read was deleted"),
    "FewStatuses": (
        {"unsure-statuses", "about-the-caller"},
        'the service answered (308|408|425|502|504|599), which leaves open|should be Done, got {"Failed"',
    ),
    "FailsWhenUnsure": (
        {"no-answer", "no-connection", "at-work", "may-run-until"},
        'should be Done, got {"Failed"|no reply has MayRunUntil',
    ),
    "ConflictIsNo": ({"at-work"}, 'should be Done, got {"Failed"'),
    "AcceptedIsDone": ({"accepted"}, "202 was taken for it"),
    "CallerIsOrder": ({"about-the-caller"}, 'should be Done, got {"Failed"'),
    "ForgetsCalls": ({"may-run-until"}, "no reply has MayRunUntil"),
}
# They wait most of the time, but each has two processes.
AT_ONCE = 8


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("agents")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--shipped", type=Path)
    options = parser.parse_args()
    command.known(parser, options.only, [RIGHT, SHIPPED, *WRONG])
    names = options.only or [RIGHT, *([SHIPPED] if options.shipped else []), *WRONG]
    shipped = options.shipped.resolve() if options.shipped else None
    if SHIPPED in names and shipped is None:
        parser.error("--only shipped needs --shipped BINARY")
    if shipped is not None and not os.access(shipped, os.X_OK):
        raise ToolError(f"{shipped} is no program; `sam build` or `cargo build -p agents` makes it")
    report = Report()
    if not options.only:
        report.check("the kit's validator agrees with a complete one", schemas.check)
        report.check("asyncapi.json is as its specification says", asyncapi.check)
        report.check("the kit's service answers many calls at once", burst.check)
    with tempfile.TemporaryDirectory(prefix="stepwarden-agents-") as scratch:
        with Emulator(Path(scratch) / "emulator", enforce_iam=False) as emulator:
            environment = client_environment(emulator.url)
            trial = functools.partial(try_agent, shipped=shipped, folder=Path(scratch), environment=environment)
            checks = [Check(title(name), functools.partial(trial, name)) for name in names]
            report.all_at_once(checks, AT_ONCE)
    return report.close()


def title(name: str) -> str:
    """The claim about an agent."""
    return f"{name} conforms" if name not in WRONG else f"{name} fails in the scenes about its fault"


def try_agent(name: str, shipped: Path | None, folder: Path, environment: dict[str, str]) -> str:
    """Runs one agent; gives the kit's finding."""
    outcome = under_test(command_of(name, shipped), name, folder / name, environment)
    problems = judge(name, outcome)
    if problems:
        raise CheckFailed("\n".join([*problems, "the last lines of the agent:", outcome.agent_log]))
    _, words = WRONG.get(name, (set(), ""))
    said = [fault for faults in outcome.faults.values() for fault in faults if re.search(words, fault)]
    return f"{', '.join(sorted(outcome.faults))}: {said[0]}" if said else ""


def command_of(name: str, shipped: Path | None) -> list[str]:
    """The command that starts an agent."""
    if name == SHIPPED:
        return [sys.executable, str(HERE / "lambda_agent.py"), str(shipped)]
    example = CONTRACTS / "examples" / "python" / "agent.py"
    return [sys.executable, *([str(example)] if name == RIGHT else [str(HERE / "wrong.py"), name])]


def judge(name: str, outcome: Outcome) -> list[str]:
    """The differences between an agent's outcome and the expected one."""
    expected, words = WRONG.get(name, (set(), ""))
    failed = set(outcome.faults)
    problems = [f"fails in {scene}: {outcome.faults[scene]}" for scene in sorted(failed - expected)]
    problems += [f"does not fail in {scene}" for scene in sorted(expected - failed)]
    problems += [
        f"fails in {scene}, but not because of {words!r}: {outcome.faults[scene]}"
        for scene in sorted(failed & expected)
        if not any(re.search(words, fault) for fault in outcome.faults[scene])
    ]
    return problems


if __name__ == "__main__":
    command.run(main, stop_all)
