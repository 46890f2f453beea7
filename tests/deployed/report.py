"""What was checked, how long it took, and what came of it: one line each, totals at the end."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")

# Set when the run is to end early: nobody waits for anything any more.
STOPPED = threading.Event()


class CheckFailed(Exception):
    """Something is not as it should be; the text says what was expected and what was found."""


@dataclass(frozen=True)
class Check:
    """A claim, and what tries it: returns if it holds, raises if it does not."""

    title: str
    run: Callable[[], object]


class Report:
    """Counts checks and prints a line for each as it ends. May be used from several threads."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def section(self, title: str) -> None:
        """A heading over the checks that follow."""
        print(f"\n{title}", flush=True)

    def check(self, title: str, work: Callable[[], T]) -> T | None:
        """Tries one claim. Gives what `work` returns, or nothing where it failed."""
        started = time.monotonic()
        try:
            result = work()
        except Exception as error:
            self._tell("FAILED", title, started, describe(error))
            return None
        self._tell("ok", title, started, "")
        return result

    def all(self, checks: list[Check]) -> None:
        """Tries claims one after the other."""
        for check in checks:
            self.check(check.title, check.run)

    def all_at_once(self, checks: list[Check]) -> None:
        """Tries claims side by side, each in a thread of its own."""
        with ThreadPoolExecutor(max(1, len(checks)), "check") as pool:
            wait([pool.submit(self.check, check.title, check.run) for check in checks])

    def close(self) -> bool:
        """Prints the totals; whether all is well."""
        print(f"\n{time.monotonic() - self._started:.0f} s in all")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return self.failed == 0 and self.passed > 0

    def _tell(self, word: str, title: str, started: float, why: str) -> None:
        with self._lock:
            if word == "ok":
                self.passed += 1
            else:
                self.failed += 1
            print(f"{word:6} {time.monotonic() - started:6.1f} s  {title}", flush=True)
            for line in why.splitlines():
                print(f"{'':17}{line}", flush=True)


def describe(error: Exception) -> str:
    """A failed claim in its own words; anything unforeseen with its way through the code."""
    if isinstance(error, CheckFailed):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()


def expect(holds: bool, message: str) -> None:
    """Fails the check with `message` unless the condition holds."""
    if not holds:
        raise CheckFailed(message)


def expect_equal(what: str, found: object, expected: object) -> None:
    """Fails the check where two values differ."""
    expect(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def not_stopped() -> None:
    """Fails the check where the run is to end early."""
    expect(not STOPPED.is_set(), "interrupted")


def until(what: str, look: Callable[[], T | Literal[False] | None], within_s: float, pause_s: float = 0.3) -> T:
    """Looks again and again until `look` gives something true, and gives that.

    Fails the check where it does not within `within_s` seconds. A CheckFailed that `look` raises ends the wait at once.
    """
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        not_stopped()
        if time.monotonic() >= deadline:
            raise CheckFailed(f"waited {within_s:.0f} s in vain: {what} (last seen: {found!r})")
        STOPPED.wait(pause_s)
