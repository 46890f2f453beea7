"""The example agent and its wrong brothers under the conformance kit. Started by `run`, with the emulator's Python."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "deployed"))

import asyncapi  # noqa: E402
import schemas  # noqa: E402
import tools  # noqa: E402
from emulator import Emulator, EmulatorError, client_environment  # noqa: E402
from trial import CONTRACTS, Outcome, TrialError, stop_all, under_test  # noqa: E402

RIGHT = "agent"
SHIPPED = "shipped"
# Each wrong agent, the scenes that are about what it gets wrong, and words that the kit says of it.
WRONG = {
    "new_key": ({"second-attempt"}, "a call came with the key"),
    "late_reply": (
        {"slow-service", "budget-is-earlier", "complete-by-is-earlier"},
        "a reply was sent after the deadline",
    ),
    "deletes_anyway": ({"reply-not-taken"}, "the message was deleted before its reply was sent"),
    "wrong_attempt": ({"second-attempt"}, 'what came says Direction "Forward", Attempt 1'),
    "hammers": (
        {"retry-after", "retry-after-a-date", "errors-for-a-while"},
        "was called (again after 0|[0-9.]+ s before the date|[0-9]+ times in 6 s)",
    ),
    "ignores_budget": ({"budget-spent", "budget-is-earlier"}, "must not be any more|after the deadline"),
    "calls_expired": ({"expired", "complete-by-is-earlier"}, "must not be any more|after the deadline"),
    "deletes_poison": ({"poison", "poison-in-a-batch"}, "that cannot be read was deleted"),
    "few_statuses": ({"unsure-statuses"}, "the service answered (308|408|425|502|504|599), which leaves open"),
    "fails_when_unsure": ({"no-answer", "no-connection"}, 'should be Done, got {"Failed"'),
}
# They wait most of the time, but each keeps two processes.
AT_ONCE = 5


def main() -> int:
    """Everything; gives the exit status."""
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)
    options = arguments()
    started = time.monotonic()
    names = options.only or [RIGHT, *([SHIPPED] if options.shipped else []), *WRONG]
    if SHIPPED in names and not options.shipped:
        print("--only shipped needs --shipped BINARY", file=sys.stderr)
        return 2
    shipped = Path(options.shipped).resolve() if options.shipped else None
    if shipped is not None and not os.access(shipped, os.X_OK):
        print(f"{shipped} is no program; `sam build` or `cargo build -p agents` makes it", file=sys.stderr)
        return 2
    try:
        problems = [] if options.only else schemas.check() + asyncapi.check()
        with tempfile.TemporaryDirectory(prefix="stepwarden-agents-") as scratch:
            problems += trials(names, Path(scratch), shipped)
    except (EmulatorError, TrialError, tools.ToolError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{len(names)} agents in {time.monotonic() - started:.0f} s: ", end="")
    print("as it should be" if not problems else "\n  " + "\n  ".join(problems))
    return 1 if problems else 0


def interrupted(number: int, _frame: object) -> None:
    """Leaves nothing running."""
    stop_all()
    sys.exit(128 + number)


def arguments() -> argparse.Namespace:
    """What the caller wants."""
    parser = argparse.ArgumentParser(prog="tests/agents/run", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=[RIGHT, SHIPPED, *WRONG], help="this agent alone; may be repeated"
    )
    parser.add_argument("--shipped", metavar="BINARY", help="the agent that ships, to be put to the test as well")
    return parser.parse_args()


def trials(names: list[str], folder: Path, shipped: Path | None) -> list[str]:
    """Runs the agents, several at a time, and gives what is not as it should be."""
    with Emulator(Path(sys.executable), folder / "emulator", enforce_iam=False) as emulator:
        environment = client_environment(emulator.url)

        def run(name: str) -> list[str]:
            outcome = under_test(command(name, shipped), name, folder / name, environment)
            problems = judge(name, outcome)
            print(line(name, outcome, problems), flush=True)
            return problems

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [problem for problems in pool.map(run, names) for problem in problems]


def command(name: str, shipped: Path | None) -> list[str]:
    """What starts an agent."""
    if name == SHIPPED:
        return [sys.executable, str(HERE / "lambda_agent.py"), str(shipped)]
    example = CONTRACTS / "examples" / "python" / "agent.py"
    return [sys.executable, str(example if name == RIGHT else HERE / "wrong" / f"{name}.py")]


def judge(name: str, outcome: Outcome) -> list[str]:
    """What is not as it should be about an agent's outcome."""
    expected, words = WRONG.get(name, (set(), ""))
    failed = set(outcome.faults)
    problems = [f"{name}: fails in {scene}: {outcome.faults[scene]}" for scene in sorted(failed - expected)]
    problems += [f"{name}: does not fail in {scene}" for scene in sorted(expected - failed)]
    problems += [
        f"{name}: fails in {scene}, but not because of {words!r}: {outcome.faults[scene]}"
        for scene in sorted(failed & expected)
        if not any(re.search(words, fault) for fault in outcome.faults[scene])
    ]
    if problems:
        problems.append(f"{name} said at its end:\n{outcome.agent_log}")
    return problems


def line(name: str, outcome: Outcome, problems: list[str]) -> str:
    """The same for people, with what the kit says."""
    word = "NOT AS IT SHOULD BE" if problems else "ok"
    if outcome.conforms:
        return f"{word:4} {name}: conforms"
    _, words = WRONG.get(name, (set(), ""))
    said = [fault for faults in outcome.faults.values() for fault in faults if re.search(words, fault)]
    return f"{word:4} {name}: fails in {', '.join(sorted(outcome.faults))}: {(said or ['for another reason'])[0]}"


if __name__ == "__main__":
    sys.exit(main())
