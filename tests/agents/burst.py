"""The kit's service under as many calls as all scenes make together."""

from __future__ import annotations

import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from harness import tools
from harness.report import expect

CONTRACTS = tools.ROOT / "infra" / "contracts"
sys.path.insert(0, str(CONTRACTS))

from kit.service import Service  # noqa: E402

CALLS = 64
ROUNDS = 10


def check() -> str:
    """Each call is answered: a connection that is reset would count against the agent under test."""
    service = Service(0)
    url = f"http://127.0.0.1:{service.port}/forward"
    together = threading.Barrier(CALLS)

    def call(_: int) -> str:
        request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"}, method="POST")
        together.wait()
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return "" if answer.status == 200 else f"HTTP {answer.status}"
        except OSError as error:
            return str(error)

    try:
        with ThreadPoolExecutor(max_workers=CALLS) as pool:
            problems = [problem for problem in pool.map(call, range(CALLS * ROUNDS)) if problem]
    finally:
        service.close()
    expect(not problems, f"{len(problems)} of {CALLS * ROUNDS} calls had no answer: {', '.join(sorted(set(problems)))}")
    return f"{CALLS * ROUNDS} calls, {CALLS} at a time"
