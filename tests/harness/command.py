"""A suite as a command: its options, signals and exit status."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from harness.report import STOPPED
from harness.tools import ToolError, stepwarden


def parser(suite: str) -> argparse.ArgumentParser:
    """A parser for the options of a suite. `tests/run SUITE --help` prints the text at the top of its `session.py`."""
    return argparse.ArgumentParser(
        prog=f"tests/run {suite}",
        usage=f"tests/run {suite} [OPTION...], see tests/run {suite} --help",
        add_help=False,
        allow_abbrev=False,
    )


def options(suite: str, **defaults: float) -> argparse.Namespace:
    """The given options of a suite: numbers by their names, with these defaults, and the program `stepwarden`."""
    of_suite = parser(suite)
    of_suite.add_argument("--program")
    for name, default in defaults.items():
        of_suite.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    given = of_suite.parse_args()
    given.program = stepwarden(given.program)
    return given


def known(suite: argparse.ArgumentParser, given: list[str], names: list[str]) -> list[str]:
    """The given names, or all where none is given. Ends the process with status 2 if one is unknown."""
    unknown = [name for name in given if name not in names]
    if unknown:
        suite.error(f"there is no {', '.join(unknown)}, but {', '.join(names)}")
    return given or names


def run(main: Callable[[], int], stop: Callable[[], None] = lambda: None) -> NoReturn:
    """Runs a suite and ends the process. `stop` is called on the first signal, so that no thread waits for anything.

    Exit status: that of `main`, 2 if a tool is missing or does not start, 128 and the number of the signal after one.
    """

    def interrupted(number: int, _frame: object) -> None:
        # A second signal does not end the cleaning up.
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        STOPPED.set()
        stop()
        sys.exit(128 + number)

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, interrupted)
    try:
        sys.exit(main())
    except ToolError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
