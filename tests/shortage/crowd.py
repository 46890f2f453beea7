"""Clients that ask all the time, and what they were answered."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

# A request that is answered neither as usual nor with 503 within this time has no answer.
ANSWER_S_MAX = 20.0
PAUSE_S = 0.02
READS = ("/orders?limit=20", "/overview", "/services", "/alerts")


@dataclass
class Seen:
    """The answers of a time."""

    statuses: Counter[str] = field(default_factory=Counter)
    unanswered: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


class Crowd:
    """Some clients, each on one connection, and some that connect anew for each request."""

    def __init__(self, port: int, clients: int = 8) -> None:
        """They ask `port` once they begin."""
        self._port = port
        self._lock = threading.Lock()
        self._seen = Seen()
        self._stop = threading.Event()
        self.accepted: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(clients)]
        self._has_begun = False

    def begin(self) -> None:
        """Has them ask, if they do not yet."""
        if not self._has_begun:
            self._has_begun = True
            for thread in self._threads:
                thread.start()

    def take(self) -> Seen:
        """What was seen since the last call."""
        with self._lock:
            seen, self._seen = self._seen, Seen()
        return seen

    def stop(self) -> None:
        """Ends them."""
        self._stop.set()
        for thread in self._threads if self._has_begun else ():
            thread.join(ANSWER_S_MAX + 5)

    def _ask(self, number: int) -> None:
        connection: http.client.HTTPConnection | None = None
        last = ""
        for n in range(1_000_000):
            if self._stop.is_set():
                return
            # Half of them connect anew each time, as curl does.
            if connection is None or number % 2 == 0:
                if connection is not None:
                    connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_S_MAX)
            method, path, body = "GET", READS[n % len(READS)], None
            if n % 3 == 0:
                method, path, body = "POST", "/orders", json.dumps({"Item": "mug", "N": f"{number}-{n}"})
            elif n % 3 == 1 and last:
                path = f"/orders/{last}"
            began = time.monotonic()
            try:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                status, text = answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._note(f"{method} {path}: {error!r}", began)
                connection.close()
                connection = None
                time.sleep(PAUSE_S)
                continue
            if method == "POST" and status in (200, 202):
                last = json.loads(text)["OrderID"]
                with self._lock:
                    self.accepted.append(last)
            is_answer = status == 503 or status < 500
            self._note(status if is_answer else f"{method} {path}: {status} {text.decode()}", began)
            time.sleep(PAUSE_S)

    def _note(self, status: int | str, began: float) -> None:
        with self._lock:
            if isinstance(status, int):
                self._seen.statuses[str(status)] += 1
            else:
                self._seen.unanswered.append(status)
            self._seen.slowest_s = max(self._seen.slowest_s, time.monotonic() - began)
