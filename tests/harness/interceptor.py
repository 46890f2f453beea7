"""Looks at the calls that a deployed function makes of AWS, and acts on one of them. `interception.py` does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.calls import call

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
        return list(call("GET", self.url).body["seen"])

    @property
    def struck(self) -> bool:
        """Whether it has acted."""
        return bool(call("GET", self.url).body["struck"])


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
    interceptor = Interceptor(f"{url}/{call('POST', url, {**rule, **answer}).body['id']}")
    try:
        yield interceptor
    finally:
        call("DELETE", interceptor.url)
