"""Tries the console in a real browser, against `stepwarden serve` with real orders.

    tests/run console [--screenshots] [--program FILE] [argument of pytest ...]

--screenshots   writes the pictures of the main views to infra/console instead of checking
--program FILE  uses this `stepwarden` instead of a debug build

Needs npm and Chromium, or root and apt to install them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from harness import command, tools

HERE = Path(__file__).resolve().parent
AXE = ("axe-core", "4.14.1", "axe.min.js")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    """Gives the exit status."""
    parser = command.parser("console")
    parser.add_argument("--screenshots", action="store_true")
    parser.add_argument("--program")
    options, arguments = parser.parse_known_args()
    environment = {
        **os.environ,
        "STEPWARDEN_PROGRAM": str(tools.stepwarden(options.program)),
        "STEPWARDEN_BROWSER": browser(),
        "STEPWARDEN_AXE": str(tools.npm_file(*AXE)),
    }
    if options.screenshots:
        words = [str(HERE / "screenshots.py"), str(tools.ROOT / "infra" / "console")]
    else:
        words = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=none"]
        # Each of the two has its own server and browser. In some files orders wait that later files mend.
        words += ["--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
        words += [str(HERE / "checks"), *arguments]
    # In a session of its own, where Ctrl-C reaches it once: through here.
    with subprocess.Popen([sys.executable, *words], cwd=tools.ROOT, env=environment, start_new_session=True) as child:
        try:
            status = child.wait()
        finally:
            # At an interrupt pytest stops the server and the browser.
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
    return min(status, 2) if status >= 0 else 2


def browser() -> str:
    """A Chromium of this machine, or of the distribution's package."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        tools.install_packages("chromium")
        found = shutil.which("chromium")
    if found is None:
        raise tools.ToolError("the package chromium brought no program chromium")
    return found


if __name__ == "__main__":
    command.run(main)
