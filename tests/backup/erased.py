"""A person who is erased (rule 46): no file, answer or later backup has anything of them. Another loses nothing."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attacks.wire import get, raw
from backup.person import FATES, LONG, PLACES, SETTINGS, UNREAD, WORKFLOW, Person, Services, coded
from harness.report import Report, expect, expect_equal, until
from harness.serve import Server, folder

# Orders of the other person beside those of the first, so that both share pages of the database.
CROWD = 60


class Erased:
    """The checks, one after the other, on one server."""

    def __init__(self, program: Path, services: Services, scratch: Path) -> None:
        """`scratch` is a folder for all files."""
        self.backup = scratch / "backup"
        config = str(folder(scratch / "folder", SETTINGS.format(url=services.url), {"visit-1": WORKFLOW}))
        self.server = Server(program, scratch / "data", "--config", config)
        self.copy = Server(program, scratch / "copy", "--config", config)
        self.zoe, self.ada = Person(self.server, "zoë"), Person(self.server, "ada")
        self.eve = Person(self.server, "eve")
        # All of the other person's orders, as they were before the erase.
        self.before: dict[str, object] = {}
        self.logged = 0

    def all(self, report: Report) -> None:
        """The checks."""
        with self.server:
            report.check(f"orders of two persons end in each way, beside {CROWD} others", self.live)
            report.check("each text about them is in files and answers: the searches find it", self.there)
            report.check("one of them is erased, by the command", self.erase)
            report.check("no file has anything of them, while the server runs", lambda: self.gone(self.server))
            report.check("nor has an answer, list, export, log or the audit stream", lambda: self.silent(self.server))
            report.check("a late repeat of their posts is answered, and leaves nothing", self.repeat)
            report.check("the other person loses nothing", lambda: self.kept(self.server))
            report.check("a backup made after it has nothing of them", self.back_up)
            report.check("a bulk job forgets a person, also if the history of the order has dropped it", self.dropped)
        report.check("no file of the stopped server has anything of them", lambda: self.gone(self.server))
        with self.copy:
            report.check("nor a file or an answer of the restored copy", lambda: self.silent(self.copy))
            report.check("there the other person is whole", lambda: self.kept(self.copy))
        report.check("nor a file of the copy, once it is stopped", lambda: self.gone(self.copy))

    def command(self, *words: str) -> str:
        """The output of a command of the program, run to its end."""
        done = self.server.run(*words)
        expect_equal(f"exit status of {words}: {done.stderr}", done.returncode, 0)
        return done.stdout + done.stderr

    def live(self) -> str:
        """Others post all the time. Then the server starts with dead letters about both persons."""
        with self.crowd() as others:
            for person in (self.zoe, self.ada):
                person.live()
                person.end()
        self.server.stop()
        for person in (self.zoe, self.ada):
            person.bury(self.server.data)
        self.server.start()
        until("they are settled", lambda: len(self.server.get("/dead-letters")["DeadLetters"]) == 4)
        self.before = self.whole(self.server, [*self.ada.ids.values(), *(one.result()["OrderID"] for one in others)])
        return f"{len(self.zoe.ids)} orders of the one, {len(self.before)} of the other"

    @contextlib.contextmanager
    def crowd(self) -> Iterator[list[Future[dict[str, Any]]]]:
        """Orders of the other person, while the block runs and until all have ended."""
        with ThreadPoolExecutor(4) as pool:
            tags = [f"{self.ada.tag}-{number}" for number in range(CROWD)]
            yield [pool.submit(self.server.order, Tag=tag, CorrelationID=str(uuid.uuid4())) for tag in tags]

    @staticmethod
    def whole(server: Server, order_ids: list[str]) -> dict[str, object]:
        """Orders with their documents."""
        return {one: (server.get(f"/orders/{one}"), server.get(f"/orders/{one}/document")) for one in order_ids}

    def there(self) -> None:
        """Otherwise a search that finds nothing says nothing."""
        for person in (self.zoe, self.ada):
            stored, told = b"".join(files(self.server).values()), "".join(self.told(self.server, person).values())
            for place in PLACES:
                text = f"{person.core}/{place}"
                expect(text.encode() in stored, f"no file has {place} of {person.tag}")
                expect(text in told, f"no answer has {place} of {person.tag}")
            expect(f"{person.core}/{UNREAD}".encode() in stored, f"no file has {UNREAD} of {person.tag}")
            expect(all(hashed in stored for hashed in person.prints()), f"no file has the hashes of {person.tag}")
            expect(all(person.traces(text) for text in coded(person.tag)), "an encoding is not found")
            expect(stored.count(f"{person.core}/letter".encode()) >= LONG, f"a long document of {person.tag}")
            expect_equal("found", self.found(self.server, person), [set(person.ids.values())] * 3)

    def found(self, server: Server, person: Person) -> list[set[str]]:
        """What searches for the person find: by correlation id, by the indexed member, by any member."""
        email = f"{person.tag}/email"
        words = [["--correlation", f"{person.tag}/correlation"], ["--value", email]]
        words += [["--field", "/Person/Email", "--value", email]]
        return [set(self.command("list", "--all", "-q", *one, "--api", server.url).split()) for one in words]

    def told(self, server: Server, person: Person) -> dict[str, str]:
        """What each GET of the API and each command that shows something say."""
        ids, api = list(person.ids.values()), ("--api", server.url)
        paths = [path for path, methods in server.get("/openapi.json")["paths"].items() if "get" in methods]
        known = {"/numbers": "/numbers?last=30m", "/problems/{name}": "/problems/state-conflict"}
        known["/workflows/{name}/{version}"] = "/workflows/visit/1"
        told = {}
        filled = {known.get(path, path).replace("{id}", one) for path in paths for one in ids if path != "/bulk/{id}"}
        for path in (*filled, *(f"/bulk/{job}" for job in person.jobs)):
            answer = raw(server.port, get(path))
            expect(answer.status == 200, f"{path}: {answer}")
            told[path] = answer.text
        lines = [("get", one, *more, *api) for one in ids for more in ((), ("--document",), ("-o", "json"))]
        lines += [("list", "--all", *api), ("export", "--since", "1h", "--documents", *api), ("bulk", "list", *api)]
        lines += [("bulk", "status", job, *api) for job in person.jobs]
        lines += [(word, *api) for word in ("dead-letters", "alerts", "overview", "services")]
        lines += [("audit", "--data", str(server.data))]
        return told | {" ".join(line): self.command(*line) for line in lines}

    def erase(self) -> str:
        """All orders at once, while others post. Each is erased whole as soon as it says so."""
        self.logged = len(self.server.log())
        with self.crowd():
            self.ask_to_erase(self.zoe)
            self.gone(self.server)
        return f"{len(self.zoe.ids)} orders"

    def ask_to_erase(self, person: Person) -> None:
        """The command, and the wait until it is done."""
        words = ("--by", "dpo", "--reason", "letter 7", "--yes", "--api", self.server.url)
        self.command("erase", *person.ids.values(), *words)
        for fate in person.ids:
            person.seen(fate, lambda task: "ErasedAt" in task)

    def gone(self, server: Server, person: Person | None = None) -> None:
        """Every byte of every file."""
        none_of(person or self.zoe, files(server))

    def dropped(self) -> None:
        """A history keeps its last lines only. The job still has the reason, which names the person."""
        self.eve.long()
        expect(self.eve.traces(b"".join(files(self.server).values())), "the files have the person before")
        self.ask_to_erase(self.eve)
        self.gone(self.server, self.eve)

    def silent(self, server: Server) -> None:
        """The log has only what came after the erase."""
        told = self.told(server, self.zoe) | {"log": server.log()[self.logged if server is self.server else 0 :]}
        none_of(self.zoe, {name: text.encode() for name, text in told.items()})
        expect_equal("found", self.found(server, self.zoe), [set()] * 3)
        self.command("audit", "--verify", "--data", str(server.data))
        self.gone(server)

    def repeat(self) -> None:
        """The same documents under the same keys. The order cannot be posted again."""
        for fate in FATES:
            expect_equal(f"the id of the repeat: {fate}", self.zoe.post(fate), self.zoe.ids[fate])
        status, _ = self.server.ask("POST", f"/orders/{self.zoe.ids['again']}/again", {"By": "ann", "Reason": "late"})
        expect_equal("post again", status, 409)
        self.silent(self.server)

    def kept(self, server: Server) -> None:
        """Each order is as it was, is found as before, and its texts are in the files."""
        expect_equal("the orders", self.whole(server, list(self.before)), self.before)
        expect_equal("found", self.found(server, self.ada), [set(self.ada.ids.values())] * 3)
        stored, told = b"".join(files(server).values()), "".join(self.told(server, self.ada).values())
        texts = [f"{self.ada.core}/{place}" for place in PLACES]
        expect_equal("texts that are lost", [one for one in texts if not (one in told and one.encode() in stored)], [])

    def back_up(self) -> None:
        """The backup, and what is restored of it."""
        self.command("backup", str(self.backup), "--data", str(self.server.data))
        self.command("restore", str(self.backup), "--data", str(self.copy.data))
        stored = {file.name: file.read_bytes() for file in self.backup.iterdir()}
        none_of(self.zoe, stored)
        expect(any(self.ada.core.encode() in text for text in stored.values()), "the backup has the other person")
        self.gone(self.copy)


def none_of(person: Person, texts: dict[str, bytes]) -> None:
    """Fails the check if one of these texts has anything of the person."""
    found = [f"{name}: {one}" for name, text in texts.items() for one in person.traces(text)]
    expect(not found, "\n".join(found))


def files(server: Server) -> dict[str, bytes]:
    """All files of a data directory."""
    return {str(file): file.read_bytes() for file in server.data.rglob("*") if file.is_file()}
