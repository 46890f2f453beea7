"""Callers with tokens (JWT): every call with the scopes of every role, compared with the table of the documents."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attacks.issuer import AUDIENCE, Issuer
from attacks.roles import OPEN, WORDS, besides, calls, table, ways
from attacks.secured import ROLES
from attacks.wire import get, post
from harness.api import ApiClient
from harness.calls import Answer
from harness.deployment import Deployment
from harness.report import CheckFailed, expect, expect_equal
from invoked import Invoked
from world import patiently

Table = dict[tuple[str, str], dict[str, str]]
# Before a role in a scope.
SCOPE = "stepwarden/"
ALL = " ".join(f"{SCOPE}{role}" for role in ROLES)
# Scopes that are no roles, some of them almost.
NO_ROLES = (
    f"openid profile email * {SCOPE} {SCOPE}* {SCOPE}orders {SCOPE}operate {SCOPE}channel:shop {SCOPE}Administrator "
    f"{SCOPE}administrator.read {SCOPE}administrator/ {SCOPE}admin x{SCOPE}administrator stepwarden:administrator "
    "administrator operator approver viewer application shop/administrator"
)
NEAR, NO_SCOPE, NO_TOKEN, NO_NAME = "scopes that are no roles", "no scope", "no token", "no name"
# Of a deployment whose scopes are no roles: of applications, and of operators.
TWO_SCOPES = ("shop/orders", "shop/operate")
# Providers and the agents of a trial prove themselves too.
OPEN_ON_AWS = (*OPEN, "/webhooks/", "/stand-ins/")
# What becomes of a call.
ANSWERED, UNKNOWN = "answered", "refused by the gateway: no known caller"
BY_GATEWAY, BY_API = "refused by the gateway", "refused by the API"
NAMELESS = "refused by the API: no known caller"
PROBLEMS = {(401, "/problems/unauthenticated"): NAMELESS, (403, "/problems/forbidden"): BY_API}


@dataclass(frozen=True)
class Bearer:
    """A caller with a token, or with none."""

    deployment: Deployment
    token: str | None

    def get(self, path: str) -> Answer:
        """GET."""
        return ApiClient(self.deployment.api_url, None).get(path, self._headers())

    def post(self, path: str, body: object) -> Answer:
        """POST of a JSON document."""
        return ApiClient(self.deployment.api_url, None).post(path, body, self._headers())

    def outcome(self, method: str, way: str) -> str:
        """That of one call of the table."""
        answer = patiently(lambda: self.get(way) if method == "GET" else self.post(way, WORDS))
        return outcome(answer.status, answer.body)

    def _headers(self) -> dict[str, str]:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        return key if self.token is None else {"Authorization": f"Bearer {self.token}", **key}


def outcome(status: int, body: Any) -> str:
    """Whether a call was answered, or else who refused it. An answer of the gateway has a message and nothing else."""
    members = body if isinstance(body, dict) else {}
    if members.keys() == {"message"}:
        return {401: UNKNOWN, 403: BY_GATEWAY}.get(status, f"{status} {body}")
    other = f"{status} {body}" if status in (401, 403) or status >= 500 else ANSWERED
    return PROBLEMS.get((status, members.get("type", "")), other)


def route_of(function: Invoked, method: str, way: str) -> str:
    """The key of the route of a call."""
    found = function.route(method, way)
    if found is None:
        raise CheckFailed(f"{method} {way} has no route")
    return found[0]


def admitted(function: Invoked, allowed: Table) -> dict[str, set[str]]:
    """The roles that the gateway has to let through each route: those of all its calls in the table."""
    found: dict[str, set[str]] = {}
    for method, path, way in ways(allowed):
        roles = {role for role in ROLES if allowed[method, path][role]}
        found.setdefault(route_of(function, method, way), set()).update(roles)
    return found


def open_reads() -> list[tuple[str, str]]:
    """The reads of the contract that are open to all. `/ready` is for one machine."""
    reads = sorted((method, path) for method, path in calls() if method == "GET" and path != "/ready")
    return [(method, path) for method, path in reads if path.startswith(OPEN)]


def each_route_asks_for_the_roles_of_its_calls(_: Issuer, deployment: Deployment) -> str:
    """Its scopes, as they are deployed. A route without them is open to all by the documents. The console is for those
    who see the overview."""
    allowed, function = table(), Invoked(deployment)
    expect_equal("calls of the contract that are in no table", besides(allowed), set())
    roles_of = admitted(function, allowed)
    for key, route in function.routes.items():
        path = key.partition(" ")[2]
        is_console = path == "/" or path.startswith("/console")
        roles = roles_of["GET /overview"] if is_console else roles_of.get(key, set())
        expect(bool(roles) or path.startswith(OPEN_ON_AWS), f"{key} is of the table, or open to all")
        found = route["AuthorizationType"], set(route.get("AuthorizationScopes", []))
        expected = "JWT" if roles else "NONE", {f"{SCOPE}{role}" for role in roles}
        expect_equal(f"{key}: its authorizer and its scopes", found, expected)
    return f"{len(function.routes)} routes"


def every_call_as_every_role(issuer: Issuer, deployment: Deployment) -> str:
    """The gateway refuses a role that no call of the route allows, and the API every other one that is not in the table.
    A token without a name passes the gateway, and has no role."""
    allowed, function = table(), Invoked(deployment)
    roles_of = admitted(function, allowed)
    for role in ROLES:
        known = Bearer(deployment, issuer.token(sub=f"only-{role}", scope=f"openid {SCOPE}{role}", roles=None))
        for method, path, way in ways(allowed):
            is_admitted = role in roles_of[route_of(function, method, way)]
            expected = ANSWERED if allowed[method, path][role] else BY_API if is_admitted else BY_GATEWAY
            expect_equal(f"{method} {path} as {role}", known.outcome(method, way), expected)
    nameless = Bearer(deployment, issuer.token(sub=None, scope=ALL, roles=None))
    for method, path, way in ways(allowed):
        expect_equal(f"{method} {path} without a name", nameless.outcome(method, way), NAMELESS)
    return f"{len(allowed) * (len(ROLES) + 1)} calls"


def every_call_with_either_scope(issuer: Issuer, deployment: Deployment) -> str:
    """Without roles the gateway decides alone: one scope is for the calls of applications, and the other for the rest."""
    allowed = table()
    applications, operators = TWO_SCOPES
    for scope in TWO_SCOPES:
        known = Bearer(deployment, issuer.token(scope=scope, roles=None))
        for method, path, way in ways(allowed):
            is_theirs = scope == (applications if allowed[method, path]["application"] else operators)
            expected = ANSWERED if is_theirs else BY_GATEWAY
            expect_equal(f"{method} {path} with {scope}", known.outcome(method, way), expected)
    return f"{len(allowed) * len(TWO_SCOPES)} calls"


def no_call_takes_a_wrong_token(issuer: Issuer, deployment: Deployment) -> str:
    """The gateway refuses every call with it. What is open to all stays so."""
    allowed, good = table(), {"scope": f"{ALL} {' '.join(TWO_SCOPES)}", "roles": None}
    then = int(time.time()) - 3_600
    # Each is made right before its calls, so that none is too old.
    tokens: dict[str, Callable[[], str | None]] = {
        NO_TOKEN: lambda: None,
        "what is no token": lambda: "administrator",
        "an expired token": lambda: issuer.token(**good, iat=then, exp=then + 600),
        "a token of later": lambda: issuer.token(**good, nbf=then + 7_200),
        "a token of another issuer": lambda: issuer.token(**good, iss="https://login.example.com"),
        "a token of an issuer with a longer name": lambda: issuer.token(**good, iss=f"{issuer.url}/"),
        "a token for another audience": lambda: issuer.token(**good, aud=f"{AUDIENCE}-too"),
        "a token for nobody": lambda: issuer.token(**good, aud=None),
        "a token by another key": lambda: other.token(**good, iss=issuer.url),
        "a token without a signature": lambda: f"{issuer.token(**good).rpartition('.')[0]}.",
        NEAR: lambda: issuer.token(scope=NO_ROLES, roles=None),
        NO_SCOPE: lambda: issuer.token(roles=None),
    }
    with Issuer() as other:
        for name, make in tokens.items():
            known, expected = Bearer(deployment, make()), BY_GATEWAY if name in (NEAR, NO_SCOPE) else UNKNOWN
            for method, path, way in ways(allowed):
                expect_equal(f"{method} {path} with {name}", known.outcome(method, way), expected)
    for method, path, way in ways(open_reads()):
        expect_equal(f"{method} {path} without a token", Bearer(deployment, None).outcome(method, way), ANSWERED)
    return f"{len(allowed) * len(tokens)} calls"


def the_api_keeps_to_the_table_by_itself(issuer: Issuer, deployment: Deployment) -> str:
    """Behind a gateway that lets everything through. It hands on each claim as a text, beside the scopes of the route."""
    allowed, function = table(), Invoked(deployment)
    roles_of = admitted(function, allowed)
    claims: list[tuple[str, dict[str, str] | None]] = [(NO_TOKEN, None), (NO_NAME, {})]
    for role in ROLES:
        claims.append((role, {"sub": "eve", "scope": f"openid {SCOPE}{role}"}))
        claims.append((role, {"client_id": "eve", "scp": f"[openid {SCOPE}{role}]"}))
    claims += [(NEAR, {"sub": "eve", "scope": NO_ROLES, "scp": ALL, "roles": ALL}), (NO_NAME, {"scope": ALL})]
    for name, found in claims:
        for method, path, way in ways(allowed):
            admits = [f"{SCOPE}{role}" for role in roles_of[route_of(function, method, way)]]
            more = {"iss": issuer.url, "aud": AUDIENCE, "exp": "4102444800"} if found else {}
            function.authorizer = None if found is None else {"jwt": {"claims": found | more, "scopes": admits}}
            answer = function.ask(get(way) if method == "GET" else post(way, json.dumps(WORDS)))
            body = answer.document if answer.body.startswith("{") else answer.body
            refused = NAMELESS if name in (NO_TOKEN, NO_NAME) else BY_API
            expected = ANSWERED if allowed[method, path].get(name) else refused
            expect_equal(f"{method} {path} by the claims of {name}", outcome(answer.status, body), expected)
    return f"{len(allowed) * len(claims)} calls"
