"""Pictures of the main views for the README: of orders that really happened, over a few minutes, so that there is
something to see."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

import sale
from console import Console
from harness.report import until
from harness.serve import Server
from harness.tools import ROOT
from inventory import Inventory
from journey import Bookings, asked
from journey import folder as journey_folder
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from shapes import answer, shops
from world import declined, stuck

# How long orders come in, and how many in a second: the bars of the throughput are minutes.
HAPPENING_S = 240
PAGES = ROOT / "functions" / "api" / "src" / "console"
PHONE = {"width": 360, "height": 760, "device_scale_factor": 2}
PER_SECOND = (3, 5, 4, 6, 2, 5)
BYTES_MAX = 150_000
COLOURS = 256
# Colours as near as this, of 256 in each of red, green and blue, are taken for one.
NEAR = 3


def main() -> int:
    """Writes the pictures into the folder that is given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright, Inventory() as inventory:
        server = Server(Path(os.environ["STEPWARDEN_PROGRAM"]), Path(data) / "data", "--inventory-url", inventory.url)
        browser = playwright.chromium.launch(executable_path=os.environ["STEPWARDEN_BROWSER"], args=["--no-sandbox"])
        try:
            server.start()
            addresses = happen(server, inventory)
            with Console.on(browser, server.url, height=900) as console:
                console.open(addresses["overview"])
                write(console, folder / "overview.png", whole=True)
                console.open(addresses["order"])
                write(console, folder / "order.png")
                console.open(addresses["error"])
                console.act("Resubmit…", reason="stock-taking is over")
                write(console, folder / "resubmit.png")
                console.open("#/service/payment?last=30m")
                write(console, folder / "service.png")
                answer(console.page, shops())
                console.open("#/workflow/shop%402")
                write(console, folder / "workflow.png")
            with Console.on(browser, server.url, height=900, dark=True) as console:
                console.open(addresses["overview"])
                write(console, folder / "overview-dark.png", whole=True)
            with Console.on(browser, server.url, **PHONE) as console:
                console.open(addresses["waiting"])
                write(console, folder / "phone.png")
            approval(browser, Path(data), folder)
            lines(browser, Path(data), folder)
        finally:
            browser.close()
            server.stop()
    (folder / "pages.sha256").write_text(f"{digest_of_pages()}\n")
    return 0


def digest_of_pages() -> str:
    """Of all files of the console, in the order of their names. A test of the repository compares it."""
    digest = hashlib.sha256()
    for file in sorted(PAGES.iterdir()):
        if file.suffix in (".js", ".css", ".html"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def approval(browser: Browser, data: Path, folder: Path) -> None:
    """The example of a journey, as a manager decides on one."""
    program = Path(os.environ["STEPWARDEN_PROGRAM"])
    with Bookings() as bookings:
        config = journey_folder(data / "journey", bookings, "72h")
        with Server(program, data / "approval", "--config", str(config)) as server:
            order = asked(server)
            with Console.on(browser, server.url, height=980) as console:
                console.open(f"#/order/{order['OrderID']}")
                console.act("Approve…", reason="the customer is worth it")
                console.page.locator("#decided").wait_for()
                write(console, folder / "approval.png")
                console.open("#/workflow/journey%402")
                write(console, folder / "journey.png")


def lines(browser: Browser, data: Path, folder: Path) -> None:
    """Orders of many lines, of which some wait for a person, on a desk and on a phone."""
    program = Path(os.environ["STEPWARDEN_PROGRAM"])
    with sale.Shelves() as shelves:
        config = sale.folder(data / "sale", shelves)
        with Server(program, data / "sales", "--config", str(config)) as server:
            for count, workflow, refused in ((18, "sale", {"rug-012"}), (200, "pick", {"rug-111", "mug-199"})):
                shelves.refused = refused
                order = sale.held(server, shelves, count, workflow)
                for name, size in (("", {"height": 900}), ("-phone", PHONE)):
                    with Console.on(browser, server.url, **size) as console:
                        console.open(f"#/order/{order['OrderID']}")
                        console.page.locator("#steps summary").filter(has_text=f" of {count} done").last.click()
                        console.page.mouse.move(0, 0)
                        # From the steps on, on a phone from those of the lines.
                        begin = console.page.locator("details.elements[open]" if name else "#steps")
                        begin.evaluate("(one) => scrollTo(0, one.offsetTop - 80)")
                        write(console, folder / f"lines-{count}{name}.png")


def happen(server: Server, inventory: Inventory) -> dict[str, str]:
    """Orders come in for a while; some are declined, some wait for a person, and at the end payment is down."""
    start = time.monotonic()
    numbers = itertools.count(1)
    for second in range(HAPPENING_S):
        for _ in range(PER_SECOND[second // 40 % len(PER_SECOND)]):
            number = next(numbers)
            total = 10 + number % 90
            server.order(
                wait=False,
                Item="mug",
                CorrelationID=f"cart-{number}",
                Customer={"Email": f"c{number}@example.org"},
                Total=total,
            )
        if second % 12 == 0:
            declined(server, CorrelationID=f"tea-{second}")
        if second % 45 == 0:
            stuck(server, inventory, f"stuck-{second}", CorrelationID=f"pot-{second}")
        time.sleep(max(0.0, start + second + 1 - time.monotonic()))
    flaky = server.order(
        Item="mug",
        CorrelationID="cart-flaky",
        StandIn={"payment": {"Flaky": 3}, "shipping": {"SlowMs": 900, "Decline": "no-carrier"}},
    )
    error = server.get("/orders?state=Error&limit=1")["Orders"][0]
    server.switch("payment", down=True)
    waiting = [server.order(wait=False, Item="mug", CorrelationID=f"late-{number}") for number in range(12)]
    until("payment is known to fail", lambda: server.health("payment") == "Open")
    seen = server.seen(waiting[0]["OrderID"], lambda task: "NotBefore" in task["Steps"][1])
    return {
        "overview": "#/",
        "order": f"#/order/{flaky['OrderID']}",
        "error": f"#/order/{error['OrderID']}",
        "waiting": f"#/order/{seen['OrderID']}",
    }


def write(console: Console, file: Path, whole: bool = False) -> None:
    """Takes a picture and makes it small: a page has few colours."""
    taken = console.page.screenshot(full_page=whole, animations="disabled", caret="hide")
    picture = Image.open(BytesIO(taken)).convert("RGB")
    reduced(picture).save(file, optimize=True)
    size = file.stat().st_size
    print(f"console: {file} ({size // 1000} kB)", file=sys.stderr)
    if size > BYTES_MAX:
        raise SystemExit(f"{file} has {size} bytes, which is more than {BYTES_MAX}")


def reduced(picture: Image.Image) -> Image.Image:
    """The picture in few colours. Those of areas stay as they are; the edges of letters are moved to the nearest."""
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    kept: list[tuple[int, int, int]] = []
    places: dict[tuple[int, int, int], int] = {}
    for _, colour in counted:
        away = [max(abs(one - other) for one, other in zip(colour, known, strict=True)) for known in kept]
        if len(kept) < COLOURS and (not away or min(away) > NEAR):
            places[colour] = len(kept)
            kept.append(colour)
        else:
            places[colour] = away.index(min(away))
    small = Image.new("P", picture.size)
    small.putpalette([value for colour in kept for value in colour])
    small.putdata([places[colour] for colour in picture.getdata()])
    return small


if __name__ == "__main__":
    sys.exit(main())
