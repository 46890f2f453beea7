#!/usr/bin/env python3
"""Plays the four services of this example, to try it. It shows each call. The warehouses are out of lamps."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The ports of stepwarden.toml.
PORTS = (9301, 9302, 9303, 9304)


class Service(BaseHTTPRequestHandler):
    """Keeps nothing: the answer to a call is always the same, so a repeated call does no harm."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        print(self.command, self.path, body, flush=True)
        if self.path.startswith("/reserve") and json.loads(body)["sku"] == "lamp":
            self.answer(422, {"code": "out-of-stock", "message": "no lamps are left"})
        else:
            self.answer(200, {"payment": "P-1", "shelf": "A-7", "parcel": "T-1"})

    def answer(self, status: int, members: dict[str, str]) -> None:
        body = json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    # By default five calls may wait for their connection, and others are reset.
    request_queue_size = 128


for port in PORTS:
    threading.Thread(target=Server(("127.0.0.1", port), Service).serve_forever, daemon=True).start()
print("ready; Ctrl-C ends it", flush=True)
try:
    threading.Event().wait()
except KeyboardInterrupt:
    pass
