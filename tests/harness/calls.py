"""Calls over HTTP, whatever their status, with decoded answers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

ANSWER_S_MAX = 180.0


@dataclass(frozen=True)
class Answer:
    """The answer to a call. A body that is no JSON is a text, and an empty one is nothing."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def seconds(text: str) -> float:
    """The epoch seconds of a time of the API."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def encoded(body: object) -> bytes | None:
    """The bytes of a body: a JSON document, or bytes as they are."""
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def call(
    method: str, url: str, body: object = None, headers: dict[str, str] | None = None, within_s: float = ANSWER_S_MAX
) -> Answer:
    """One call. Raises OSError if there is no answer."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, encoded(body), sent, method=method)
    try:
        answer = urllib.request.urlopen(request, timeout=within_s)
    except urllib.error.HTTPError as refused:
        answer = refused
    with answer:
        text = answer.read().decode(errors="replace")
        try:
            decoded = json.loads(text) if text else None
        except ValueError:
            decoded = text
        return Answer(answer.status, decoded, {name.lower(): value for name, value in answer.headers.items()})
