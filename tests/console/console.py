"""The console as a person sees it: opens views, fills in dialogs, and writes down what the browser complains about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

PATIENCE_MS = 30_000
# So that pictures and times are the same everywhere.
LOCALE, ZONE = "en-GB", "Europe/Berlin"
# What the browser writes of its own accord where an answer is a refusal; the checks look at what the page makes of it.
REFUSED = "Failed to load resource"

expect.set_options(timeout=PATIENCE_MS)


class Console:
    """One page of the console."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._heard)
        page.on("request", self._asked)

    @classmethod
    @contextmanager
    def on(
        cls, browser: Browser, base: str, *, width: int = 1200, height: int = 800, dark: bool = False, **options: Any
    ) -> Iterator[Console]:
        """A page of this size."""
        scheme = "dark" if dark else "light"
        options = {"locale": LOCALE, "timezone_id": ZONE, **options}
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        try:
            yield cls(context.new_page(), base)
        finally:
            context.close()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and REFUSED not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def open(self, view: str = "#/") -> None:
        """Opens a view, and waits until it is shown."""
        self.page.goto(f"{self.base}/{view}")
        self.shown(view)

    def shown(self, view: str) -> None:
        """Waits until a view is shown."""
        expect(self.page.locator("#view")).to_have_attribute("data-shown", view)

    def heading(self, text: str) -> None:
        """Waits until the page has this heading."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(text)

    def dialog(self) -> Locator:
        """The dialog that is open."""
        dialog = self.page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        return dialog

    def act(
        self, button: str, *, by: str = "ann", reason: str = "checked with the shop", label: str = "Reason"
    ) -> Locator:
        """Opens the dialog of an action and fills it in; it is not sent yet."""
        self.page.get_by_role("button", name=button).click()
        dialog = self.dialog()
        dialog.get_by_label("Your name").fill(by)
        dialog.get_by_label(label).fill(reason)
        return dialog

    def send(self, button: str, words: str, *, error: bool = False) -> None:
        """Sends what the dialog says, and waits until it has a result, or an error, with these words."""
        dialog = self.dialog()
        dialog.get_by_role("button", name=button, exact=True).click()
        expect(dialog.locator("#dialog-error" if error else "#dialog-result")).to_contain_text(words)

    def done(self, button: str, words: str) -> None:
        """The same, and closes the dialog."""
        self.send(button, words)
        self.dialog().get_by_role("button", name="Close", exact=True).click()

    def sees(self, task: dict[str, Any]) -> None:
        """Waits until the page of an order shows it in this version or a later one."""
        self.page.wait_for_function(
            "(version) => Number(document.querySelector('#holds dd')?.textContent) >= version", arg=task["Version"]
        )

    def violations(self) -> list[str]:
        """What the accessibility rules find wrong with the page as it is, whatever its weight."""
        # As the browser's own tools do it: the page's policy lets no foreign script in.
        self.page.evaluate(Path(os.environ["STEPWARDEN_AXE"]).read_text())
        found = self.page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [f"{one['impact']} {one['id']}: {[node['target'] for node in one['nodes']]}" for one in found]

    def overflow(self) -> list[str]:
        """What stands out to the right of the page; nothing where it fits."""
        return self.page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] :
                 [...document.querySelectorAll('body *')]
                   .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
                   .map((one) => `${one.tagName}.${one.getAttribute('class')}`)"""
        )
