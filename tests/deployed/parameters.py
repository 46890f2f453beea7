"""Eight deployments with other parameters than the default ones, and an order through each."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attacks.issuer import AUDIENCE, Issuer
from checks import supervision
from harness.api import ApiClient, caller
from harness.calls import Answer
from harness.deployment import Deployment, client, deploy
from harness.emulator import Emulator
from harness.process import Process, free_port
from harness.report import Report, expect, expect_equal, until
from roles import ROLES, WORDS, table, ways
from takeover import Takeover
from world import SECRET, document, patiently

ORDER_S_MAX = 60.0
# A member that is worth compressing.
LONG = "ring twice " * 2_000
# Of a deployment whose scopes are no roles: of applications, and of operators.
TWO_SCOPES = ("shop/orders", "shop/operate")


@dataclass(frozen=True)
class Bearer:
    """A caller with a token."""

    deployment: Deployment
    token: str

    def get(self, path: str) -> Answer:
        """GET."""
        return ApiClient(self.deployment.api_url, None).get(path, {"Authorization": f"Bearer {self.token}"})

    def post(self, path: str, body: object) -> Answer:
        """POST of a JSON document."""
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": str(uuid.uuid4())}
        return ApiClient(self.deployment.api_url, None).post(path, body, headers)


@dataclass(frozen=True)
class Around:
    """What stands around the deployments."""

    emulator: Emulator
    issuer: Issuer
    # The base URL of services of one's own.
    services: str
    program: Path
    # The ARNs of keys.
    keys: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Set:
    """Parameters, and what is tried with them beside an order."""

    title: str
    parameters: Callable[[Around], dict[str, str]]
    tries: Callable[[Around, Deployment], object]
    # What is tried after the order.
    more: Sequence[tuple[str, Callable[[Around, Deployment], object]]] = ()


def are_tried(report: Report, folder: Path, program: Path, words: str) -> None:
    """Each set with these words in its title, on an emulator of its own: one leaves nothing behind for another."""
    chosen = [one for one in SETS if words in one.title]
    expect(bool(chosen), f"a set has {words!r} in its title")
    with services(folder, program) as url, Issuer() as issuer:
        for number, one in enumerate(chosen):
            report.section(one.title)
            with Emulator(folder / f"set-{number}") as emulator:
                around = Around(emulator, issuer, url, program)
                deployment = report.check("sam deploy", functools.partial(deploy, emulator, None, one.parameters(around)))
                if deployment is not None:
                    report.check("an order goes through it", functools.partial(one.tries, around, deployment))
                    for title, tries in one.more:
                        report.check(title, functools.partial(tries, around, deployment))


@contextmanager
def services(folder: Path, program: Path) -> Iterator[str]:
    """Services of one's own: stand-ins in a process beside the stack."""
    port = free_port()
    process = Process([str(program), "stand-ins", "--port", str(port)], folder / "services.log", env={})
    process.start(lambda: str(port) in process.text())
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()


# ---- what is tried


def ends(poster: Any, reader: Any, **members: object) -> dict[str, Any]:
    """An order of this caller is Processed. Gives its task, as the other one reads it."""
    answer = patiently(lambda: poster.post("/orders", document(**members)))
    expect_equal("POST /orders", (answer.status, answer.body.get("type")), (202, None))
    path = f"/orders/{answer.body['OrderID']}"

    def look() -> dict[str, Any] | None:
        found = reader.get(path)
        return dict(found.body) if found.status == 200 and found.body["ProcessState"] == "Processed" else None

    return until("the order is Processed", look, ORDER_S_MAX)


def signed(_: Around, deployment: Deployment) -> None:
    """With signatures."""
    application = caller(deployment, "application", "ApplicationPolicyArn")
    ends(application, application)


def by_roles(around: Around, deployment: Deployment) -> None:
    """Scopes are roles: an application sees its own orders alone. A forged token and one without a role are refused."""

    def holder(name: str, role: str) -> Bearer:
        return Bearer(deployment, around.issuer.token(sub=name, scope=f"stepwarden/{role}", roles=None))

    shop = holder("shop", "application")
    path = f"/orders/{ends(shop, shop)['OrderID']}"
    expect_equal("the order of another application", holder("other", "application").get(path).status, 404)
    expect_equal("the same of a viewer", holder("vera", "viewer").get(path).status, 200)
    expect_equal("GET /overview without a role", holder("nobody", "").get("/overview").status, 403)
    forged = Bearer(deployment, Issuer().token(sub="ann", scope="stepwarden/operator", iss=around.issuer.url))
    expect_equal("GET /overview with a forged token", forged.get("/overview").status, 401)


def every_call_as_every_role(around: Around, deployment: Deployment) -> str:
    """The gateway or the API refuses with 403 exactly where the table of the documents has no yes."""
    allowed = table()
    for role in ROLES:
        known = Bearer(deployment, around.issuer.token(sub=f"only-{role}", scope=f"openid stepwarden/{role}", roles=None))
        for method, path, way in ways(allowed):
            look = functools.partial(known.get, way) if method == "GET" else functools.partial(known.post, way, WORDS)
            is_allowed = bool(allowed[method, path][role])
            expect_equal(f"{method} {path} as {role}", patiently(look).status not in (401, 403), is_allowed)
    return f"{len(allowed) * len(ROLES)} calls"


def by_two_scopes(around: Around, deployment: Deployment) -> None:
    """One scope of applications, one of operators."""

    def holder(scope: str) -> Bearer:
        return Bearer(deployment, around.issuer.token(scope=scope, roles=None))

    shop, operator = (holder(scope) for scope in TWO_SCOPES)
    ends(shop, shop)
    expect_equal("GET /overview of an application", shop.get("/overview").status, 403)
    expect_equal("GET /overview of an operator", operator.get("/overview").status, 200)


def remembered(around: Around, deployment: Deployment) -> None:
    """The agents keep what was answered, and the key is that of tables and queues."""
    signed(around, deployment)
    table, dynamo = deployment.table("Memos"), client(deployment.emulator, "dynamodb")
    count = dynamo.scan(TableName=table, Select="COUNT")["Count"]
    expect(count >= 3, f"a memo of each call, found {count}")
    encrypted = dynamo.describe_table(TableName=table)["Table"]["SSEDescription"]["KMSMasterKeyArn"]
    url, name = deployment.queue("agents", "high"), "KmsMasterKeyId"
    queue = client(deployment.emulator, "sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[name])
    expect_equal("the key of a table", encrypted, around.keys[-1])
    live = client(deployment.emulator, "lambda").get_function_configuration(FunctionName=deployment.live("api"))
    expect_equal("the key of variables", live["KMSKeyArn"], encrypted)
    expect_equal("the key of a queue", queue["Attributes"].get(name), encrypted)


def unmonitored(_: Around, deployment: Deployment) -> None:
    """No alarm is made, and orders go on."""
    signed(_, deployment)
    alarms = client(deployment.emulator, "cloudwatch").describe_alarms()["MetricAlarms"]
    expect_equal("alarms", [alarm["AlarmName"] for alarm in alarms], [])


def in_a_vpc(around: Around, deployment: Deployment) -> None:
    """The agents are in the network, and nobody else. The size is that of all."""
    signed(around, deployment)
    lambdas = client(deployment.emulator, "lambda")
    for function in ("api", "submission", "scheduler", "agents", "supervisor"):
        found = lambdas.get_function_configuration(FunctionName=deployment.live(function))
        subnets = ["subnet-1", "subnet-2"] if function == "agents" else []
        expect_equal(f"subnets of {function}", found.get("VpcConfig", {}).get("SubnetIds", []), subnets)
        expect_equal(f"memory of {function}", found["MemorySize"], 512)


def compressed(_: Around, deployment: Deployment) -> None:
    """A long document is whole, a hidden member is not shown, and the table has it smaller."""
    application = caller(deployment, "application", "ApplicationPolicyArn")
    operator = caller(deployment, "operator", "OperatorPolicyArn")
    order_id = ends(application, application, Note=LONG)["OrderID"]
    shown = operator.get(f"/orders/{order_id}/document").body["Document"]
    expect_equal("the long member", shown["Note"], LONG)
    expect(SECRET not in json.dumps(shown), f"Card is hidden: {json.dumps(shown)[:300]}")
    size = len(repr(item(deployment, order_id)))
    expect(size < len(LONG) / 2, f"the item is small, found {size} bytes")


def item(deployment: Deployment, order_id: str) -> dict[str, Any]:
    """The order in its table."""
    table, key = deployment.table("Orders"), {"OrderID": {"S": order_id}}
    return client(deployment.emulator, "dynamodb").get_item(TableName=table, Key=key)["Item"]


def by_tokens(around: Around, **more: str) -> dict[str, str]:
    """Those of the issuer."""
    return {"Auth": "JWT", "IamRoles": "{}", "JwtIssuer": around.issuer.url, "JwtAudience": AUDIENCE, **more}


def key(around: Around) -> str:
    """The ARN of a new key."""
    around.keys.append(client(around.emulator, "kms").create_key()["KeyMetadata"]["Arn"])
    return around.keys[-1]


def own_services(around: Around) -> dict[str, str]:
    """No stand-ins in the stack."""
    names = ("Inventory", "Payment", "Shipping")
    return {"StandIns": "false", **{f"{name}Url": f"{around.services}/{name.lower()}" for name in names}}


TAKEOVER = Takeover()
SETS = [
    Set("Services of one's own, and no stand-ins", own_services, signed),
    Set(
        "Tokens whose scopes are roles",
        lambda around: by_tokens(around, JwtRoles="true"),
        by_roles,
        [
            ("every call as every role: as in the table", every_call_as_every_role),
            # Last: the schedule fires a minute after the deployment.
            ("the schedule calls the supervisor by itself", lambda _, of: supervision.the_schedule_fires_by_itself(of)),
        ],
    ),
    Set(
        "Tokens with two scopes",
        lambda around: by_tokens(around, **dict(zip(("JwtScope", "JwtOperatorScope"), TWO_SCOPES, strict=True))),
        by_two_scopes,
    ),
    Set("Memos, and a key of one's own", lambda around: {"Memos": "true", "KmsKeyArns": key(around)}, remembered),
    Set("No monitoring, and an address for alerts", lambda _: {"Monitoring": "false", "AlertEmail": "a@b.example"}, unmonitored),
    Set(
        "Few shards, other concurrency, hidden members, callers with their policies alone",
        lambda _: {
            "Shards": "4",
            "QueueConcurrency": "low",
            "AgentConcurrency": "high",
            "Redact": "Card",
            "IamRoles": "{}",
        },
        compressed,
    ),
    Set(
        "Agents in a VPC, deletion not protected, another size, slow requests",
        lambda _: {
            "VpcSubnetIds": "subnet-1,subnet-2",
            "VpcSecurityGroupIds": "sg-1",
            "DeletionProtection": "false",
            "MemorySize": "512",
            "RequestsPerSecond": "50",
            "OpenRequestsPerSecond": "50",
            "LogRetentionDays": "7",
            "LogLevel": "debug",
        },
        in_a_vpc,
    ),
    Set(
        "A stack is deleted, and a new one takes its tables",
        lambda _: {},
        lambda around, deployment: TAKEOVER.begins(deployment, around.program, around.services),
        [
            ("orders of every kind", lambda *_: TAKEOVER.orders_of_every_kind()),
            ("the stack is deleted, its tables and audit stream stay", lambda *_: TAKEOVER.stack_is_deleted()),
            ("a list that lacks a table is refused", lambda *_: TAKEOVER.wrong_list_is_refused()),
            ("a new stack takes them, and shows what there was", lambda *_: TAKEOVER.new_stack_takes_them()),
            ("orders that waited or were under way end", lambda *_: TAKEOVER.old_orders_end()),
            ("new orders go through, and each effect is made once", lambda *_: TAKEOVER.new_orders_go_through()),
            ("the numbers and the audit stream have both", lambda *_: TAKEOVER.books_are_right()),
        ],
    ),
]
