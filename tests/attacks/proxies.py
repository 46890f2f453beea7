"""Callers that name themselves as a proxy would, and the socket that only its owner may open."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

from attacks.secured import NAMED_BY, PROXY, Secured
from attacks.wire import get, post, raw
from harness.report import Suite, expect, expect_equal

NAME, ROLES = NAMED_BY
VERA = (f"{NAME}: vera", f"{ROLES}: viewer")
NOBODY = 65_534


class Proxies(Suite):
    """Callers that a proxy names, and the socket."""

    def __init__(self, secured: Secured, scratch: Path) -> None:
        self.secured, self.scratch = secured, scratch

    def by_proxy(self, *headers: str, path: str = "/overview") -> int:
        """The status of a read of the proxy."""
        return raw(self.secured.port, get(path, *headers), source=PROXY).status

    def test_addresses(self) -> None:
        """X-Forwarded-For, Forwarded and the PROXY protocol make nobody a proxy."""
        expect_equal("the proxy", self.by_proxy(*VERA), 200)
        with_token = get("/overview", *VERA, *self.secured.bearer("administrator"))
        expect_equal("another address, with a token", raw(self.secured.port, with_token).status, 400)
        for header in (
            f"X-Forwarded-For: {PROXY}",
            f"X-Real-IP: {PROXY}",
            f"Forwarded: for={PROXY};by={PROXY}",
            f"Via: 1.1 {PROXY}",
        ):
            answer = raw(self.secured.port, get("/overview", *VERA, header))
            expect_equal(header, answer.status, 400)
        protocols = (
            f"PROXY TCP4 {PROXY} 127.0.0.1 1 2\r\n".encode(),
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + b"\x7f\0\0\x02" * 2 + b"\0\x01\0\x02",
        )
        for protocol in protocols:
            answer = raw(self.secured.port, protocol + get("/overview", *VERA))
            expect(answer.statuses in ([], [400]), f"{answer.statuses}")

    def test_spellings(self) -> None:
        """A header in another spelling, or in a trailer, names nobody."""
        for name in (
            NAME.replace("-", "_"),
            NAME.replace("-", "."),
            NAME + "s",
            "X--Forwarded-User",
            "HTTP_X_FORWARDED_USER",
        ):
            expect_equal(name, self.by_proxy(f"{name}: vera", f"{name.replace('User', 'Roles')}: viewer"), 401)
        head = "POST /orders HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n"
        trailer = f"{NAME}: shop\r\n{ROLES}: application\r\n\r\n"
        expect_equal("a trailer", raw(self.secured.port, (head + trailer).encode(), source=PROXY).status, 401)

    def test_beside(self) -> None:
        """A token beside a name that is none does not count."""
        token = self.secured.bearer("administrator")
        expect_equal("a token alone", self.by_proxy(*token), 200)
        for headers in ((f"{NAME}: ", VERA[1]), VERA[:1], VERA[1:], (f"{NAME}: local", VERA[1])):
            expect_equal(f"{headers}", self.by_proxy(*headers, *token), 401)
        path = f"/orders/{self.secured.order()}/erase"
        answer = raw(self.secured.port, post(path, '{"By":"x","Reason":"x"}', *VERA, *token), source=PROXY)
        expect_equal("what the proxy says counts", answer.status, 403)

    def test_modes(self) -> str:
        """The socket is 0600 in its folder, and another user cannot open it."""
        about = os.lstat(self.secured.socket)
        expect(stat.S_ISSOCK(about.st_mode), f"{about}")
        expect_equal("mode", oct(stat.S_IMODE(about.st_mode)), "0o600")
        if os.geteuid() != 0:
            return "not root: another user was not tried"
        # The folder of a suite is closed to others: only the mode of the socket may keep them out here.
        self.scratch.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as open_to_all:
            place = str(self.scratch / "all.sock")
            open_to_all.bind(place)
            open_to_all.listen()
            os.chmod(place, 0o666)
            expect_equal("a socket for all, so that the mode alone keeps them out", opened_by(NOBODY, place), 0)
        expect_equal("another user", opened_by(NOBODY, self.secured.socket), errno.EACCES)
        expect_equal("the owner", opened_by(os.geteuid(), self.secured.socket), 0)
        return ""


def opened_by(user: int, place: str) -> int:
    """What a process of this user gets: 0, or the number of the error."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os._exit(socket.socket(socket.AF_UNIX).connect_ex(place))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
