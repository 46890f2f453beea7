"""Tells whether an agent keeps the contract of ../README.md, by playing the scheduler and the remote service around it.

    python -m kit --make-queues PREFIX
    python -m kit --requests URL --replies URL --replies-high URL --listen PORT

The first makes queues and prints their URLs. Start the agent under test on them, with http://127.0.0.1:PORT as the base
URL of its service, then the second. It needs Python 3.10, boto3, AWS credentials (any will do for an emulator) and, for
the scene reply-not-taken, the right to set attributes of the queue of replies. Without that, or without
--replies-high, a scene cannot be played, and nobody knows whether the agent conforms.

Exit status: 0 if the agent conforms, 1 if it does not, 2 if that could not be found out, be it because a scene could
not be played (0 with --allow-skipped).
"""

from __future__ import annotations

import argparse
import sys
import traceback

from botocore.exceptions import BotoCoreError, ClientError

from . import queues, report, scenes  # noqa: F401  (the scenes enter themselves in the list)
from .inbox import Inbox
from .queues import Queue, Unfit
from .runner import World, play
from .scene import SCENES, Scene
from .service import Service


def arguments() -> argparse.Namespace:
    """What the caller wants."""
    parser = argparse.ArgumentParser(
        prog="python -m kit", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", metavar="URL", help="queue that the agent takes requests from")
    parser.add_argument("--replies", metavar="URL", help="queue that the agent sends replies to")
    parser.add_argument(
        "--replies-high", metavar="URL", help="queue for replies of high priority; without it one scene is not played"
    )
    parser.add_argument("--listen", metavar="PORT", type=int, help="port of 127.0.0.1 for the remote service")
    parser.add_argument("--endpoint-url", metavar="URL", help="where SQS is, for an emulator")
    parser.add_argument("--only", metavar="SCENE", action="append", help="play this scene alone; may be repeated")
    parser.add_argument(
        "--one-by-one",
        action="store_true",
        help="play one scene after the other: slower, for agents that\nhandle one message at a time",
    )
    parser.add_argument(
        "--allow-skipped",
        action="store_true",
        help="status 0 also where scenes could not be played and all\nothers went well",
    )
    parser.add_argument("--json", action="store_true", help="say the result in JSON")
    parser.add_argument("--list", action="store_true", help="list the scenes and end")
    parser.add_argument("--make-queues", metavar="PREFIX", help="make queues for the kit, print their URLs and end")
    return parser.parse_args()


def main() -> int:
    """The program; gives its exit status."""
    options = arguments()
    # What an agent wrote may be nothing that this terminal can show.
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return run(options)
    except Unfit as unfit:
        print(unfit, file=sys.stderr)
    except (BotoCoreError, ClientError) as error:
        print(f"SQS: {error}", file=sys.stderr)
    except Exception:  # else Python would end with the status that says that the agent is wrong
        traceback.print_exc()
        print("the kit itself failed, which says nothing about the agent", file=sys.stderr)
    return 2


def run(options: argparse.Namespace) -> int:
    """Does what the options say. Raises Unfit where they, or the queues, cannot be used."""
    if options.list:
        print("\n".join(f"{scene.name:24}  {scene.title}" for scene in SCENES))
        return 0
    client = queues.connect(options.endpoint_url)
    if options.make_queues:
        for name, url in queues.make(client, options.make_queues).items():
            print(f"{name:12}  {url}")
        return 0
    if not (options.requests and options.replies and options.listen):
        raise Unfit("--requests, --replies and --listen are needed; see --help")
    chosen = choose(options.only)
    requests, replies = Queue(client, options.requests), Queue(client, options.replies)
    high = Queue(client, options.replies_high) if options.replies_high else None
    dead_letters = queues.dead_letters_of(requests)
    queues.must_be_empty(requests, replies, dead_letters, *([high] if high else []))
    try:
        service = Service(options.listen)
    except (OSError, OverflowError) as error:
        raise Unfit(f"nothing can listen on port {options.listen}: {error}") from error
    inbox = Inbox(service.changed, replies, high)
    try:
        verdicts = play(
            World(service, inbox, requests, replies, dead_letters, high is not None), chosen, options.one_by_one
        )
    finally:
        inbox.close()
        service.close()
    passed = all(verdict.passed for verdict in verdicts)
    missing = "" if options.allow_skipped else report.not_tried(verdicts)
    print(report.as_json(verdicts, passed and not missing) if options.json else report.table(verdicts, len(SCENES)))
    if passed and missing:
        raise Unfit(f"whether the agent conforms is not known: {missing} (--allow-skipped is for whoever asks no more)")
    return 0 if passed else 1


def choose(only: list[str] | None) -> list[Scene]:
    """The scenes of these names; all, where none is named."""
    known = {scene.name for scene in SCENES}
    if unknown := [name for name in only or [] if name not in known]:
        raise Unfit(f"there is no scene {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return [scene for scene in SCENES if not only or scene.name in only]


if __name__ == "__main__":
    sys.exit(main())
