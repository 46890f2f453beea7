"""The report of a suite: a line for each check with its time and result, totals at the end."""

from __future__ import annotations

import functools
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal, TypeVar

from harness.tools import ToolError

T = TypeVar("T")

# Set when the run ends early: every wait fails at once.
STOPPED = threading.Event()


class CheckFailed(Exception):
    """A check did not hold; the text names the expected and the found value."""


@dataclass(frozen=True)
class Check:
    """A claim and the function that tries it. It returns if the claim holds, and raises if it does not."""

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
        """Tries one claim. Gives the result of `work`, or nothing if it failed. A text as result is printed as well."""
        started = time.monotonic()
        try:
            result = work()
        except Exception as error:
            self._print("FAILED", title, started, describe(error))
            return None
        self._print("ok", title, started, result if isinstance(result, str) else "")
        return result

    def all(self, checks: list[Check]) -> None:
        """Tries claims one after the other."""
        for check in checks:
            self.check(check.title, check.run)

    def all_at_once(self, checks: list[Check], threads: int = 64) -> None:
        """Tries claims side by side, `threads` at a time."""
        with ThreadPoolExecutor(threads, "check") as pool:
            wait([pool.submit(self.check, check.title, check.run) for check in checks])

    def close(self) -> int:
        """Prints the totals. Gives the exit status: 0 if every check passed and there was one, else 1."""
        print(f"\n{time.monotonic() - self._started:.0f} s in all")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 0 if self.failed == 0 and self.passed > 0 else 1

    def _print(self, word: str, title: str, started: float, detail: str) -> None:
        with self._lock:
            if word == "ok":
                self.passed += 1
            else:
                self.failed += 1
            print(f"{word:6} {time.monotonic() - started:6.1f} s  {title}", flush=True)
            for line in detail.splitlines():
                print(f"{'':17}{line}", flush=True)


class Suite:
    """Claims that are tried one after the other: the methods whose names begin with `test_`. The first sentence of the
    text of each is its claim."""

    def all(self, report: Report) -> None:
        """Tries all of this class, in their order."""
        for name, method in vars(type(self)).items():
            if name.startswith("test_"):
                report.check(claim(method), functools.partial(method, self))


def claim(check: Callable[..., object]) -> str:
    """The first sentence of the text of a check."""
    return " ".join((check.__doc__ or check.__name__).split()).split(". ")[0].removesuffix(".")


def describe(error: Exception) -> str:
    """The text of a failed check; an unexpected error with its traceback."""
    if isinstance(error, (CheckFailed, ToolError)):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()


def expect(holds: bool, message: str) -> None:
    """Fails the check with `message` unless the condition holds."""
    if not holds:
        raise CheckFailed(message)


def expect_equal(what: str, found: object, expected: object) -> None:
    """Fails the check if two values differ."""
    expect(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def not_stopped() -> None:
    """Fails the check if the run ends early."""
    expect(not STOPPED.is_set(), "interrupted")


def until(
    what: str, look: Callable[[], T | Literal[False] | None], within_s: float = 60.0, pause_s: float = 0.3
) -> T:
    """Looks again and again until `look` gives something true, and gives that. The pauses grow up to `pause_s`.

    Fails the check after `within_s` seconds. A CheckFailed that `look` raises ends the wait at once.
    """
    deadline = time.monotonic() + within_s
    pause = min(pause_s, 0.05)
    while True:
        found = look()
        if found:
            return found
        not_stopped()
        if time.monotonic() >= deadline:
            raise CheckFailed(f"waited {within_s:.0f} s in vain: {what} (last seen: {found!r})")
        STOPPED.wait(pause)
        pause = min(pause_s, 2 * pause)
