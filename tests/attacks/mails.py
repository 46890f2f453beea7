"""Mail servers that are not the one that they say, or that somebody on the way makes worse, for the alerts."""

from __future__ import annotations

import contextlib
import ssl
import time
from pathlib import Path
from typing import Any

from attacks.authority import Authority, Pair, write
from attacks.hostile import Hostile, answer
from attacks.lines import FORGED
from attacks.mail_server import PASSWORD, SECRETS, USER, MailServer
from attacks.services import STEP, WORKFLOW
from attacks.wire import get, raw
from harness.report import Check, Report, claim, expect, expect_equal, until
from harness.serve import Server, folder

SENDER, RECEIVER = "stepwarden@example.com", "ops@example.com"
SINK = """[alerts.{name}]
email = ["{receiver}"]
from = "{sender}"
smtp = "{url}"
login = {{ user = "{user}", password = "env:SMTP_PASSWORD" }}
"""
# The answer of a service that is misconfigured: its alert begins at once.
REFUSES = answer({}, "401 Unauthorized")
# Also what a library would tell of what it sends.
LEVELS = "warn,lettre=trace,local=trace"
LOGIN, MESSAGE = {"AUTH"}, {"MAIL", "RCPT", "DATA"}
Servers = dict[str, MailServer]


class Mails:
    """Each check has a server of its own, whose alert goes to a good mail server and to others."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.authority = Authority("of the suite")
        self.ca = scratch / "ca.crt"
        self.ca.write_bytes(self.authority.pem)
        self.good = self.context(self.authority.pair())

    def all(self, report: Report) -> None:
        """Side by side: they wait most of their time."""
        checks = (self.told, self.certificates, self.downgrades, self.logins)
        report.all_at_once([Check(claim(check), check) for check in checks])

    def context(self, pair: Pair) -> ssl.SSLContext:
        """The side of a server with this certificate."""
        files = self.scratch / "mail.crt", self.scratch / "mail.key"
        write(files, pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        return context

    def smtps(self, context: ssl.SSLContext | None = None, **answers: Any) -> MailServer:
        """One with TLS from the beginning."""
        return MailServer(context or self.good, True, **answers)

    def starttls(self, context: ssl.SSLContext | None = None, **answers: Any) -> MailServer:
        """One with STARTTLS."""
        return MailServer(context or self.good, False, **answers)

    def told(self) -> None:
        """Alerts go by e-mail over smtps and STARTTLS, with both kinds of login."""
        login = b"250-mail\r\n250 AUTH LOGIN\r\n"
        good = {
            "smtps": self.smtps(),
            "smtps-login": self.smtps(offers_encrypted=login),
            "starttls": self.starttls(),
            "starttls-login": self.starttls(offers_encrypted=login),
        }
        self.alerted(good, {}, {})

    def certificates(self) -> None:
        """A mail server of another issuer, an old certificate or another host gets no login and no alert."""
        others = {
            "issuer": Authority("of the suite").pair(),
            "old": self.authority.pair(days=-1),
            "host": self.authority.pair(host="evil.example"),
        }
        bad: Servers = {}
        for what, pair in others.items():
            context = self.context(pair)
            bad |= {f"smtps-{what}": self.smtps(context), f"starttls-{what}": self.starttls(context)}
        self.alerted({"good": self.smtps()}, bad, dict.fromkeys(bad, "certificate"))
        for name, server in bad.items():
            expect_equal(f"{name}, under TLS", server.encrypted, [])

    def downgrades(self) -> None:
        """Without STARTTLS, or with an answer put in before TLS, neither login nor alert goes in plain."""
        login = b"250-mail\r\n250 AUTH PLAIN LOGIN\r\n"
        both = b"250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n"
        bad = {
            "smtps-plain": self.smtps(has_tls=False, offers=login),
            "left-out": self.starttls(offers=login),
            "refused": self.starttls(offers=both, starttls=f"454 not now\r{FORGED}\u2028{FORGED}\r\n".encode()),
            "faked": self.starttls(offers=both, has_tls=False),
            "put-in": self.starttls(starttls=b"220 go on\r\n250 mail\r\n"),
            # All answers that a client waits for, before a server that takes nothing.
            "all-put-in": self.starttls(
                starttls=b"220 go on\r\n250-mail\r\n250 AUTH PLAIN\r\n235 hi\r\n" + 4 * b"250 mail\r\n",
                login=b"535 no\r\n",
            ),
        }
        why = {"left-out": "STARTTLS is not supported", "refused": "454"}
        self.alerted({"good": self.starttls()}, bad, dict.fromkeys(bad, "mail: ") | why)

    def logins(self) -> None:
        """A mail server that refuses the login, or offers none, gets no alert."""
        refused, none = f"535 5.7.8 unknown: {SECRETS[1]}\r\n".encode(), b"250 mail\r\n"
        bad = {
            "smtps": self.smtps(login=refused),
            "starttls": self.starttls(login=refused),
            "smtps-none": self.smtps(offers_encrypted=none),
            "starttls-none": self.starttls(offers_encrypted=none),
        }
        why = {"smtps": "535", "starttls": "535"}
        self.alerted({"good": self.smtps()}, bad, dict.fromkeys(bad, "authentication") | why)

    def alerted(self, good: Servers, bad: Servers, why: dict[str, str]) -> None:
        """Has an alert begin. The good servers get it, the bad ones get nothing, and the log says why."""
        not_told = sorted(f"alerts:{name}/{RECEIVER}" for name in bad)
        with contextlib.ExitStack() as stack:
            for one in (good | bad).values():
                stack.enter_context(one)
            server = stack.enter_context(self.serving(good | bad, stack.enter_context(Hostile(REFUSES)).url))

            def is_known() -> bool:
                expect_kept(good, bad)
                return not_told in [sorted(alert.get("NotTold", [])) for alert in server.get("/alerts")["Alerts"]]

            # So many that it is the service, and no fault of one of them.
            for _ in range(5):
                server.order(wait=False, Workflow="odd")
            until("the good ones have it", lambda: all(one.mails for one in good.values()))
            # It is written down after all of them were tried.
            until(f"{not_told} are not told", is_known)
            shown = self.shown(server)
        expect_kept(good, bad)
        for name, one in good.items():
            expect_equal(f"e-mails of {name}", len(one.mails), 1)
            sender, receiver, text = one.mails[0]
            expect_equal(f"sender of {name}", sender, f"MAIL FROM:<{SENDER}>")
            expect_equal(f"receiver of {name}", receiver, f"RCPT TO:<{RECEIVER}>")
            expect("Subject: Alert: service/evil/misconfigured" in text, text)
        log = server.log().splitlines()
        for name in bad:
            line = next((line for line in log if f"sink=alerts:{name}/" in line), "no line")
            expect("did not take AlertBegan" in line and why[name] in line, f"{name}: {line}")
        expect_equal("forged", [line for line in log if line.startswith(FORGED)], [])
        # In the words of `stepwarden alerts`.
        expect(all(sink in shown[0] for sink in not_told), shown[0])
        repeated = [line for line in (*log, *shown) if any(secret in line for secret in SECRETS)]
        expect_equal("with the password", repeated, [])

    def serving(self, servers: Servers, service: str) -> Server:
        """A server with a sink for each mail server, and a service."""
        sinks = [
            SINK.format(name=name, receiver=RECEIVER, sender=SENDER, url=one.url, user=USER)
            for name, one in servers.items()
        ]
        settings = "".join([f'default = "odd"\n[agents.evil]\nurl = "{service}"\n', *sinks])
        path = self.scratch / f"alerts-{time.monotonic_ns()}"
        folder(path, settings, {"odd-1": WORKFLOW + STEP.format(within="1h")})
        variables = {"SSL_CERT_FILE": str(self.ca), "SMTP_PASSWORD": PASSWORD, "RUST_LOG": LEVELS}
        return Server(self.program, path / "data", "--config", str(path), variables=variables)

    def shown(self, server: Server) -> list[str]:
        """What the command prints, and the answers about alerts and settings."""
        done = server.command("alerts")
        expect_equal(done.stderr, done.returncode, 0)
        return [done.stdout, *(raw(server.port, get(path)).text for path in ("/alerts", "/configuration"))]


def expect_kept(good: Servers, bad: Servers) -> None:
    """Nobody on the way saw a login or an alert, and the bad servers got no alert either."""
    for name, one in (good | bad).items():
        plain, encrypted = ({line.split(" ")[0].upper() for line in lines} for lines in (one.plain, one.encrypted))
        expect(not plain & (LOGIN | MESSAGE), f"{name}, in plain: {one.plain}")
        expect(name in good or not encrypted & MESSAGE, f"{name}: {one.encrypted}")
