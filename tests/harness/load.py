"""Posts orders over connections that stay open. A post without an answer is repeated under its key."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

CONNECTIONS = 48
# A server that was killed is back before that.
PATIENCE_S = 60.0


def post_all(port: int, orders: list[dict[str, Any]]) -> dict[int, str]:
    """Posts orders, each with its `Number`; gives their ids by number. An order that is not accepted raises."""
    return asyncio.run(_post_all(port, orders))


async def _post_all(port: int, orders: list[dict[str, Any]]) -> dict[int, str]:
    ids: dict[int, str] = {}
    waiting = iter(orders)
    await asyncio.gather(*(_poster(port, waiting, ids) for _ in range(min(CONNECTIONS, len(orders)))))
    return ids


async def _poster(port: int, orders: Iterator[dict[str, Any]], ids: dict[int, str]) -> None:
    """One connection: posts the next order as soon as the last is accepted."""
    line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    for order in orders:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if line is None:
                    line = await asyncio.open_connection("127.0.0.1", port)
                ids[order["Number"]] = await _post(line, order)
                break
            except (OSError, asyncio.IncompleteReadError):
                line = None
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)
    if line is not None:
        line[1].close()


async def _post(line: tuple[asyncio.StreamReader, asyncio.StreamWriter], order: dict[str, Any]) -> str:
    reader, writer = line
    body = json.dumps(order)
    writer.write(
        f"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: number-{order['Number']}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    answer = json.loads(await reader.readexactly(length))
    if " 202 " not in head.split("\r\n")[0]:
        raise RuntimeError(f"order {order['Number']} was not accepted: {answer}")
    return str(answer["OrderID"])
