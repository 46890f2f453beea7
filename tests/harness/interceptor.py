"""Looks at the calls that a deployed function makes of AWS, and acts on one of them. `interception.py` does it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from harness.deployment import Deployment

PATH = "/_interception"
# The name of what a function says at the end of its invocation. All other calls have names such as `PutItem TABLE`.
ANSWER = "Answer"

# Before or after a call is carried out, its process is killed or its connection is closed. Or it is not carried out: it
# is answered so, or the answer says of each entry of its batch that it was not taken, or that it was.
Act = Literal[
    "", "kill before", "kill after", "close before", "close after", "answer", "refuse entries", "lose entries"
]


@dataclass(frozen=True)
class Interceptor:
    """One rule, in force from its making to the end of `intercepted`."""

    url: str

    @property
    def seen(self) -> list[str]:
        """The names of the calls that were meant."""
        return list(ask("GET", self.url)["seen"])

    @property
    def struck(self) -> bool:
        """Whether it has acted."""
        return bool(ask("GET", self.url)["struck"])


@contextmanager
def intercepted(
    deployment: Deployment,
    function: str,
    mark: str,
    calls: str = ".*",
    act: Act = "",
    nth: int = 1,
    times: int = 1,
    *,
    of_invocation: bool = False,
    **answer: object,
) -> Iterator[Interceptor]:
    """Sees the calls of a function whose names fit the expression `calls`, and which have the text `mark` in them. With
    `of_invocation` it may be in what their invocation was given or has sent. Acts on the nth of them, and on as many
    as `times` says. The act `answer` needs `status` and `answer`."""
    name = deployment.function(function)
    rule = {"function": name, "mark": mark, "of_invocation": of_invocation, "calls": calls}
    rule |= {"act": act, "nth": nth, "times": times}
    url = f"{deployment.emulator.url}{PATH}"
    interceptor = Interceptor(f"{url}/{ask('POST', url, {**rule, **answer})['id']}")
    try:
        yield interceptor
    finally:
        ask("DELETE", interceptor.url)


def ask(method: str, url: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The emulator's answer."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return dict(json.loads(response.read()))
