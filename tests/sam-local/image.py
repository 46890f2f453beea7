"""A base image for functions, made of this machine's own files, for where that of AWS cannot be pulled.

`sam local` puts its emulator of the Lambda runtime on top. What is in here besides: a shell for that, the C library
that the programs were linked against, and root certificates.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

from harness.engine import Engine
from harness.tools import install_packages

REPOSITORY = "localhost/lambda-provided-standin"
NAME = f"{REPOSITORY}:debian"
BUSYBOX = Path("/bin/busybox")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
FOLDERS = ["bin", "etc", "opt", "proc", "tmp", "var/rapid", "var/runtime", "var/task"]
APPLETS = ["cat", "chmod", "cp", "ls", "mkdir", "mv", "rm", "sh"]


def make(engine: Engine, programs: list[Path], folder: Path) -> None:
    """Makes the image, with every library that one of the programs needs."""
    if not (BUSYBOX.exists() and CERTIFICATES.exists()):
        install_packages("busybox-static", "ca-certificates")
    archive = folder / "base.tar"
    with tarfile.open(archive, "w") as tar:
        for name in FOLDERS:
            add_folder(tar, name)
        tar.add(BUSYBOX.resolve(), "bin/busybox")
        for name in APPLETS:
            add_link(tar, f"bin/{name}", "busybox")
        for library in sorted(libraries([BUSYBOX, *programs])):
            # Under the name by which programs ask for it, whatever it points to here.
            tar.add(library.resolve(), str(library).lstrip("/"))
        tar.add(CERTIFICATES.resolve(), str(CERTIFICATES).lstrip("/"))
        add_file(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    engine.docker("import", str(archive), NAME)
    archive.unlink()


def remove(engine: Engine) -> None:
    """Removes the image, what `sam` made of it, and containers that were left behind."""
    for name in engine.docker("images", REPOSITORY, "--format", "{{.Repository}}:{{.Tag}}").splitlines():
        for container in engine.docker("ps", "--all", "--quiet", "--filter", f"ancestor={name}").split():
            engine.docker("rm", "--force", container)
        engine.docker("rmi", "--force", name)


def libraries(programs: list[Path]) -> set[Path]:
    """The shared objects that the programs are loaded with, the loader included; none for one that is static."""
    found: set[Path] = set()
    for program in programs:
        # For a static program it ends with an error.
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        found.update(Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE))
    return found


def add_folder(tar: tarfile.TarFile, name: str) -> None:
    """A folder that everybody may write to, as the runtime does."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o777
    tar.addfile(entry)


def add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    """A symbolic link."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)


def add_file(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """A small file."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tar.addfile(entry, io.BytesIO(content))
