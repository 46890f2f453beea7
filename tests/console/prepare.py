"""Finds or installs what the checks need, and prints where it is: interpreter, browser, accessibility rules."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "deployed"))

import tools  # noqa: E402

AXE_VERSION = "4.14.1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    """Prints three lines."""
    try:
        places = (
            tools.python_of(tools.environment("console", requirements=HERE / "requirements.txt")),
            browser(),
            axe(),
        )
    except tools.ToolError as error:
        print(f"console: {error}", file=sys.stderr)
        return 2
    print(*places, sep="\n")
    return 0


def browser() -> str:
    """A Chromium of the distribution; installed where there is none and that can be done, else asked for."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is not None:
        return found
    install("chromium")
    installed = shutil.which("chromium")
    if installed is None:
        raise tools.ToolError("the package chromium was installed, but brought no program chromium")
    return installed


def axe() -> Path:
    """The rules of axe-core, one script, out of its package on npm."""
    folder = tools.CACHE / f"axe-core-{AXE_VERSION}"
    script = folder / "axe.min.js"
    if script.exists():
        return script
    if shutil.which("npm") is None:
        install("npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tools.run(["npm", "pack", "--silent", f"axe-core@{AXE_VERSION}", "--pack-destination", str(folder)])
    with tarfile.open(folder / f"axe-core-{AXE_VERSION}.tgz") as package:
        member = package.extractfile("package/axe.min.js")
        if member is None:
            raise tools.ToolError("the package axe-core has no axe.min.js")
        # Under another name first, so that a script that stands there is a whole one.
        part = folder / "axe.part"
        part.write_bytes(member.read())
    part.rename(script)
    return script


def install(package: str) -> None:
    """Installs a package of the distribution."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise tools.ToolError(f"install the package {package}")
    print(f"console: installing {package}", file=sys.stderr)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    tools.run(["apt-get", "update", "--quiet"], env=quiet)
    tools.run(["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", package], env=quiet)


if __name__ == "__main__":
    sys.exit(main())
