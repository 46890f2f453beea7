"""Configuration folders of an attacker, agents that are led elsewhere, and secrets that should stay where they are."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from attacks.clients import Clients
from attacks.wire import Raw, get, post, raw
from harness.report import Report, Suite, expect, expect_equal
from harness.serve import Server, folder

SECRET = "of-the-suite-and-of-no-answer-4f1d"
PRECIOUS = "precious-content-of-another-file"
CHECKED_S_MAX = 20.0
FAULT = 1
BANK = '[agents.bank]\nurl = "https://bank.example"\n'
STEP = '[[step]]\nname = "a"\nagent = "bank"\non_rejected = "hold"\n'
WORKFLOW = f'name = "odd"\nversion = 1\n{STEP}'


class Folders(Suite):
    """Files of a configuration, on the disk and by the API."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program, self.scratch = program, scratch
        self.commands = Clients(program, scratch)

    def all(self, report: Report) -> None:
        """All of them on one server."""
        with Server(self.program, self.scratch / "data", variables={"BANK_KEY": SECRET}) as self.server:
            super().all(report)

    def folder(self, **files: str) -> Path:
        """A folder with these workflows."""
        return folder(self.scratch / f"folder-{time.monotonic_ns()}", BANK, files)

    def test_on_disk(self) -> None:
        """A folder with links, pipes, devices or huge files ends in a fault, and shows no other file."""
        precious = self.scratch / "precious"
        precious.write_text(f"{PRECIOUS} = {PRECIOUS}\n")

        def link(path: Path) -> None:
            (path / "workflows" / "x.toml").symlink_to(precious)

        def whole(path: Path) -> None:
            (path / "stepwarden.toml").unlink()
            (path / "stepwarden.toml").symlink_to("/dev/zero")

        def many(path: Path) -> None:
            for number in range(3_000):
                (path / "workflows" / f"{number}.toml").touch()

        for made in (
            link,
            whole,
            many,
            lambda path: os.mkfifo(path / "workflows" / "pipe.toml"),
            lambda path: (path / "workflows" / "zero.toml").symlink_to("/dev/zero"),
            lambda path: (path / "workflows" / "loop.toml").symlink_to("loop.toml"),
            lambda path: (path / "workflows" / "folder.toml").mkdir(),
            lambda path: (path / "workflows" / "large.toml").write_bytes(b"#" * 50_000_000),
            lambda path: (path / "workflows" / "bytes.toml").write_bytes(b"\xff\xfe\0name"),
            lambda path: (path / "workflows" / "a\nb\x1b[2J.toml").write_text("x"),
        ):
            path = self.folder(good=WORKFLOW)
            made(path)
            began = time.monotonic()
            done = self.commands.run("http://127.0.0.1:9", "check", str(path))
            shown = (done.stdout + done.stderr).decode(errors="replace")
            expect_equal(f"{shown[:300]!r}", done.returncode, FAULT)
            expect(time.monotonic() - began < CHECKED_S_MAX, "it took too long")
            expect(PRECIOUS not in shown and "\x1b" not in shown and len(shown) < 200_000, shown[:300])

    def expect_faults(self, files: dict[str, str], unsaid: str = "\0") -> None:
        """They are refused."""
        began = time.monotonic()
        answer = apply(self.server, files)
        what = f"{files}"[:120]
        expect(answer.status in (400, 413, 422), f"{what}: {answer.status} {answer.body[:200]}")
        expect(unsaid not in answer.body and len(answer.body) < 300_000, f"{what}: {answer.body[:500]}")
        expect(time.monotonic() - began < CHECKED_S_MAX, f"{what} took too long")

    def test_names(self) -> None:
        """Names of files with dots, slashes, NUL or other folders are 422, and no file is made."""
        odd = [
            "../stepwarden.toml",
            "/etc/cron.d/x.toml",
            "workflows/../../x.toml",
            "workflows/a/b.toml",
            "x.toml",
            "",
            ".",
            "workflows/",
        ]
        odd += ["stepwarden.toml\0", "STEPWARDEN.TOML", "./stepwarden.toml", "workflows\\x.toml", "C:\\x.toml"]
        odd += ["workflows/.x", "a" * 9_000]
        odd += ["workflows/x.toml/..", "file:///etc/passwd", "workflows/\n.toml", "workflows/%2e%2e.toml\u202e"]
        before = sorted(str(path) for path in self.scratch.rglob("*.toml"))
        for name in odd:
            self.expect_faults({name: 'name = "x"\nversion = 1\n'})
        same = [{"Name": "stepwarden.toml", "Text": ""}] * 2
        expect_equal(
            "twice",
            raw(self.server.port, post("/configuration", json.dumps({"By": "eve", "Reason": "x", "Files": same}))).status,
            422,
        )
        expect_equal("files", sorted(str(path) for path in self.scratch.rglob("*.toml")), before)

    def test_bombs(self) -> None:
        """TOML that is deep, long, doubled or no TOML is 422 within 20 s. None is larger than a body may be."""
        keys = "\n".join(f"{'a.' * 50}k{number} = 1" for number in range(900))
        deep = "[" * 50_000
        texts = [
            f"a = {deep}",
            f"a = {deep}{']' * 50_000}",
            "a = {" + "b = {" * 20_000,
            ".".join(["a"] * 50_000) + " = 1",
            keys,
            "a = 1\n" * 15_000,
        ]
        texts += [
            "[[a]]\n" * 20_000,
            "[" + ".".join(["a"] * 40_000) + "]",
            'a = """' + "x" * 120_000,
            "\0",
            "\ufeff\ufeff",
            "a = nan",
            "= = =",
            "a = 99999999999999999999",
        ]
        texts += [
            "- a: &a [x]\n- b: [*a, *a]",
            '{"a": 1}',
            "<?xml?><!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>",
        ]
        for text in texts:
            self.expect_faults({"stepwarden.toml": text})
            self.expect_faults({"workflows/odd-1.toml": text})
        steps = "".join(
            f'[[step]]\nname = "s{n}"\nagent = "bank"\nafter = [{", ".join(f"{chr(34)}s{m}{chr(34)}" for m in range(n))}]\n'
            for n in range(120)
        )
        self.expect_faults({"workflows/odd-1.toml": f'name = "odd"\nversion = 1\n{steps}'})
        cycle = '[[step]]\nname = "{}"\nagent = "bank"\nafter = ["{}"]\n'
        text = 'name = "odd"\nversion = 1\n' + cycle.format("a", "b") + cycle.format("b", "a")
        self.expect_faults({"workflows/odd-1.toml": text})

    def test_metrics(self) -> None:
        """A service's code makes no line and no label of the metrics."""
        for name in ('a"} 1', "a\\nb", "a b", "a{b}", "é\\u2028", "a" * 300, ""):
            odd = WORKFLOW.replace('name = "a"', f"name = {json.dumps(name)}")
            answer = apply(self.server, {"stepwarden.toml": BANK, "workflows/odd-1.toml": odd}, DryRun=True)
            expect(answer.status in (200, 422), f"{name}: {answer.status}")
        text = raw(self.server.port, get("/metrics")).body
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        expect(len(lines) > 10, text)
        for line in lines:
            expect(line.count('"') % 2 == 0 and line.startswith("stepwarden_"), line)

    def test_secrets(self) -> None:
        """A secret in clear, or of a variable of AWS, is 422, and the answer does not repeat it."""
        for line in (
            f'auth.bearer = "{SECRET}"',
            f'auth.basic = {{ user = "a", password = "{SECRET}" }}',
            *(
                f'headers.{name} = "{SECRET}"'
                for name in ("Authorization", "authorization", "Cookie", "X-Api-Key", "Proxy-Authorization")
            ),
            'auth.bearer = "env:AWS_SECRET_ACCESS_KEY"',
            'auth.bearer = "env:"',
            'auth.bearer = "http://evil.example/secret"',
            f'webhook = {{ secret = "{SECRET}", scheme = "stripe", key = "/a", event = "/b", done = ["c"] }}',
            *(
                f'headers."{name}" = "x"'
                for name in (
                    "Host",
                    "Content-Length",
                    "Transfer-Encoding",
                    "Idempotency-Key",
                    "Callback-Url",
                    "a b",
                    "a\\nb",
                    "",
                )
            ),
            'headers.X-A = "a\\r\\nX-B: c"',
            'headers.X-A = "a\\u0000"',
        ):
            self.expect_faults({"stepwarden.toml": f"{BANK}{line}\n"}, SECRET)

    def test_unchanged(self) -> None:
        """A dry run and a refused folder change nothing. What was refused above, and a dry run of what is good."""
        files = {"stepwarden.toml": BANK, "workflows/odd-1.toml": WORKFLOW}
        expect_equal("a dry run", apply(self.server, files, DryRun=True).status, 200)
        names = [workflow["Name"] for workflow in self.server.get("/workflows")["Workflows"]]
        expect_equal("the workflows", set(names), {"order"})


def apply(server: Server, files: dict[str, str], **more: object) -> Raw:
    """Applies files by the API."""
    body = {
        "By": "eve",
        "Reason": "x",
        "Files": [{"Name": name, "Text": text} for name, text in files.items()],
        **more,
    }
    return raw(server.port, post("/configuration", json.dumps(body)))
