"""A mail server of a test, and what somebody on the way makes of its answers."""

from __future__ import annotations

import base64
import socket
import ssl
from dataclasses import dataclass, field

from attacks.listener import Listener

USER, PASSWORD = "stepwarden", "of-the-mail-server-and-of-no-log-7c1e"
TIMEOUT_S = 60


def encoded(text: str) -> str:
    """The form of a login's words."""
    return base64.b64encode(text.encode()).decode()


# The words of both kinds of login, PLAIN and LOGIN.
LOGINS = [[encoded(f"\0{USER}\0{PASSWORD}")], [encoded(USER), encoded(PASSWORD)]]
# The password in each of its forms.
SECRETS = [PASSWORD, LOGINS[0][0], LOGINS[1][1]]


@dataclass
class MailServer(Listener):
    """Takes e-mails after a login under TLS, and keeps all lines that it got."""

    context: ssl.SSLContext
    # TLS from the beginning; otherwise after STARTTLS.
    is_smtps: bool
    # Without it all goes on in plain, whatever was asked for.
    has_tls: bool = True
    # Its answers to EHLO in plain, to STARTTLS, to EHLO under TLS, and to the right login.
    offers: bytes = b"250-mail\r\n250 STARTTLS\r\n"
    starttls: bytes = b"220 go on\r\n"
    offers_encrypted: bytes = b"250-mail\r\n250 AUTH PLAIN LOGIN\r\n"
    login: bytes = b"235 welcome\r\n"
    plain: list[str] = field(default_factory=list)
    encrypted: list[str] = field(default_factory=list)
    # Sender, receiver and text.
    mails: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @property
    def url(self) -> str:
        """Its address. 0.0.0.0 leads to this machine too, but is no loopback address, to which `smtp://` is plain."""
        return f"{'smtps://localhost' if self.is_smtps else 'smtp://0.0.0.0'}:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        greeting = b"220 mail\r\n"
        if not (self.is_smtps and self.has_tls):
            self._answer(connection, greeting, self.plain, self.offers)
            greeting = b""
        if self.has_tls:
            with self.context.wrap_socket(connection, server_side=True) as secure:
                self._answer(secure, greeting, self.encrypted, self.offers_encrypted)
        # The beginning of a handshake is no line.
        self.plain.append(connection.recv(65_536).decode("latin-1"))
        self._answer(connection, b"250 mail\r\n", self.plain, self.offers)

    def _answer(self, connection: socket.socket, greeting: bytes, kept: list[str], offers: bytes) -> None:
        """Answers each line until TLS has to begin."""
        connection.sendall(greeting)
        lines = connection.makefile("r", encoding="latin-1", newline="\r\n")

        def next_line() -> str:
            line = lines.readline()
            if not line:
                raise ConnectionError
            kept.append(line.removesuffix("\r\n"))
            return kept[-1]

        sender = receiver = ""
        is_known = False
        while True:
            line = next_line()
            verb = line.partition(" ")[0].upper()
            answer = b"250 mail\r\n"
            if verb == "EHLO":
                answer = offers
            elif verb == "STARTTLS":
                answer = self.starttls
            elif verb == "AUTH":
                words = line.split(" ")[2:]
                # Only LOGIN asks for each word.
                for asked in () if words else ("Username:", "Password:"):
                    connection.sendall(f"334 {encoded(asked)}\r\n".encode())
                    words.append(next_line())
                answer = self.login if words in LOGINS else b"535 unknown\r\n"
                is_known = answer.startswith(b"235")
            elif verb == "MAIL":
                sender = line
            elif verb == "RCPT":
                receiver = line
            elif verb == "DATA":
                connection.sendall(b"354 go on\r\n")
                text = "\n".join(iter(next_line, "."))
                if is_known and kept is self.encrypted:
                    self.mails.append((sender, receiver, text))
            connection.sendall(answer)
            if verb == "STARTTLS" and answer.startswith(b"220"):
                return
