"""What the kit says at its end: a table for people, or JSON for programs."""

from __future__ import annotations

import json
import textwrap

from .runner import Verdict

WIDTH = 118


def table(verdicts: list[Verdict]) -> str:
    """A line for each scene, and under it what the agent did wrong."""
    width = max(len(verdict.name) for verdict in verdicts)
    lines = []
    for verdict in verdicts:
        lines.append(f"{_word(verdict):7}  {verdict.name:{width}}  {verdict.title}")
        if verdict.skipped:
            lines.append(f"{'':9}{'':{width}}  {verdict.skipped}")
        for fault in verdict.faults:
            lines += textwrap.wrap(fault, WIDTH, initial_indent=f"{'':9}- ", subsequent_indent=f"{'':11}")
    failed = sum(not verdict.passed for verdict in verdicts)
    skipped = sum(verdict.skipped is not None for verdict in verdicts)
    end = "the agent conforms" if failed == 0 else f"the agent fails in {failed} of {len(verdicts)} scenes"
    return "\n".join([*lines, "", end + (f" ({skipped} skipped)" if skipped else "")])


def as_json(verdicts: list[Verdict]) -> str:
    """The same for programs."""
    scenes = [
        {
            "Name": verdict.name,
            "Title": verdict.title,
            "Verdict": _word(verdict),
            "Faults": verdict.faults,
            **({"Skipped": verdict.skipped} if verdict.skipped else {}),
            "TookMs": round(verdict.took_s * 1000),
        }
        for verdict in verdicts
    ]
    return json.dumps(
        {"Conforms": all(verdict.passed for verdict in verdicts), "Scenes": scenes}, indent=2, ensure_ascii=False
    )


def _word(verdict: Verdict) -> str:
    if verdict.faults:
        return "FAILED"
    return "skipped" if verdict.skipped else "ok"
