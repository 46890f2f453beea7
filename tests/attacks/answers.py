"""Answers that are none, and that never end, for the command line."""

from __future__ import annotations

import itertools
import resource
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from attacks.clients import ORDER, SIDE_BY_SIDE, TIMEOUT_S, UNREACHABLE, Clients
from attacks.hostile import answer
from harness.report import expect, expect_equal

MEMORY_MIB_MAX = 400


class Answers(Clients):
    """What comes in the place of an answer of the API."""

    def test_odd_answers(self) -> None:
        """What is no answer of the API ends in an error, and no panic: HTML, odd JSON, deep JSON."""
        for words in (
            ("cancel", ORDER, "--reason", "x", "--yes"),
            ("get", ORDER),
            ("approve", ORDER, "--reason", "x", "--yes"),
        ):
            expect_equal(f"{words}", self.asked(answer(b"<html>", kind="text/html"), *words).returncode, UNREACHABLE)
        bodies = (
            b"",
            b"null",
            b"[]",
            b'"x"',
            b"{}",
            b"<html>",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"a":' * 50_000,
            b"1e999",
            b'{"Orders":{}}',
        )
        for body in (
            *bodies,
            b'{"Orders":[null]}',
            b'{"OrderID":7}',
            b'{"Orders":[{"OrderID":"x"}],"NextCursor":"' + b"x" * 9_000 + b'"}',
        ):
            for words in (("get", ORDER), ("list",), ("overview",), ("alerts",), ("workflows", "a/1")):
                done = self.asked(answer(body), *words)
                expect(
                    done.returncode in (0, UNREACHABLE, 3, 1),
                    f"{body[:40]!r} {words}: {done.returncode} {done.stderr!r}",
                )

    def test_odd_heads(self) -> None:
        """Malformed heads, lengths and chunks end in an error, and no panic. With no answer in them."""
        heads = [
            *(
                b"",
                b"\0",
                b"HTTP/1.1",
                b"HTTP/9.9 200 OK\r\n\r\n",
                b"HTTP/1.1 99999 X\r\n\r\n",
                b"SSH-2.0-x\r\n",
                b"\x16\x03\x01\0\0",
            ),
            *(
                b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            ),
            b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\x1f\x8b\x08\0",
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 900_000 + b"\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000,
        ]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for head, done in zip(
                heads,
                pool.map(lambda head: self.asked([head], "cancel", ORDER, "--reason", "x", "--yes"), heads),
                strict=True,
            ):
                expect_equal(f"{head[:60]!r}: {done.stderr!r}", done.returncode, UNREACHABLE)

    def test_endless(self) -> str:
        """An endless answer ends, and costs little memory. White space, so that a parser never ends."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        began = time.monotonic()
        done = self.asked(
            itertools.chain([head], itertools.repeat(b" " * 65_536)), "cancel", ORDER, "--reason", "x", "--yes"
        )
        expect(done.returncode == UNREACHABLE, f"{done}")
        mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        # The largest of all children so far, the servers included.
        expect(mib < MEMORY_MIB_MAX, f"{mib:.0f} MiB")
        return f"{mib:.0f} MiB at most, {time.monotonic() - began:.1f} s"

    def test_slow(self) -> None:
        """A server that says nothing, or a byte now and then, is given up. It would hold up a script for good."""

        def drops() -> Iterable[bytes]:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
            while True:
                time.sleep(0.2)
                yield b" "

        with socket.create_server(("127.0.0.1", 0)) as silent:
            for url in (f"http://127.0.0.1:{silent.getsockname()[1]}",):
                began = time.monotonic()
                expect_equal("silent", self.run(url, "get", ORDER).returncode, UNREACHABLE)
                expect(time.monotonic() - began < TIMEOUT_S + 8, "it took too long")
        began = time.monotonic()
        expect_equal("drops", self.asked(drops(), "get", ORDER).returncode, UNREACHABLE)
        expect(time.monotonic() - began < TIMEOUT_S + 8, "it took too long")
