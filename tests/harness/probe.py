"""`stepwarden probe` on a configuration folder: what it finds of each agent, held to what it announced."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.report import expect, expect_equal
from harness.serve import run


class Probed:
    """What one probe says."""

    def __init__(self, program: Path, folder: Path, order: dict[str, Any], *words: str) -> None:
        """`folder` is configured. It gets a rehearsal.toml and no other file."""
        self._program, self._folder = program, folder
        before = files(folder)
        file = folder.parent / "probed.json"
        file.write_text(json.dumps(order))
        ended = run(program, "probe", str(folder), *words, "--order", str(file), "--yes", "--write", "-o", "json")
        expect(ended.returncode in (0, 1), f"{ended.returncode}: {ended.stderr}")
        self.text, self.status = ended.stdout + ended.stderr, ended.returncode
        report = json.loads(ended.stdout)
        self.calls_max: dict[str, dict[str, Any]] = report["CallsMax"]
        self.agents: dict[str, dict[str, Any]] = {agent["Agent"]: agent for agent in report["Agents"]}
        expect_equal("new files", files(folder) - before, {"rehearsal.toml"})
        expect_equal("rehearsal.toml", (folder / "rehearsal.toml").read_text(), report["Rehearsal"])

    def verdicts(self, agent: str) -> dict[str, list[str]]:
        """The assumptions of an agent, by verdict."""
        found: dict[str, list[str]] = {}
        for finding in self.agents[agent]["Findings"]:
            found.setdefault(finding["Verdict"], []).append(finding["Assumption"])
        return found

    def announced(self, agent: str) -> int:
        """The most calls of an agent that it announced."""
        return int(self.calls_max[agent]["Forward"]) + int(self.calls_max[agent]["Undo"])

    def check_settings(self) -> None:
        """The settings that it proposes are accepted, and with what a rehearsal proposes, nothing goes wrong."""
        file = self._folder / "stepwarden.toml"
        text = file.read_text()
        for name, agent in self.agents.items():
            text = pasted(text, name, agent["Settings"])
        file.write_text(text)
        checked = run(self._program, "check", str(self._folder))
        expect(checked.returncode == 0, f"{checked.stdout}\n{text}")
        for change in self._rehearsed():
            agent = change["Key"].split(".")[1]
            text = pasted(text, agent, change["Line"].removeprefix(f"agents.{agent}."))
        file.write_text(text)
        again = self._rehearsed()
        expect(not again, f"{again}\n{text}")

    def _rehearsed(self) -> list[dict[str, Any]]:
        """What a rehearsal with what the probe saw proposes: settings of agents."""
        orders = str(self._folder.parent / "probed.json")
        ended = run(self._program, "rehearse", str(self._folder), "--orders", orders, "--seeds", "40", "--json")
        expect(ended.returncode in (0, 1), f"{ended.returncode}: {ended.stderr}")
        violations = json.loads(ended.stdout)["Violations"]
        for found in violations:
            change = found["Change"]
            expect(change and change["Key"].startswith("agents."), f"no setting helps: {found}")
        return [found["Change"] for found in violations]


def files(folder: Path) -> set[str]:
    """All files in a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def pasted(text: str, agent: str, lines: str) -> str:
    """A settings file with these lines in an agent's table, in the place of those of the same keys."""
    keys = re.findall(r"^(\w+) = ", lines, re.MULTILINE)
    kept, own, table = [], f"[agents.{agent}]", ""
    for line in text.splitlines():
        table = line if line.startswith("[") else table
        named = line if table == own else table.removeprefix(f"[agents.{agent}.")
        if table == line or table != own and named == table or re.split(r"\W", named)[0] not in keys:
            kept.append(line)
        if line == own:
            kept += lines.splitlines()
    return "\n".join(kept) + "\n"
