"""Servers that are not the one that they say, for the command line."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from attacks.authority import Authority, Pair, TlsServer, write
from attacks.clients import NOT_ALLOWED, ORDER, TOKEN, UNREACHABLE, Clients
from attacks.hostile import Hostile, answer
from harness.report import Suite, expect, expect_equal


class Impostors(Suite):
    """Somebody between a command and its server."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.authority = Authority("of the suite")
        self.commands = Clients(program, scratch)
        self.files = scratch / "impostor.crt", scratch / "impostor.key"
        self.ca = scratch / "impostors-ca.crt"
        self.ca.write_bytes(self.authority.pem)

    @contextlib.contextmanager
    def impostor(self, pair: Pair) -> Iterator[str]:
        """A server with another certificate: its address."""
        server = TlsServer(
            self.program,
            self.scratch / f"impostor-{time.monotonic_ns()}",
            "--tls-cert",
            str(self.files[0]),
            "--tls-key",
            str(self.files[1]),
        )
        write(self.files, pair)
        with server:
            yield server.url

    def test_impostors(self) -> None:
        """A command refuses another issuer, an old certificate or another host, and sends no token."""
        for what, pair in {
            "another issuer": Authority("of the suite").pair(),
            "an old one": self.authority.pair(days=-1),
            "another host": self.authority.pair(host="evil.example"),
        }.items():
            with self.impostor(pair) as url:
                done = self.commands.run(url, "get", ORDER, "--ca", str(self.ca))
                expect(done.returncode == UNREACHABLE and b"certificate" in done.stderr.lower(), f"{what}: {done}")
        with self.impostor(self.authority.pair()) as url:
            done = self.commands.run(url, "list", "--ca", str(self.ca))
            expect(done.returncode in (0, NOT_ALLOWED), f"the real one: {done}")
            done = self.commands.run(url, "list")
            expect_equal("without --ca", done.returncode, UNREACHABLE)

    def test_fallback(self) -> None:
        """A command does not fall back to plain HTTP, nor does a certificate of the system's count beside --ca."""
        with Hostile(answer({})) as plain:
            done = self.commands.run(plain.url.replace("http:", "https:"), "get", ORDER, "--ca", str(self.ca))
            expect_equal("its status", done.returncode, UNREACHABLE)
            expect(all(TOKEN not in request for request in plain.requests), f"{plain.requests}")
            for content in (b"", b"garbage", self.files[1].read_bytes()):
                self.ca.write_bytes(content)
                done = self.commands.run(plain.url.replace("http:", "https:"), "get", ORDER, "--ca", str(self.ca))
                expect(done.returncode not in (0, 101), f"{content[:20]!r}: {done}")
