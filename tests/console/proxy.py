"""A proxy that puts a path before the API, as a stage of API Gateway does."""

from __future__ import annotations

import urllib.error
import urllib.request

from harness.stub import Answer, Call, Stub

# Those that belong to one connection, and those that the server here writes itself.
NOT_PASSED = {"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"}


class Proxy(Stub):
    """Passes on what is below the path; the rest is 404."""

    def __init__(self, api: str, path: str) -> None:
        self.api, self.path = api, path
        super().__init__()

    @property
    def page(self) -> str:
        """Where the console is."""
        return self.url + self.path

    def answer(self, call: Call) -> Answer:
        """That of the API."""
        if not call.path.startswith(f"{self.path}/"):
            return 404, b""
        # `Host` stays as the browser sent it: the API compares it with `Origin`.
        sent = {name: value for name, value in call.headers.items() if name.lower() not in NOT_PASSED}
        body = call.body if call.method == "POST" else None
        request = urllib.request.Request(self.api + call.path[len(self.path) :], body, sent, method=call.method)
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            headers = {name: value for name, value in answer.headers.items() if name.lower() not in NOT_PASSED}
            return answer.status, answer.read(), headers
