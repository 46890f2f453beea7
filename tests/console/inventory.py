"""An inventory service that a check can have refuse or hold its answers."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.report import until


class Inventory:
    """Reserves and releases. An order whose document has a `Tag` in `refusing` is refused its release. One with a tag
    in `holding` gets its answer only after the tag is taken out."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        self.holding: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops it."""
        self.holding.clear()
        self._server.shutdown()
        self._server.server_close()

    def _handler(inventory) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (`self` is the handler's)
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                tag = call["Order"].get("Tag", "")
                if tag in inventory.holding:
                    until(f"{tag} is let go", lambda: tag not in inventory.holding, pause_s=0.05)
                if self.path.endswith("/release") and tag in inventory.refusing:
                    self._answer(422, {"code": "stock-is-counted", "message": "no releases during stock-taking"})
                else:
                    self._answer(200, {"Reservation": f"R-{call['OrderID'][:8]}", "Shelf": "B7", "Price": 1})

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                # A caller that was kept waiting may be gone.
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
