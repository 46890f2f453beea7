"""The command line and its console, which call a server of an attacker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.hostile import Hostile, answer, problem
from attacks.texts import HARMFUL
from harness.report import Suite, expect, expect_equal

TOKEN = "sw_of-the-suite-for-nobody-but-its-own-server"
ORDER = "01a216f8-4eca-74a6-8854-23ae308eae10"
ESCAPES = "".join(HARMFUL) + "\x1b]0;title\x07\x1b[2J\x9b31m"
UNREACHABLE, NOT_ALLOWED, USAGE = 5, 6, 2
TIMEOUT_S = 2
# A command that does not end by itself.
ENDS_WITHIN_S = 90
# Most of their time they wait before they try again.
SIDE_BY_SIDE = 8


class Clients(Suite):
    """Commands, and the console that signs the calls of its page."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch

    def run(self, url: str, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a command to its end. A panic has the status 101."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.scratch),
            "NO_COLOR": "1",
            "STEPWARDEN_TOKEN": TOKEN,
            **variables,
        }
        command = [str(self.program), *words, "--api", url, "--timeout", f"{TIMEOUT_S}s"]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=ENDS_WITHIN_S, check=False)
        expect(done.returncode != 101 and b"panicked" not in done.stderr, f"{words}: {done.stderr.decode()}")
        return done

    def asked(self, parts: Iterable[bytes], *words: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a command that gets this answer."""
        with Hostile(parts) as hostile:
            return self.run(hostile.url, *(words or ("get", ORDER)))

    def test_escapes(self) -> None:
        """No control character of an answer, a problem or a header reaches the terminal."""
        texts = {"title": ESCAPES, "detail": f"a{ESCAPES}b", "field": ESCAPES}
        reason = f"503 a{chr(0x9B)}b"
        order = {
            "OrderID": ORDER,
            "Version": 1,
            "ProcessState": ESCAPES,
            "Workflow": ESCAPES,
            "Steps": [],
            "History": [],
        }
        services = {"Services": [{"Service": ESCAPES, "State": ESCAPES, "Text": ESCAPES, "ToDo": ESCAPES}]}
        cases = [
            *(
                (problem(status, **texts), ())
                for status in ("400 Bad", "401 No", "404 No", "409 No", "422 No", "500 No")
            ),
            (answer(ESCAPES.encode(), "502 Bad", kind="text/plain"), ()),
            (answer(ESCAPES.encode(), reason, kind=f"text/{chr(0x9B)}plain"), ()),
            (answer(ESCAPES.encode(), kind="text/html"), ()),
            (answer(order), ()),
            (answer({"Orders": [order]}), ("list",)),
            (answer(services), ("services",)),
            (answer(ESCAPES.encode()), ("services",)),
            (answer(ESCAPES.encode()), ("get", ORDER, "--document")),
            (problem("409 No", **texts), ("cancel", ORDER, ORDER, "--reason", "x", "--yes")),
            (
                answer({"OrderID": ESCAPES}, "202 Accepted", f"Location: /{chr(0x9B)}"),
                ("cancel", ORDER, "--reason", "x", "--yes"),
            ),
        ]
        asked = [
            (parts, [*(words or ("get", ORDER)), *output]) for parts, words in cases for output in ((), ("-o", "json"))
        ]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for (_, words), done in zip(asked, pool.map(lambda one: self.asked(one[0], *one[1]), asked), strict=True):
                shown = (done.stdout + done.stderr).decode(errors="replace")
                found = {hex(ord(c)) for c in shown if c in HARMFUL or (c < " " and c != "\n")}
                expect(not found, f"{words}: {found} in {shown[:300]!r}")

    def test_redirects(self) -> None:
        """A redirect is followed nowhere, so the token goes nowhere."""
        with Hostile(answer({})) as other:
            for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent", "300 Choices"):
                for words in (("get", ORDER), ("cancel", ORDER, "--reason", "x", "--yes")):
                    done = self.asked(
                        answer({}, status, f"Location: {other.url}/x", f"Refresh: 0;url={other.url}"), *words
                    )
                    expect(done.returncode != 0, f"{status}: {done.stdout!r}")
            expect_equal("requests", other.requests, [])

    def test_ids(self) -> None:
        """Ids of a server become no options."""
        for odd in (
            "--yes",
            "-x",
            "../../bulk",
            f"{ORDER}\n--yes",
            "$(touch x)",
            "a b",
            "; rm",
            "`x`",
            "\u202e",
            "%2e%2e/x",
            "x?y#z",
        ):
            order = {
                "OrderID": odd,
                "Version": 1,
                "ProcessState": "Error",
                "Workflow": "order",
                "Steps": [],
                "History": [],
            }
            done = self.asked(answer({"Orders": [order]}), "list", "-q")
            expect(
                odd.encode() not in done.stdout.splitlines() and b"--yes" not in done.stdout.splitlines(),
                f"{odd!r}: {done.stdout!r}",
            )
