"""All scenes, in the order of the report."""

from . import plain, repeats, undo, deadlines, poison, failing, under_way, alone  # noqa: F401
