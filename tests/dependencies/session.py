"""The dependencies by the rules of .cargo/deny.toml: licences, sources, doubled versions, known vulnerabilities.

    tests/run dependencies [--advisories FOLDER] [--advisories-required]

Vulnerabilities need the advisory database of RustSec. Without FOLDER it is fetched. Where the network does not offer
it, `advisories.json` stands in for it: what the database had about each of our dependencies on a day.

--advisories FOLDER    uses this copy instead: a git clone of the database, with a commit of the last 30 days
--advisories-required  fails where only `advisories.json` is there
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import tools

CONFIG = tools.ROOT / ".cargo" / "deny.toml"
LOCK = tools.ROOT / "Cargo.lock"
# Made by hand from the database, on the day of `LookedUpOn`.
STORED = Path(__file__).with_name("advisories.json")
DATABASE = "https://github.com/RustSec/advisory-db"
# As cargo-deny names its copy of it.
DATABASE_FOLDER = "advisory-db-3157b0e258782691"
FETCH_WITHIN_S = 60
AGE_MAX_S = 30 * 24 * 3600
# To look everything up by hand is more work than to fetch.
STORED_DAYS_MAX = 180
# No version of this dependency is patched. If the check does not find that, it finds nothing.
CANARY = {"Id": "RUSTSEC-0000-0001", "Package": "serde", "Date": "2000-01-01", "Patched": []}


def deny(*checks: str, options: tuple[str, ...] = (), config: Path = CONFIG, quietly: bool = False) -> bool:
    """Whether these checks hold; prints what they say, unless told to be quiet."""
    cargo_deny = tools.program("dependencies", "cargo-deny")
    command = [cargo_deny, "--locked", *options, "--config", str(config), "check", "--hide-inclusion-graph", *checks]
    output = subprocess.DEVNULL if quietly else None
    return subprocess.call(command, cwd=tools.ROOT, stdout=output, stderr=output) == 0


def clone(source: str, folder: Path) -> str | None:
    """Clones a database. Gives the error if it cannot."""
    command = ["git", "-c", "credential.helper=", "clone", "--quiet", "--depth", "1", source, str(folder)]
    try:
        tools.run(command, env={"GIT_TERMINAL_PROMPT": "0"}, within_s=FETCH_WITHIN_S)
    except tools.ToolError as error:
        lines = str(error).splitlines()
        return next((line for line in lines if line.startswith("fatal: ")), lines[0])
    return None


def is_recent(database: Path) -> bool:
    """Whether the last commit is young enough. cargo-deny looks at the time of the clone instead."""
    last = tools.run(["git", "-C", str(database), "show", "--no-patch", "--format=%ct", "HEAD"]).stdout
    return time.time() - int(last) < AGE_MAX_S


def check_with(database: Path, folder: Path, *, quietly: bool = False) -> bool:
    """The check of advisories, on the database in this folder alone."""
    config = folder / "deny.toml"
    config.write_text(CONFIG.read_text().replace("[advisories]\n", f'[advisories]\ndb-path = "{database.parent}"\n'))
    return deny("advisories", options=("--offline",), config=config, quietly=quietly)


def check_stored(folder: Path, database: Path) -> bool:
    """The check of advisories on the facts that are stored here."""
    stored = json.loads(STORED.read_text())
    locked = set(re.findall(r'^name = "(.+)"\nversion = .+\nsource = ', LOCK.read_text(), re.MULTILINE))
    name = STORED.relative_to(tools.ROOT)
    if unknown := sorted(locked - set(stored["LookedUp"])):
        raise tools.ToolError(f"look up {', '.join(unknown)} in {DATABASE}, and add what is there to {name}")
    days = max(0, (datetime.date.today() - datetime.date.fromisoformat(stored["LookedUpOn"])).days)
    if days > STORED_DAYS_MAX:
        raise tools.ToolError(f"{name} is {days} days old: look all dependencies up again in {DATABASE}")
    print(f"advisories: checked by {name}, which is {days} days old")
    commit(database, [*stored["Advisories"], CANARY])
    if check_with(database, folder, quietly=True):
        raise tools.ToolError(f"{CANARY['Id']} was not found, so the check finds nothing")
    commit(database, stored["Advisories"])
    return check_with(database, folder)


def commit(database: Path, stored: list[dict[str, Any]]) -> None:
    """Makes a database of these advisories."""
    # What a clone left that was ended.
    shutil.rmtree(database, ignore_errors=True)
    for one in stored:
        file = database / "crates" / one["Package"] / f"{one['Id']}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(advisory(one))
    own = ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false"]
    own += ["-c", "core.hooksPath=/dev/null"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "stored"]):
        tools.run(["git", *own, "-C", str(database), *words])


def advisory(stored: dict[str, Any]) -> str:
    """One of them in the form of the database."""
    lines = ["```toml", "[advisory]"]
    names = ("Id", "Package", "Date", "Informational")
    lines += [f"{name.lower()} = {json.dumps(stored[name])}" for name in names if name in stored]
    lines += ["[versions]", f"patched = {json.dumps(stored['Patched'])}"]
    lines += [f"unaffected = {json.dumps(stored.get('Unaffected', []))}", "```", ""]
    return "\n".join([*lines, f"# https://rustsec.org/advisories/{stored['Id']}", ""])


def advisories(given: Path | None, *, required: bool) -> bool:
    """Checks vulnerabilities."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = folder / "databases" / DATABASE_FOLDER
        error = clone(given.resolve().as_uri() if given else DATABASE, database)
        if error and given:
            raise tools.ToolError(f"{given} is no clone of the advisory database: {error}")
        if not error and not is_recent(database):
            raise tools.ToolError("the last commit of the advisory database is older than 30 days: fetch a newer one")
        if error:
            print(f"advisories: the database cannot be had: {error}")
            return not required and check_stored(folder, database)
        return check_with(database, folder)


def main() -> int:
    """Runs all checks, also after one that fails."""
    parser = argparse.ArgumentParser(prog="tests/run dependencies")
    parser.add_argument("--advisories", type=Path)
    parser.add_argument("--advisories-required", action="store_true")
    options = parser.parse_args()
    holds = deny("bans", "licenses", "sources")
    return 0 if advisories(options.advisories, required=options.advisories_required) and holds else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tools.ToolError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
