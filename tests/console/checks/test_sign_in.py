"""Where the server asks for tokens: signing in and out, a token that is not known, and a role that may not act."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import Console
from harness.serve import Server, run
from playwright.sync_api import Browser, expect


class Tokens:
    """A server with a file of tokens."""

    def __init__(self, base: Path) -> None:
        self.program = Path(os.environ["STEPWARDEN_PROGRAM"])
        self.file = base / "tokens.toml"
        self.viewer = self.add("ann", "viewer")
        self.shop = self.add("shop", "application")
        self.server = Server(self.program, base / "data", "--tokens", str(self.file))

    def add(self, name: str, role: str) -> str:
        """A new token."""
        return run(self.program, "token", "add", name, "--role", role, "--tokens", str(self.file)).stdout.strip()


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    """The server runs."""
    tokens = Tokens(tmp_path_factory.mktemp("tokens"))
    with tokens.server:
        yield tokens


# The height of the page's top where it has one line, in pixels. Two have 74.
LINE_MAX = 60


def sign_in(console: Console, token: str) -> None:
    """Gives the token."""
    console.heading("Sign in")
    console.page.get_by_label("Token").fill(token)
    console.page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("width", [1920, 1366, 1200, 360])
def test_a_person_signs_in_and_out(browser: Browser, known: Tokens, width: int) -> None:
    with Console.on(browser, known.server.url, width=width) as console:
        console.page.goto(f"{known.server.url}/#/orders")
        sign_in(console, "sw_mistyped")
        expect(console.page.locator("#problem")).to_contain_text("This token is not known.")
        assert console.violations() == []
        assert console.overflow() == []
        sign_in(console, known.viewer)
        console.heading("Orders")
        assert console.overflow() == []
        top = console.page.locator(".bar").bounding_box()
        assert width < 1366 or (top is not None and top["height"] < LINE_MAX)
        console.page.reload()
        console.heading("Orders")
        console.page.get_by_role("button", name="Sign out").click()
        console.heading("Sign in")
        expect(console.page.locator("#problem")).to_have_count(0)
        console.page.reload()
        console.heading("Sign in")
        assert console.complaints == []


def test_a_caller_without_the_role_is_told_which_one_it_needs(browser: Browser, known: Tokens) -> None:
    with Console.on(browser, known.server.url) as console:
        console.page.goto(known.server.url)
        sign_in(console, known.shop)
        expect(console.page.locator("#problem")).to_contain_text("needs the role viewer or operator")
        console.page.get_by_role("link", name="Orders").click()
        console.heading("Orders")
        assert console.complaints == []
