"""Workflows that the server of the checks does not have: the page gets them as the API's answer."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# A shop with steps side by side, each with its agent and its predecessors.
SHOP = {
    "check-order": ("shop", []),
    "reserve-inventory": ("inventory", ["check-order"]),
    "charge-payment": ("payment", ["check-order"]),
    "print-invoice": ("documents", ["charge-payment"]),
    "book-carrier": ("shipping", ["reserve-inventory"]),
    "ship-order": ("shipping", ["book-carrier", "charge-payment"]),
    "tell-customer": ("mail", ["ship-order", "print-invoice"]),
}


def workflow(name: str, version: int, steps: dict[str, tuple[str, list[str]]], **members: object) -> dict[str, Any]:
    """A version of a workflow as the API shows it."""
    settings = {"CompleteWithinMs": 30_000, "MaxFailures": 3, "OnRejected": "compensate", "OnExhausted": "hold"}
    shown = [
        {"Name": step, "Agent": agent, "After": after, **settings, "HorizonMs": 43_200_000}
        for step, (agent, after) in steps.items()
    ]
    return {"Name": name, "Version": version, "Current": False, "Priority": "normal", "Steps": shown, **members}


def shops() -> list[dict[str, Any]]:
    """Three versions of a shop, of which one is tried at a share of the orders, and a return."""
    first = {step: SHOP[step] for step in ("check-order", "reserve-inventory")}
    back = {"receive-parcel": ("stock", []), "refund": ("payment", ["receive-parcel"])}
    return [
        workflow("shop", 1, first, RetiredAt="2026-11-20T10:00:00Z"),
        workflow("shop", 2, SHOP, Current=True, Default=True),
        workflow("shop", 3, SHOP, SharePercent=20, Default=True),
        workflow("return", 1, back, Current=True),
    ]


def answer(page: Page, workflows: list[dict[str, Any]]) -> None:
    """Lets the page have these workflows."""
    page.route("**/workflows", lambda route: route.fulfill(json={"Workflows": workflows}))
