"""What `stepwarden probe` finds of the three providers."""

from __future__ import annotations

from pathlib import Path

from card import CardProvider
from carrier import Carrier
from harness.probe import Probed
from harness.report import expect, expect_equal
from shop import Shop, order

TOKEN_S = 600.0
# No provider knows a call that its undo overtook. They answer too soon for a caller to hang up, and undos say nothing of
# their own.
BROKEN, UNKNOWN = ["forward-after-undo"], ["hung-up", "undo-twice"]
HOLDING = ["repeat", "at-once", "other-body", "other-step", "undo-of-nothing"]


def agree(program: Path, folder: Path) -> str:
    """A probe is right about each provider, and makes no call that it did not announce."""
    card, carrier = CardProvider("card-secret-1"), Carrier("carrier-secret", TOKEN_S, TOKEN_S)
    shop = Shop(program, folder, card, carrier)
    try:
        probed = Probed(program, folder / "config", order())
        expect_equal("status", probed.status, 1)
        for agent, provider in (("payment", card), ("inventory", shop.stock), ("shipping", carrier)):
            expect(not provider.faults, "\n".join(provider.faults[:3]))
            proof = [] if agent == "inventory" else ["wrong-token"]
            found = {"holds": HOLDING + proof, "does-not-hold": BROKEN, "cannot-tell": UNKNOWN}
            expect_equal(agent, {verdict: sorted(them) for verdict, them in probed.verdicts(agent).items()},
                         {verdict: sorted(them) for verdict, them in found.items()})
            calls = [call for call in provider.calls if call.path != "/oauth/token"]
            expect(0 < len(calls) <= probed.announced(agent), f"{agent}: {len(calls)} calls, {probed.announced(agent)}")
        expect(sum(intent.charges for intent in card.intents.values()) == 0, "money was taken, though no such step is probed")
        for secret in (card.secret, carrier.secret):
            expect(secret not in probed.text, "a secret is shown")
        probed.check_settings()
        return ", ".join(f"{agent}: {it['Times']['Answers']} answers" for agent, it in probed.agents.items())
    finally:
        for provider in (card, carrier, shop.stock):
            provider.close()
