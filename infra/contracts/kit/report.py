"""What the kit says at its end: a table for people, or JSON for programs."""

from __future__ import annotations

import json
import textwrap

from .runner import Verdict

WIDTH = 118


def table(verdicts: list[Verdict], scenes: int) -> str:
    """A line for each scene, and under it what the agent did wrong. There are so many `scenes` in all."""
    width = max(len(verdict.name) for verdict in verdicts)
    lines = []
    for verdict in verdicts:
        lines.append(f"{_word(verdict):7}  {verdict.name:{width}}  {verdict.title}")
        if verdict.skipped:
            lines.append(f"{'':9}{'':{width}}  {verdict.skipped}")
        for fault in verdict.faults:
            lines += textwrap.wrap(fault, WIDTH, initial_indent=f"{'':9}- ", subsequent_indent=f"{'':11}")
    failed = sum(not verdict.passed for verdict in verdicts)
    is_all = len(verdicts) > scenes and not not_tried(verdicts)
    conforms = "the agent conforms" if is_all else "the agent conforms in what was tried"
    end = [conforms if failed == 0 else f"the agent fails in {failed} of {len(verdicts)} scenes"]
    return "\n".join([*lines, "", *end, *filter(None, [not_tried(verdicts)])])


def not_tried(verdicts: list[Verdict]) -> str:
    """Which scenes could not be played, and why; nothing if all were."""
    reasons = [f"{verdict.name} ({verdict.skipped})" for verdict in verdicts if verdict.skipped]
    scenes = "1 scene was" if len(reasons) == 1 else f"{len(reasons)} scenes were"
    return f"{scenes} not tried: {'; '.join(reasons)}" if reasons else ""


def as_json(verdicts: list[Verdict], conforms: bool) -> str:
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
    whole = {
        "Conforms": conforms,
        "NotTried": [verdict.name for verdict in verdicts if verdict.skipped],
        "Scenes": scenes,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False)


def _word(verdict: Verdict) -> str:
    if verdict.faults:
        return "FAILED"
    return "skipped" if verdict.skipped else "ok"
