"""The list of scenes. A module of `scenes` adds its own with `@scene`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from .stage import Stage


class When(enum.IntEnum):
    """What may be played at the same time. An agent may share what it knows of its service's health over all requests,
    so scenes of a failing service do not meet those of a healthy one.
    """

    CALM = 1
    FAILING = 2
    ALONE = 3


@dataclass(frozen=True)
class Scene:
    """One thing that an agent has to do right."""

    name: str
    title: str
    when: When
    play: Callable[[Stage], None]


SCENES: list[Scene] = []


def scene(when: When) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Adds a scene: its name is the function's, its title the first line of what the function says of itself."""

    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        title = (play.__doc__ or "").strip().splitlines()[0].rstrip(".")
        SCENES.append(Scene(play.__name__.replace("_", "-"), title, when, play))
        return play

    return add
