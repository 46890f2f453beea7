"""The place between the functions and AWS, in the emulator's own process: a test is told each call of a function, and
has one of them fail or its process killed. `interceptor.py` is the side of the test.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from harness.interceptor import ANSWER, PATH, Act

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

LOCK = threading.Lock()
# The digits of a key that are the port of a process.
PORT_DIGITS = 6


@dataclass
class Rule:
    """What a test asked for, and what came of it."""

    function: str
    # In the calls that are meant, or in what their invocation was given or has sent.
    mark: str
    of_invocation: bool
    # The whole name of a call, as a regular expression.
    calls: str
    nth: int
    act: Act
    times: int
    status: int = 0
    answer: dict[str, Any] | None = None
    seen: list[str] = field(default_factory=list)
    struck: int = 0

    def is_of(self, worker: Any, name: str, body: str) -> bool:
        """Whether a call is meant."""
        if worker.func_name != self.function or not re.fullmatch(self.calls, name):
            return False
        texts = [worker.event, *worker.sent] if self.of_invocation else worker.sent if name == ANSWER else [body]
        return any(self.mark in text for text in texts)


RULES: dict[int, Rule] = {}


def struck(worker: Any, name: str, body: str) -> Rule | None:
    """Every rule sees the call of a process. Gives the one that acts on it."""
    with LOCK:
        worker.sent.append(body)
        acting = None
        for rule in RULES.values():
            if rule.is_of(worker, name, body):
                rule.seen.append(name)
                if rule.act and acting is None and rule.struck < rule.times and len(rule.seen) >= rule.nth:
                    rule.struck, acting = rule.struck + 1, rule
        return acting


def install() -> None:
    """Each process of a function gets a key of its own, and every request passes here."""
    from ministack import app as gateway
    from ministack.core.lambda_runtime import ProvidedWorker
    from ministack.services import lambda_svc, sts

    environment_as_it_was, served_as_it_was = lambda_svc._provided_worker_env, gateway.app
    invoked_as_it_was, answered_as_it_was = ProvidedWorker.invoke, ProvidedWorker._record_result

    def environment(config: dict, code: str, port: int) -> dict:
        made = environment_as_it_was(config, code, port)
        key = made["AWS_ACCESS_KEY_ID"]
        session = sts._sessions.get(key)
        if session is None:
            return made
        own = f"{key[:-PORT_DIGITS]}{port:0{PORT_DIGITS}}"
        sts.register_session(own, dict(session))
        return {**made, "AWS_ACCESS_KEY_ID": own}

    def invoked(worker: Any, event: dict, *arguments: object, **more: object) -> dict:
        worker.event, worker.sent = json.dumps(event), []
        return invoked_as_it_was(worker, event, *arguments, **more)

    def answered(worker: Any, *arguments: Any) -> bool:
        if RULES and struck(worker, ANSWER, ""):
            worker._proc.kill()
            return False
        return bool(answered_as_it_was(worker, *arguments))

    async def served(scope: dict, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PATH):
            await administer(scope, receive, send)
            return
        headers = dict(scope["headers"]) if RULES and scope["type"] == "http" else {}
        operation = headers.get(b"x-amz-target", b"").decode().rpartition(".")[2]
        worker = caller(headers.get(b"authorization", b"").decode()) if operation else None
        if worker is None:
            await served_as_it_was(scope, receive, send)
            return
        body = await whole(receive)
        rule = struck(worker, f"{operation} {resource(body)}", body.decode())
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> dict[str, Any]:
            return given.pop() if given else await receive()

        if rule is None:
            await served_as_it_was(scope, again, send)
        elif rule.act == "answer":
            await respond(send, rule.status, rule.answer)
        elif rule.act.endswith("entries"):
            await respond(send, 200, entries(body, are_taken=rule.act == "lose entries"))
        else:
            if rule.act.endswith("after"):
                await served_as_it_was(scope, again, nowhere)
            if rule.act.startswith("kill"):
                worker._proc.kill()
            hang_up(send)

    lambda_svc._provided_worker_env, gateway.app = environment, served
    ProvidedWorker.invoke, ProvidedWorker._record_result = invoked, answered


def caller(authorization: str) -> Any:
    """The process that signed a request; nothing where that is no function."""
    from ministack.core import lambda_runtime

    key = re.search(rf"Credential=ASIA\w+?(\d{{{PORT_DIGITS}}})/", authorization)
    if key is None:
        return None
    with lambda_runtime._lock:
        workers = [worker for pool in lambda_runtime._workers.values() for worker in pool]
    ports = {server.server_address[1]: worker for worker in workers if (server := getattr(worker, "_server", None))}
    return ports.get(int(key[1]))


def resource(body: bytes) -> str:
    """The table or queue that a request names."""
    asked = json.loads(body or b"{}")
    return str(asked.get("TableName") or asked.get("QueueUrl", "").rpartition("/")[2])


def entries(body: bytes, *, are_taken: bool) -> dict[str, list[dict[str, object]]]:
    """What SQS answers to a batch."""
    ids = [entry["Id"] for entry in json.loads(body)["Entries"]]
    taken = [{"Id": one, "MessageId": one, "MD5OfMessageBody": ""} for one in ids]
    refused: list[dict[str, object]] = [{"Id": one, "Code": "InternalError", "SenderFault": False} for one in ids]
    return {"Successful": taken, "Failed": []} if are_taken else {"Successful": [], "Failed": refused}


async def whole(receive: Receive) -> bytes:
    """The body of a request."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def respond(send: Send, status: int, answer: object) -> None:
    """Answers in JSON."""
    headers = [(b"content-type", b"application/x-amz-json-1.0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


async def nowhere(_: dict[str, Any]) -> None:
    """An answer that is lost."""


def hang_up(send: Any) -> None:
    """Closes the connection of a request. `send` is a method of its stream, which leads to its server."""
    stream = send.__self__
    protocol = stream.send.__self__
    protocol.send.__self__.writer.transport.abort()


async def administer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """POST makes a rule, GET tells of it, DELETE ends it."""
    body = await whole(receive)
    if scope["method"] == "POST":
        number = id(rule := Rule(**json.loads(body)))
    else:
        number = int(scope["path"].rpartition("/")[2])
        rule = RULES[number]
    with LOCK:
        if scope["method"] == "DELETE":
            del RULES[number]
        else:
            RULES[number] = rule
    await respond(send, 200, {"id": number, "seen": rule.seen, "struck": rule.struck})
