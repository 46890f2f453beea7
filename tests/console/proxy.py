"""A proxy that puts a path before the API, as a stage of API Gateway does."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Those that belong to one connection, and those that the server here writes itself.
NOT_PASSED = {"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"}


class Proxy:
    """Passes on what is below the path; the rest is 404."""

    def __init__(self, api: str, path: str) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(api, path))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def handler(api: str, path: str) -> type[BaseHTTPRequestHandler]:
    """What passes requests on to `api`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass(None)

        def do_POST(self) -> None:
            self._pass(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _pass(self, body: bytes | None) -> None:
            if not self.path.startswith(path + "/"):
                self._send(404, [], b"")
                return
            # `Host` stays as the browser sent it: the API compares it with `Origin`.
            sent = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED}
            request = urllib.request.Request(api + self.path[len(path) :], body, sent, method=self.command)
            try:
                with urllib.request.urlopen(request) as answer:
                    self._send(answer.status, answer.headers.items(), answer.read())
            except urllib.error.HTTPError as refused:
                self._send(refused.code, refused.headers.items(), refused.read())

        def _send(self, status: int, headers: object, body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:  # type: ignore[attr-defined]
                if name.lower() not in NOT_PASSED:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if status != 304:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
