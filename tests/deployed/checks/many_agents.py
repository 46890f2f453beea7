"""A folder of forty agents, as large as a folder may be. One function serves them all, from one pair of queues."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from email.message import Message
from pathlib import Path

from harness.calls import seconds
from harness.report import expect, expect_equal, until
from harness.serve import folder
from harness.stub import Answer, Call, Stub
from workflows.run import SHIPPED, workflow
from world import ORDER_S_MAX, World

from checks.own_workflows import SUPERVISED_EVERY_S, Functions
from checks.supervision import Supervisors

# The tables of the agents, beside their URLs.
KINDS = {
    "plain": "",
    "named": 'forward = "book-{name}"\nundo = "drop-{name}"\n',
    "key": 'headers.X-Api-Key = {{ secret = "file:{secrets}/{name}" }}\n',
    "bearer": 'auth.bearer = "file:{secrets}/{name}"\n',
    "basic": 'auth.basic = {{ user = "{name}", password = "file:{secrets}/{name}" }}\n',
    "token": """[agents.{name}.auth.oauth2]
token_url = "{url}/{name}/token"
client_id = "{name}"
client_secret = "file:{secrets}/{name}"
""",
    "signed": 'signature.standard_webhooks = "file:{secrets}/{name}"\n',
    "memo": "memo = true\n",
}
AGENTS = {f"agent-{number:02}": list(KINDS)[number % len(KINDS)] for number in range(1, 41)}
# The last step of both workflows, and a step in the middle of one.
LAST, DOWN = "agent-40", "agent-20"
WORKFLOWS = {"forty": list(AGENTS), "but-one": [name for name in AGENTS if name != DOWN]}
# Steps that run side by side.
ABREAST = 5
# Of each workflow and time; those of the first time that are refused at the end.
ORDERS, COMPENSATED = 3, 3
# How long a service that is down takes for its 503, and how long its breaker waits at most.
SLOW_S = 0.5
BREAKER = 'breaker.longest_wait = "2s"\n'
# How long an order of forty steps, and as many undos, may take on a busy machine.
ENDED_S_MAX = 4 * ORDER_S_MAX
# What an order may take longer on a machine that has just become busy, beside twice the time.
SLACK_S = 5.0
FILE_BYTES_MAX, FOLDER_BYTES_MAX = 64 * 1024, 124 * 1024
BY = {"By": "ann", "Reason": "the test is over"}


class Services(Stub):
    """The forty services, each below its name."""

    def __init__(self) -> None:
        self.is_down = False
        # The calls that were answered, by path and key.
        self.answered: Counter[tuple[str, str]] = Counter()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        """Status and body of the answer to a call."""
        name, operation = call.path.split("/")[1:]
        if operation == "token":
            # With another one, its call is refused.
            given = token(name) if call.headers["Authorization"] == basic(name) else "none"
            return 200, {"access_token": given, "token_type": "Bearer"}
        if self.is_down and name == DOWN:
            time.sleep(SLOW_S)
            return 503, {"detail": "not now"}
        with self.lock:
            self.answered[(call.path, call.key)] += 1
        if not is_authorised(name, call.headers, call.body):
            detail = f"{call.path} was called in another way than {AGENTS[name]}"
            return 422, {"code": "unknown-caller", "detail": detail}
        if (name, operation) == (LAST, "do") and "Refused" in call.order:
            return 422, {"code": "refused", "detail": "as the order says"}
        return 200, {"By": name}


def secret(name: str) -> str:
    """The secret of an agent; also its key in base64."""
    return f"whsec_{hashlib.sha256(name.encode()).hexdigest()[:48]}"


def token(name: str) -> str:
    """What an agent gets for its secret."""
    return f"token-of-{name}"


def basic(name: str) -> str:
    """Name and secret of an agent as a header."""
    return f"Basic {base64.b64encode(f'{name}:{secret(name)}'.encode()).decode()}"


def is_authorised(name: str, headers: Message, body: bytes) -> bool:
    """Whether a call says what the settings of this agent ask for, and nothing of another agent's."""
    signed = f"{headers['Idempotency-Key']}.{headers.get('webhook-timestamp')}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret(name).removeprefix("whsec_")), signed, "sha256")
    expected = {
        "key": {"X-Api-Key": secret(name)},
        "bearer": {"Authorization": f"Bearer {secret(name)}"},
        "basic": {"Authorization": basic(name)},
        "token": {"Authorization": f"Bearer {token(name)}"},
        "signed": {"webhook-signature": f"v1,{base64.b64encode(digest).decode()}"},
    }
    names = ("X-Api-Key", "Authorization", "webhook-signature")
    return {one: headers[one] for one in names if one in headers} == expected.get(AGENTS[name], {})


def paths(name: str) -> tuple[str, str]:
    """Where an agent calls its service, forward and back."""
    operations = (f"book-{name}", f"drop-{name}") if AGENTS[name] == "named" else ("do", "undo")
    return f"/{name}/{operations[0]}", f"/{name}/{operations[1]}"


def folder_of(url: str, secrets: Path) -> dict[str, str]:
    """The files, filled up with comments to the last byte that a file and a folder may have."""
    settings = SHIPPED
    for name, kind in AGENTS.items():
        settings += f'\n[agents.{name}]\nurl = "{url}/{name}"\n' + (BREAKER if name == DOWN else "")
        settings += KINDS[kind].format(name=name, url=url, secrets=secrets)
    files = {"stepwarden.toml": settings + comment(FILE_BYTES_MAX - len(settings))}
    for title, names in WORKFLOWS.items():
        *others, last = names
        rows = [others[first : first + ABREAST] for first in range(0, len(others), ABREAST)] + [[last]]
        after = [[], *rows]
        steps = [(step(name), name, [step(one) for one in after[at]]) for at, row in enumerate(rows) for name in row]
        file = workflow(title, 1, steps)
        files[file["Name"]] = file["Text"]
    files[list(files)[-1]] += comment(FOLDER_BYTES_MAX - sent_bytes(files))
    return files


def comment(count: int) -> str:
    """A comment of so many bytes."""
    return "#" * count


def step(name: str) -> str:
    """The step of an agent."""
    return f"of-{name}"


def sent_bytes(files: dict[str, str]) -> int:
    """The bytes of a folder as the API counts them."""
    return sum(len('{"Name":,"Text":},' + json.dumps(name) + json.dumps(text)) for name, text in files.items())


def write(path: Path, files: dict[str, str]) -> str:
    """Makes a folder; gives its path."""
    workflows = {Path(name).stem: text for name, text in files.items() if name != "stepwarden.toml"}
    return str(folder(path, files["stepwarden.toml"], workflows))


def all_are_served(world: World) -> str:
    """Each is called once for each order and direction, in its own way. While one is down, its orders alone wait."""
    functions = Functions(world)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepwarden-forty-")))
        services = stack.enter_context(Services())
        stack.enter_context(Supervisors(world, SUPERVISED_EVERY_S))
        for name in AGENTS:
            (scratch / name).write_text(secret(name))
        is_applied(functions, write(scratch / "folder", folder_of(services.url, scratch)))
        all_at_once = posted(world, "forty", ORDERS) | posted(world, "forty", COMPENSATED, Refused=True)
        for order_id in all_at_once:
            world.reach(order_id, world.ends[order_id], ENDED_S_MAX)
        usual = posted(world, "but-one", ORDERS)
        usual_s = slowest_s(world, usual)
        services.is_down = True
        waiting = posted(world, "forty", ORDERS)
        until("its breaker alone is open", lambda: down(functions) == {DOWN: ORDERS}, ENDED_S_MAX)
        meanwhile = posted(world, "but-one", ORDERS)
        meanwhile_s = slowest_s(world, meanwhile)
        until("its orders wait still", lambda: down(functions) == {DOWN: ORDERS}, ORDER_S_MAX)
        services.is_down = False
        for order_id in waiting:
            world.reach(order_id, "Processed", ENDED_S_MAX)
        until("no service is down", lambda: not down(functions), ORDER_S_MAX)
        orders = all_at_once | usual | waiting | meanwhile
        expected = Counter(call for order_id, title in orders.items() for call in calls(world, order_id, title))
        expect_equal("calls too many", services.answered - expected, Counter())
        expect_equal("calls too few", expected - services.answered, Counter())
    words = f"{meanwhile_s:.1f} s for an order of the others while one is down, {usual_s:.1f} s before"
    expect(meanwhile_s < 2 * usual_s + SLACK_S, words)
    for title in WORKFLOWS:
        retired = world.operator.post(f"/workflows/{title}/1/retire", BY)
        expect_equal(f"{title} is retired: {retired.body}", retired.status, 200)
    return f"{len(orders)} orders, {expected.total()} calls; {words}"


def is_applied(functions: Functions, path: str) -> None:
    """The command tells each agent."""
    done = functions.command("apply", path, "--reason", "forty agents", "--yes")
    expect_equal(f"apply: {done.stdout}{done.stderr}", done.returncode, 0)
    untold = [name for name in AGENTS if f"agent {name}: new" not in done.stderr]
    expect_equal(f"agents that it does not tell: {done.stderr}", untold, [])


def posted(world: World, title: str, count: int, **members: object) -> dict[str, str]:
    """So many orders of a workflow, by id."""
    end = "Compensated" if members else "Processed"
    ids = [world.post(end, None, Workflow=title, **members) for _ in range(count)]
    world.own.update(ids)
    return dict.fromkeys(ids, title)


def slowest_s(world: World, orders: Iterable[str]) -> float:
    """How long the slowest of these orders took, each with one attempt for each step."""
    tasks = [world.reach(order_id, "Processed", ENDED_S_MAX) for order_id in orders]
    attempts = {one["Attempt"] for task in tasks for one in task["Steps"]}
    expect_equal("attempts of a step", attempts, {1})
    return max(seconds(one["FinishedAt"]) - seconds(task["SubmittedAt"]) for task in tasks for one in task["Steps"])


def down(functions: Functions) -> dict[str, int]:
    """The services that `stepwarden services` shows as failing, with the orders that wait for each."""
    done = functions.command("services", "--output", "json")
    expect_equal(f"services: {done.stderr}", done.returncode, 0)
    states = {one["Service"]: one for one in json.loads(done.stdout)["Services"]}
    expect_equal("services that it does not show", set(AGENTS) - set(states), set())
    failing = [one for one in states.values() if one["State"] != "Closed"]
    return {one["Service"]: one.get("OrdersWaiting", {"Count": 0})["Count"] for one in failing}


def calls(world: World, order_id: str, title: str) -> list[tuple[str, str]]:
    """The calls that an order needs, by path and key."""
    forward = [(paths(name)[0], f"{order_id}/{step(name)}") for name in WORKFLOWS[title]]
    back = [(paths(name)[1], f"{order_id}/{step(name)}/undo") for name in WORKFLOWS[title]]
    return forward + (back if world.ends[order_id] == "Compensated" else [])
