"""The example agent, for those that get one thing wrong."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "infra" / "contracts" / "examples" / "python"))

from agent import Agent, Request, main  # noqa: E402
from service import Again, Conflict, Done, Failed  # noqa: E402

__all__ = ["Again", "Agent", "Conflict", "Done", "Failed", "Request", "main"]
