"""One remote service that speaks HTTP, as the agent calls it: this is the file to change for a service of your own.

`Service.call` makes one call and says Done, Failed, Again or Conflict; the rest is the agent's.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message as Headers
from email.utils import parsedate_to_datetime
from typing import Any

OUTPUT_BYTES_MAX = 16 * 1024


@dataclass(frozen=True)
class Done:
    """The service did it, or had done it already."""

    output: Any


@dataclass(frozen=True)
class Failed:
    """The service said no, and will say no again."""

    code: str
    message: str


@dataclass(frozen=True)
class Again:
    """It may work later, or nobody knows whether it worked: ask again with the same key, not before so many seconds."""

    problem: str
    after_s: float = 0.0
    may_run: bool = False
    """The call may still have its effect."""


@dataclass(frozen=True)
class Conflict:
    """The service is at work on an earlier call with this key, if there may be one. Else it said no."""

    no: Failed
    after_s: float = 0.0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is no answer about the order."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Service:
    """POST {base}/{operation} with the header Idempotency-Key."""

    def __init__(self, base: str, forward: str, undo: str) -> None:
        self.urls = {"Forward": f"{base.rstrip('/')}/{forward}", "Undo": f"{base.rstrip('/')}/{undo}"}
        self.opener = urllib.request.build_opener(NoRedirect)

    def call(
        self, direction: str, key: str, body: Any, timeout_s: float, path: str = ""
    ) -> Done | Failed | Again | Conflict:
        """Makes one call, to the path below the operation; may be called by many threads at the same time."""
        url = f"{self.urls[direction]}/{path}" if path else self.urls[direction]
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        try:
            with self.opener.open(request, timeout=timeout_s) as response:
                if response.status == 202:
                    return Again("the result comes later", retry_after_s(response.headers), may_run=True)
                return done(response.read(OUTPUT_BYTES_MAX + 1), direction)
        except urllib.error.HTTPError as error:
            return refused(error.code, error.headers, error.read(OUTPUT_BYTES_MAX))
        except OSError as error:
            return Again(f"no answer: {error}", may_run=True)
        except Exception as error:
            return Again(f"a broken answer: {error!r}", may_run=True)


def done(body: bytes, direction: str) -> Done | Failed | Again:
    """What a 2xx says."""
    if len(body) > OUTPUT_BYTES_MAX:
        # Nobody needs the output of an undo, so it must not make one fail that was done.
        return Done({}) if direction == "Undo" else Failed("output-too-large", "the service's output is over 16 KiB")
    try:
        return Done(json.loads(body, parse_constant=refuse) if body.strip() else {})
    except (ValueError, RecursionError):
        # A proxy with a page of its own, perhaps: nobody knows what the service did.
        return Again("the answer is no JSON", may_run=True)


def refuse(word: str) -> None:
    """NaN and Infinity: Python reads them, and nobody else."""
    raise ValueError(f"{word} is no JSON")


def refused(status: int, headers: Headers, body: bytes) -> Failed | Again | Conflict:
    """What any other status says."""
    after_s = retry_after_s(headers)
    if status in (408, 502, 504):
        return Again(f"HTTP {status}", after_s, may_run=True)  # a gateway, whose service may be at work
    if status in (401, 403, 407, 425, 429) or status < 400 or status >= 500:
        return Again(f"HTTP {status}", after_s)
    try:
        problem = json.loads(body)
        no = Failed(str(problem["code"])[:64], str(problem.get("detail", "")))
    except (ValueError, TypeError, KeyError, RecursionError):
        if status in (404, 405, 410, 421):
            return Again(f"HTTP {status}", after_s)  # a wrong URL, and no word about the order
        no = Failed(f"http-{status}", body.decode(errors="replace"))
    return Conflict(no, after_s) if status in (409, 423) else no


def retry_after_s(headers: Headers) -> float:
    """How long the service wants to be left alone: seconds, or a date by its own clock."""
    value = headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        now = parsedate_to_datetime(headers["Date"]).timestamp() if headers.get("Date") else time.time()
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError):
        return 0.0
