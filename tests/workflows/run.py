"""The services, the workflows and the orders of the suite `workflows`, for one machine and for the deployed form."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Protocol

from harness.report import Report, expect, expect_equal, until
from harness.serve import ask, folder
from workflows.service import Service

HERE = Path(__file__).parent
PYTHON = ("stock", "bank", "courier", "press", "saw")
NODE = ("depot", "label")
POSTERS = 8
PHASE = 150
# Stand-ins play them.
SHIPPED = "[agents.inventory]\n[agents.payment]\n[agents.shipping]\n"

SHOP = [("reserve", "stock", []), ("pay", "bank", ["reserve"]), ("ship", "courier", ["pay"])]
SHOP_2 = [*SHOP, ("label", "label", ["pay"])]
BUILD = [
    ("cut", "saw", []),
    ("print", "press", ["cut"]),
    ("glue", "press", ["cut"]),
    ("pay", "bank", ["cut"]),
    ("pack", "depot", ["print", "glue", "pay"]),
    ("send", "courier", ["pack"]),
]
RETURN = [("take-back", "depot", []), ("refund", "bank", ["take-back"])]


def workflow(name: str, version: int, steps: list[tuple[str, str, list[str]]]) -> dict[str, str]:
    """The file of one version."""
    text = f'name = "{name}"\nversion = {version}\n'
    for step, agent, after in steps:
        named = ", ".join(f'"{earlier}"' for earlier in after)
        text += f'\n[[step]]\nname = "{step}"\nagent = "{agent}"\nafter = [{named}]\n'
    return {"Name": f"workflows/{name}-{version}.toml", "Text": text}


# Takes a thing back, and makes the order of another one.
EXCHANGE = """name = "exchange"
version = 1

[[step]]
name = "take-back"
agent = "depot"

[[step]]
name = "replace"
kind = "order"
workflow = "shop"
after = ["take-back"]
send = { Number = "/Order/Number", Decline = "/Order/Decline?" }
"""
EXCHANGES = 24
# Soon, and before it only a look of each supervisor has to come.
DUE_IN_S = 8
SCHEDULED_S_MAX = 120

STEPS = {("shop", 1): SHOP, ("shop", 2): SHOP_2, ("build", 1): BUILD, ("return", 1): RETURN}


class Services:
    """The seven services. Leaving its `with` stops them."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self._python: list[Service] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Services:
        for name in PYTHON:
            self._python.append(self._stack.enter_context(Service()))
            self.urls[name] = self._python[-1].url
        for name in NODE:
            process = subprocess.Popen(["node", str(HERE / "service.js")], stdout=subprocess.PIPE, text=True)
            self._stack.callback(process.kill)
            assert process.stdout is not None
            self.urls[name] = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def settings(self, default: str, shipped: str = SHIPPED) -> dict[str, str]:
        """The file `stepwarden.toml`. Its tables of the shipped agents name no URL, so stand-ins play them."""
        tables = "".join(f'\n[agents.{name}]\nurl = "{url}"\nsettles_within = "11s"\n' for name, url in self.urls.items())
        tables += shipped
        return {"Name": "stepwarden.toml", "Text": f'default = "{default}"\n{tables}'}

    def books(self) -> tuple[Counter[str], Counter[str]]:
        """How often each key was done, and undone, by all of them."""
        done: Counter[str] = sum((one.done for one in self._python), Counter())
        undone: Counter[str] = sum((one.undone for one in self._python), Counter())
        for name in NODE:
            books = ask("GET", f"{self.urls[name]}/books")[1]
            done.update(books["done"])
            undone.update(books["undone"])
        return done, undone


class System(Protocol):
    """A running Stepwarden, as an operator and a caller see it."""

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """One call of its API: status and decoded body. Raises OSError if there is no answer."""

    def seen(self, order_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The order, as soon as a condition holds."""

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of `stepwarden` for its API, run to its end."""

    def has_applied(self) -> None:
        """Waits until all its processes know what was applied."""

    def kill(self) -> None:
        """Ends its processes by SIGKILL, and starts it again if nothing else does."""


class Run:
    """The orders of a run."""

    def __init__(self, system: System, services: Services, scratch: Path) -> None:
        """`scratch` is a folder for its files."""
        self.system, self.services = system, services
        self.orders: dict[str, dict[str, Any]] = {}
        self._folder = scratch / "folder"

    def all(self, report: Report) -> None:
        """The checks, one after the other."""
        report.check("three workflows are applied to a running system", self.apply_first)
        report.check("orders of all three at once, by name", self.post_at_once)
        report.check("orders of all three, by name and by default", lambda: self.post(0))
        report.check("a new version for 20 %, another default, and kill -9 under load", self.switch_and_kill)
        report.check("every order went the way of the version that it began with", self.went_their_ways)
        report.check("the services' books agree: each effect once, or undone", self.books_agree)
        report.check("orders that make another, a schedule, and kill -9: one child each, one order", self.makes_orders)

    def apply(self, default: str, files: list[dict[str, str]], **more: object) -> tuple[int, Any]:
        """Applies a folder."""
        body = {"By": "test", "Reason": "a test", "Files": [self.services.settings(default), *files], **more}
        return self.system.ask("POST", "/configuration", body)

    def apply_first(self) -> str:
        """Applies the first version of each."""
        files = [workflow("shop", 1, SHOP), workflow("build", 1, BUILD), workflow("return", 1, RETURN)]
        workflows = {Path(file["Name"]).stem: file["Text"] for file in files}
        folder(self._folder, self.services.settings("shop", shipped="")["Text"], workflows)
        told = self.command("apply", str(self._folder), "--reason", "a test", "--yes")
        for words in ("workflow shop/1: new", "default workflow: shop (was order)", "agent saw: new", "applied"):
            expect(words in told, f"{words} in {told}")
        again = self.command("apply", str(self._folder), "--reason", "a test")
        expect("nothing changes" in again, f"the same folder again: {again}")
        return f"{len(told.splitlines())} lines"

    def post_at_once(self) -> str:
        """A process that knows no such workflow or agent looks it up."""
        names = ("shop", "build", "return")
        self.post_all([{"Number": number, "Workflow": names[number % 3]} for number in range(900, 912)])
        self.system.has_applied()
        return f"{len(self.orders)} orders"

    def command(self, *words: str) -> str:
        """What a command of the program tells."""
        done = self.system.command(*words)
        expect_equal(f"{words}: {done.stderr}", done.returncode, 0)
        return done.stdout + done.stderr

    def document(self, number: int) -> dict[str, Any]:
        """The order of this number. Some name a workflow, some are declined at a step."""
        named = {0: {}, 1: {"Workflow": "shop"}, 2: {"Workflow": "build"}, 3: {"Workflow": "return"}}[number % 4]
        steps = {"shop": "/ship", "build": "/pack", "return": "/refund"}
        declined = {"Decline": steps[named["Workflow"]]} if named and number % 11 == 0 else {}
        return {"Number": number, **named, **declined}

    def post(self, first: int) -> str:
        """Posts orders side by side."""
        self.post_all([self.document(number) for number in range(first, first + PHASE)])
        return f"{len(self.orders)} orders"

    def post_all(self, documents: list[dict[str, Any]]) -> list[str]:
        """Posts orders side by side, each until it is accepted; gives their ids."""

        def one(document: dict[str, Any]) -> str:
            key = {"Idempotency-Key": f"k{document['Number']}"}

            def accepted() -> str | None:
                try:
                    status, answer = self.system.ask("POST", "/orders", document, key)
                except OSError:
                    return None
                return str(answer["OrderID"]) if status == 202 else None

            order_id = until(f"order {document['Number']} is accepted", accepted)
            self.orders[order_id] = document
            return order_id

        with ThreadPoolExecutor(POSTERS, "post") as posters:
            return list(posters.map(one, documents))

    def switch_and_kill(self) -> str:
        """Applies in the middle, posts more, and kills the system twice meanwhile."""
        files = [workflow("shop", 2, SHOP_2), workflow("build", 1, BUILD)]
        status, answer = self.apply("build", files, SharePercent=20)
        expect_equal(f"the answer {answer}", status, 200)
        self.system.has_applied()
        before = len(self.orders)
        with ThreadPoolExecutor(1, "post") as poster:
            posting = poster.submit(self.post, PHASE)
            for goal in (before + 40, before + 100):
                until(f"{goal} orders", lambda goal=goal: len(self.orders) >= goal)
                self.system.kill()
            return posting.result()

    def went_their_ways(self) -> str:
        """Waits until all are settled, and compares their steps with those of their version."""
        counts: Counter[str] = Counter()
        for order_id, document in self.orders.items():
            task = self.system.seen(order_id, lambda task: task["ProcessState"] in ("Processed", "Compensated", "Error"))
            pin = (task["Workflow"], task["WorkflowVersion"])
            expected = "Compensated" if "Decline" in document else "Processed"
            expect_equal(f"{order_id} {document} {task.get('Reason')}", task["ProcessState"], expected)
            steps = [step for step, _, _ in STEPS[pin]]
            expect_equal(f"steps of {order_id}", [step["Name"] for step in task["Steps"]], steps)
            default = "shop" if document["Number"] < PHASE else "build"
            expect_equal(f"workflow of {order_id}", task["Workflow"], document.get("Workflow", default))
            if document["Number"] < PHASE or 900 <= document["Number"] < 1_000:
                expect_equal(f"version of {order_id}", task["WorkflowVersion"], 1)
            counts[f"{pin[0]}/{pin[1]} {task['ProcessState']}"] += 1
            document["Pin"], document["State"] = pin, task["ProcessState"]
        expect(any("shop/2" in what for what in counts), f"a share of the orders went the new way: {counts}")
        return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))

    def books_agree(self) -> str:
        """Each step of a processed order has one effect; those of a compensated one are undone."""
        done, undone = self.services.books()
        for order_id, document in self.orders.items():
            for step, _, _ in STEPS[document["Pin"]]:
                key = f"{order_id}/{step}"
                left = done[key] - undone[key]
                expect(done[key] <= 1, f"{key} was done {done[key]} times")
                expect_equal(f"effects left of {key}", left, 1 if document["State"] == "Processed" else 0)
        known = {f"{order_id}/{step}" for order_id, of in self.orders.items() for step, _, _ in STEPS[of["Pin"]]}
        expect_equal("effects of no order", set(done) - known, set())
        return f"{done.total()} effects, {undone.total()} undone"

    def makes_orders(self) -> str:
        """Exchanges whose new order is declined are compensated, whatever is killed, and a due time has one order."""
        due = datetime.now(timezone.utc) + timedelta(seconds=DUE_IN_S)
        start, end = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (due, due + timedelta(seconds=30)))
        schedule = f'[[schedule]]\nname = "nightly"\nworkflow = "return"\nevery = "1m"\nstart = {start}\nend = {end}\n'
        settings = self.services.settings("build", f"{SHIPPED}\n{schedule}order = {{ Number = 9000 }}\n")
        files = [workflow("shop", 2, SHOP_2), workflow("build", 1, BUILD), workflow("return", 1, RETURN)]
        files.append({"Name": "workflows/exchange-1.toml", "Text": EXCHANGE})
        body = {"By": "test", "Reason": "a test", "Files": [settings, *files]}
        status, answer = self.system.ask("POST", "/configuration", body)
        expect_equal(f"the answer {answer}", status, 200)
        self.system.has_applied()
        documents = [{"Number": 5_000 + number, "Workflow": "exchange"} for number in range(EXCHANGES)]
        for document in documents[::4]:
            document["Decline"] = "/ship"
        known = set(self.orders)
        self.post_all(documents)
        self.system.kill()
        for order_id in set(self.orders) - known:
            self.exchanged(order_id, self.orders[order_id])
        self.is_posted_once()
        done, undone = self.services.books()
        for order_id in set(self.orders) - known:
            keys = [key for key in done if key.startswith(order_id)]
            left = 0 if "Decline" in self.orders[order_id] else 1
            expect(all(done[key] == 1 and done[key] - undone[key] == left for key in keys), f"{order_id}: {keys}")
        return f"{len(set(self.orders) - known)} orders"

    def exchanged(self, order_id: str, document: dict[str, Any]) -> None:
        """The order and its child have ended alike, and name each other."""
        expected = "Compensated" if "Decline" in document else "Processed"
        task = self.system.seen(order_id, lambda task: task["ProcessState"] in ("Processed", "Compensated", "Error"))
        expect_equal(f"{order_id} {document} {task.get('Reason')}", task["ProcessState"], expected)
        child_id = task["Steps"][1]["Child"]
        child = self.system.seen(child_id, lambda task: task["ProcessState"] in ("Processed", "Compensated", "Error"))
        expect_equal(f"{child_id} {child.get('Reason')}", child["ProcessState"], expected)
        expect_equal(f"the parent of {child_id}", (child["Parent"]["OrderID"], child["Workflow"]), (order_id, "shop"))
        self.orders[child_id] = {"Child": True, **document}

    def is_posted_once(self) -> None:
        """The schedule has posted the order of its only due time."""

        def posted() -> str | None:
            found = [one.get("Posted") for one in self.system.ask("GET", "/schedules")[1]["Schedules"]]
            return str(found[0]["OrderID"]) if found and found[0] else None

        order_id = until("the schedule has posted an order", posted, SCHEDULED_S_MAX)
        task = self.system.seen(order_id, lambda task: task["ProcessState"] in ("Processed", "Compensated", "Error"))
        expect_equal(f"{order_id} {task.get('Reason')}", (task["ProcessState"], task["Workflow"]), ("Processed", "return"))
        self.orders[order_id] = {"Number": 9_000}
