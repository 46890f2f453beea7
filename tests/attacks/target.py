"""What is attacked: a server of this machine, or a function of AWS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from attacks.wire import Raw, raw
from harness.serve import Server


class Target(Protocol):
    """Answers requests, also those that no client library sends."""

    # Whether an escape in a path stands for its character.
    decodes: bool

    def ask(self, request: bytes) -> Raw:
        """The answer to a request in its bytes."""

    def order(self, wait: bool = True, key: str | None = None, **document: object) -> dict[str, Any]:
        """Posts an order, and waits until it is settled or, without `wait`, only until it is stored."""

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

    def get(self, path: str) -> Any:
        """GET of a JSON document. Any other status than 2xx fails the check."""


class Served:
    """A server of this machine."""

    decodes = False

    def __init__(self, server: Server) -> None:
        self.server = server
        self.order, self.seen, self.get = server.order, server.seen, server.get

    def ask(self, request: bytes) -> Raw:
        """Sends the bytes, and reads until the server closes."""
        return raw(self.server.port, request, within_s=30)
