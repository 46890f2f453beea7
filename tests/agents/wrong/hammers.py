"""Asks again at once, whatever the service says: it is never left in peace to recover."""

from __future__ import annotations

from _right import Again, Agent, main


class Hammers(Agent):
    def back_off(self, answer: Again, tries: int) -> float:
        return 0.05


main(Hammers)
