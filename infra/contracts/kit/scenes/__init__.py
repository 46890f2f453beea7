"""All scenes, in the order of the report."""

from . import plain, repeats, undo, deadlines, poison, failing, alone  # noqa: F401
