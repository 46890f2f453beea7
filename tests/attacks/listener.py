"""A server of a test that takes connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TypeVar

Own = TypeVar("Own", bound="Listener")


class Listener:
    """Serves each connection in a thread of its own. Leaving its `with` stops it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self: Own) -> Own:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A close alone does not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._taken, args=(connection,), daemon=True).start()

    def _taken(self, connection: socket.socket) -> None:
        # A handshake that the client gives up is an OSError too.
        with connection, contextlib.suppress(OSError):
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError
