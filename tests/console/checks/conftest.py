"""What every check has: a server with orders that happened, a browser, and a page that complains about nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import Console
from harness.report import until
from harness.serve import Server, bury, folder
from inventory import Inventory
from playwright.sync_api import Browser, sync_playwright
from world import BURIED, LETTERS, happen


@pytest.fixture(scope="session")
def inventory() -> Iterator[Inventory]:
    """An inventory service that does as it is told."""
    with Inventory() as service:
        yield service


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, inventory: Inventory) -> Iterator[Server]:
    """A server where orders were processed, declined and compensated, and where some wait in Error."""
    program, data = Path(os.environ["STEPWARDEN_PROGRAM"]), tmp_path_factory.mktemp("console") / "data"
    # In some minutes most cards are declined. That is no reason to hold payment back.
    payment = "[agents.payment]\nbreaker.rejections.on = false\n"
    config = folder(data.with_name("folder"), f"[agents.inventory]\n{payment}[agents.shipping]\n", {})
    options = ("--inventory-url", inventory.url, "--config", str(config), "--supervise-every", "100ms")
    server = Server(program, data, *options)
    server.start()
    try:
        happen(server, inventory)
        # Letters can only be put in where nobody else writes.
        server.stop()
        bury(data, BURIED)
        server.start()
        until("the dead letters are settled", lambda: server.get("/overview")["DeadLetters"]["Count"] >= LETTERS)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=os.environ["STEPWARDEN_BROWSER"], args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def console(browser: Browser, server: Server) -> Iterator[Console]:
    """The console on a desk, in a browser that knows nothing of earlier checks. A complaint of it is a failure."""
    with Console.on(browser, server.url) as opened:
        yield opened
        assert opened.complaints == []
