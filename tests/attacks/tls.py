"""The port with TLS: what speaks something else, or something old."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

from attacks.authority import Authority, TlsServer, write
from attacks.wire import Raw, exchange, get
from harness.report import Report, Suite, expect, expect_equal


class Tls(Suite):
    """One server with a certificate, and others that are to be taken for it."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.authority = Authority("of the suite")
        self.files = scratch / "tls.crt", scratch / "tls.key"
        self.ca = scratch / "ca.crt"
        self.ca.write_bytes(self.authority.pem)

    def all(self, report: Report) -> None:
        """All of them on one server."""
        write(self.files, self.authority.pair())
        options = ("--tls-cert", str(self.files[0]), "--tls-key", str(self.files[1]))
        with TlsServer(self.program, self.scratch / "tls", *options) as self.server:
            super().all(report)

    def context(self) -> ssl.SSLContext:
        """A client that trusts the authority."""
        return ssl.create_default_context(cadata=self.authority.pem.decode())

    def ask(self, request: bytes, context: ssl.SSLContext | None = None, name: str | None = "127.0.0.1") -> Raw:
        """The answer to a request under TLS."""
        context = context or self.context()
        with (
            socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            return exchange(secure, request)

    def expect_alive(self) -> None:
        """It answers as ever."""
        expect_equal("/health", self.ask(get("/health")).status, 200)

    def test_old(self) -> None:
        """TLS 1.0 and 1.1, old ciphers and HTTP/2 are refused. By a client that would take anything."""

        def offered(change: Callable[[ssl.SSLContext], object]) -> str | None:
            context = self.context()
            context.set_ciphers("ALL:@SECLEVEL=0")
            change(context)
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain:
                try:
                    with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                        return secure.selected_alpn_protocol() or secure.version()
                except (ssl.SSLError, ConnectionError):
                    return None

        def only(version: ssl.TLSVersion) -> Callable[[ssl.SSLContext], None]:
            def change(context: ssl.SSLContext) -> None:
                context.minimum_version, context.maximum_version = version, version

            return change

        expect_equal("1.2", offered(only(ssl.TLSVersion.TLSv1_2)), "TLSv1.2")
        expect_equal("1.3", offered(only(ssl.TLSVersion.TLSv1_3)), "TLSv1.3")
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            expect_equal(version.name, offered(only(version)), None)
        for ciphers in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "aNULL", "DES-CBC3-SHA", "PSK"):
            with contextlib.suppress(ssl.SSLError):

                def weak(context: ssl.SSLContext, ciphers: str = ciphers) -> None:
                    only(ssl.TLSVersion.TLSv1_2)(context)
                    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")

                expect_equal(ciphers, offered(weak), None)
        expect_equal("HTTP/2", offered(lambda context: context.set_alpn_protocols(["h2"])), None)
        expect_equal("both", offered(lambda context: context.set_alpn_protocols(["h2", "http/1.1"])), "http/1.1")

    def test_names(self) -> None:
        """No SNI, and one of another host or an odd one, changes nothing; Host counts."""
        careless = self.context()
        careless.check_hostname = False
        for name in (None, "evil.example", "localhost", "a" * 63 + ".example", "xn--a", "127.0.0.1"):
            expect_equal(f"{name}", self.ask(get("/health"), careless, name).status, 200)
            expect_equal(
                f"{name} and another Host", self.ask(get("/health", host="evil.example"), careless, name).status, 421
            )

    def test_garbage(self) -> None:
        """Garbage in the middle of a handshake, or after it, ends that connection alone."""
        hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"
        for sent in (
            b"\0" * 1_000,
            b"\x16\x03\x01\xff\xff" + b"\xff" * 70_000,
            hello,
            hello * 100,
            b"\x15\x03\x03\0\x02\x02\x28",
            b"\x17\x03\x03\0\x01x",
            os.urandom(5_000),
        ):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(sent)
                    connection.shutdown(socket.SHUT_WR)
                expect(b"HTTP/" not in b"".join(received(connection)), f"{sent[:20]!r}")
        with (
            socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain,
            self.context().wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            secure.sendall(get("/health")[:10])
            os.write(secure.fileno(), b"GET /health HTTP/1.1\r\n\r\n")
            with contextlib.suppress(OSError):
                expect(secure.recv(10) == b"", "it is answered")
        self.expect_alive()

    def test_key(self) -> None:
        """No line of the log and no answer has the key. Also in another form of it."""
        log = self.server.log()
        expect("PRIVATE" not in log and self.files[1].read_text().splitlines()[1] not in log, log)
        for path in ("/configuration", "/tls.key", "/metrics"):
            expect("PRIVATE" not in self.ask(get(path)).text, path)


def received(connection: socket.socket) -> Iterator[bytes]:
    """What comes until the end."""
    with contextlib.suppress(OSError):
        while data := connection.recv(65_536):
            yield data
