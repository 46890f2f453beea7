"""File systems for a data directory."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

IMAGE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Place:
    """A folder on a file system of this kind."""

    kind: str
    folder: Path
    # Whether the suite may fill it up: it is used by nothing else.
    is_own: bool


class Places:
    """The folder, a tmpfs and a btrfs below it. Leaving its `with` unmounts them."""

    def __init__(self, scratch: Path) -> None:
        """`scratch` is an empty folder."""
        self.scratch = scratch
        self.missing: dict[str, str] = {}
        self._places: list[Place] = []

    def __enter__(self) -> Places:
        found = subprocess.run(
            ["stat", "--file-system", "--format=%T", str(self.scratch)], capture_output=True, text=True, check=True
        )
        self._mount("ext4", self._image("ext4", "mkfs.ext4", "-q"))
        if "ext4" in self.missing:
            self._places.append(Place(found.stdout.strip(), self.scratch, is_own=False))
        self._mount("tmpfs", ["-t", "tmpfs", "-o", f"size={IMAGE_BYTES}", "tmpfs"])
        self._mount("btrfs", self._image("btrfs", "mkfs.btrfs", "-q"))
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._places:
            if place.is_own:
                subprocess.run(["umount", "--lazy", str(place.folder)], check=False)

    def all(self) -> list[Place]:
        """All that there are."""
        return self._places

    def _image(self, kind: str, *maker: str) -> list[str] | None:
        """What mounts a new file system in a file; nothing where it cannot be made."""
        if shutil.which(maker[0]) is None:
            self.missing[kind] = f"there is no {maker[0]}"
            return None
        image = self.scratch / f"{kind}.img"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run([*maker, str(image)], check=True, capture_output=True)
        return ["-o", "loop", str(image)]

    def _mount(self, kind: str, what: list[str] | None) -> None:
        if what is None:
            return
        folder = self.scratch / kind
        folder.mkdir()
        mounted = subprocess.run(["mount", *what, str(folder)], capture_output=True, text=True)
        if mounted.returncode == 0:
            self._places.append(Place(kind, folder, is_own=True))
        else:
            self.missing[kind] = mounted.stderr.strip()
