"""Callers that name themselves as a proxy would, and the socket that only its owner may open."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

from attacks.secured import NAMED_BY, PROXY, Secured
from attacks.wire import get, post, raw, raw_by_socket
from harness.report import Report, expect, expect_equal
from harness.serve import Server

NAME, ROLES = NAMED_BY
VERA = (f"{NAME}: vera", f"{ROLES}: viewer")
NOBODY = 65_534


class Proxies:
    """Callers that a proxy names, and the socket."""

    def __init__(self, secured: Secured, scratch: Path) -> None:
        self.secured, self.scratch = secured, scratch

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("who is no proxy and names a caller gets 400, with a good token too", self.strangers)
        report.check("X-Forwarded-For, Forwarded and the PROXY protocol make nobody a proxy", self.addresses)
        report.check("a header in another spelling, or in a trailer, names nobody", self.spellings)
        report.check("a caller whom the proxy names twice, without a role or with lists is nobody: 401", self.doubled)
        report.check("a name with brackets, blanks, bytes above 127 or that of nobody is nobody: 401", self.names)
        report.check("a token beside a name that is none does not count", self.beside)
        report.check("the socket is 0600 in its folder, and another user cannot open it", self.modes)
        report.check(
            "a peer of the socket without a name needs a token, and a bad Host is refused there too", self.peers
        )
        report.check("no link, no file and no other server's socket is replaced by a server's own", self.places)

    def by_proxy(self, *headers: str, path: str = "/overview") -> int:
        """The status of a read of the proxy."""
        return raw(self.secured.port, get(path, *headers), source=PROXY).status

    def strangers(self) -> None:
        """The address alone makes a proxy."""
        expect_equal("the proxy", self.by_proxy(*VERA), 200)
        token = self.secured.bearer("administrator")
        for source in ("127.0.0.1", "127.0.0.3"):
            for headers in (
                VERA,
                VERA[:1],
                VERA[1:],
                (f"{NAME}: ",),
                (NAME.lower() + ": x",),
                (*VERA, *token),
                (*token, *VERA),
            ):
                for request in (get("/overview", *headers), post("/orders", "{}", *headers)):
                    expect_equal(f"{source} {headers}", raw(self.secured.port, request, source=source).status, 400)

    def addresses(self) -> None:
        """Anybody can write them."""
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

    def spellings(self) -> None:
        """Servers that run programs take them for the same."""
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

    def doubled(self) -> None:
        """A client's header that the proxy did not remove stands beside its own."""
        for headers in (
            (f"{NAME}: eve", *VERA),
            (*VERA, f"{NAME}: eve"),
            (*VERA, f"{ROLES}: administrator"),
            (*VERA, f"{ROLES}: "),
            (f"{NAME}: eve, vera", VERA[1]),
            VERA[:1],
            VERA[1:],
            (VERA[0], f"{ROLES}: "),
            (VERA[0], f"{ROLES}: Viewer"),
            (VERA[0], f"{ROLES}: viewer administrator"),
            (VERA[0], f"{ROLES}: viewer;administrator"),
            (VERA[0], f"{ROLES}: *"),
            (VERA[0], f"{ROLES}: viewer\xff"),
            (f"{NAME}: ", VERA[1]),
        ):
            expect_equal(f"{headers}", self.by_proxy(*headers), 401)

    def names(self) -> None:
        """The name stands in brackets beside what people type, and owns orders."""
        for name in (
            "local",
            "anonymous",
            "a [root]",
            "a]",
            "[",
            "a b",
            "a\tb",
            "\xe9va",
            "a" * 129,
            "vera\xa0",
            "\x80",
        ):
            expect_equal(name, self.by_proxy(f"{NAME}: {name}", VERA[1]), 401)

    def beside(self) -> None:
        """Else a client whom the proxy refused could still come in."""
        token = self.secured.bearer("administrator")
        expect_equal("a token alone", self.by_proxy(*token), 200)
        for headers in ((f"{NAME}: ", VERA[1]), VERA[:1], VERA[1:], (f"{NAME}: local", VERA[1])):
            expect_equal(f"{headers}", self.by_proxy(*headers, *token), 401)
        path = f"/orders/{self.secured.order()}/erase"
        answer = raw(self.secured.port, post(path, '{"By":"x","Reason":"x"}', *VERA, *token), source=PROXY)
        expect_equal("what the proxy says counts", answer.status, 403)

    def modes(self) -> str:
        """It is opened by the user of the proxy, who is that of the server."""
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

    def peers(self) -> None:
        """All that the socket saves is TLS."""

        def status(*headers: str, host: str = "localhost") -> int:
            return raw_by_socket(self.secured.socket, get("/overview", *headers, host=host)).status

        expect_equal("named by the proxy", status(*VERA), 200)
        expect_equal("without a name", status(), 401)
        expect_equal("with a token", status(*self.secured.bearer("viewer")), 200)
        expect_equal("of another name", status(*VERA, host="evil.example"), 421)
        expect_equal("a page of another site", status(*VERA, "Sec-Fetch-Site: cross-site"), 403)

    def places(self) -> None:
        """The server runs as somebody who may overwrite them."""
        folder = self.scratch / "places"
        folder.mkdir()
        target = folder / "target"
        target.write_text("precious")
        link, file, taken = folder / "link.sock", folder / "file.sock", folder / "taken.sock"
        link.symlink_to(target)
        file.write_text("precious")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(taken))
            other.listen()
            for place in (link, file, taken, folder, folder / "missing" / "api.sock"):
                done = self.secured.run("serve", "--data", str(folder / "data"), "--no-port", "--socket", str(place))
                expect(done.returncode not in (0, 101), f"{place}: {done.returncode}")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(taken))
        expect_equal(
            "the files", (target.read_text(), file.read_text(), link.is_symlink()), ("precious", "precious", True)
        )
        left = folder / "left.sock"
        with Server(self.secured.program, folder / "data", "--socket", str(left)) as server:
            server.kill()
            expect_equal("after a kill", raw_by_socket(str(left), get("/health")).status, 200)
            expect_equal("mode", oct(stat.S_IMODE(os.lstat(left).st_mode)), "0o600")
        expect(not left.exists(), "it stays")


def opened_by(user: int, place: str) -> int:
    """What a process of this user gets: 0, or the number of the error."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os._exit(socket.socket(socket.AF_UNIX).connect_ex(place))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
