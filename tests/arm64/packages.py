"""Packages of Debian for a build and a run for arm64, unpacked under `target/`: the system gets none of them."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from harness import tools
from harness.tools import ToolError

TARGET = "aarch64-unknown-linux-gnu"
LOADER = "lib/ld-linux-aarch64.so.1"


def compiler() -> dict[str, str]:
    """Variables for a build with a compiler for the target: none where the one in use has it, or rustup brings it."""
    if has_target("rustc"):
        return {}
    with contextlib.suppress(ToolError, FileNotFoundError):
        tools.run(["rustup", "target", "add", TARGET], within_s=300)
        return {}
    folder = unpacked("rust", "rustc-web", "libstd-rust-web-dev", "libstd-rust-web-dev:arm64")
    libraries = ":".join(str(path) for path in folder.glob("**/lib/x86_64-linux-gnu"))
    rustc = folder / "rustc"
    rustc.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {folder}/usr/bin/rustc "$@"\n')
    rustc.chmod(0o755)
    if not has_target(str(rustc)):
        raise ToolError(f"{rustc} does not compile for {TARGET}: install it for the rustc in use, or remove {folder}")
    # cargo-lambda asks rustup for the target, unless there is no program of that name.
    return {"RUSTC": str(rustc), "RUSTUP": "none"}


def has_target(rustc: str) -> bool:
    """Whether a compiler has the standard library for the target."""
    return Path(tools.run([rustc, "--print", "target-libdir", "--target", TARGET]).stdout.strip()).is_dir()


def emulator() -> list[str]:
    """The beginning of a command that runs a program for arm64 on another processor."""
    qemu, libraries = shutil.which("qemu-aarch64-static"), Path("/usr/aarch64-linux-gnu")
    if qemu is None or not (libraries / LOADER).exists():
        folder = unpacked("qemu", "qemu-user-static", "libc6-arm64-cross", "libgcc-s1-arm64-cross")
        qemu, libraries = str(folder / "usr" / "bin" / "qemu-aarch64-static"), folder / "usr" / "aarch64-linux-gnu"
    return [qemu, "-L", str(libraries)]


def unpacked(name: str, *packages: str) -> Path:
    """A folder with the files of packages, and of those that they depend on and the system lacks."""
    folder = tools.TARGET / "arm64" / name
    if (folder / "complete").exists():
        return folder
    if shutil.which("apt-get") is None:
        raise ToolError(f"install {' '.join(packages)}, or run this where the apt of Debian is")
    print(f"unpacking {' '.join(packages)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="stepwarden-apt-") as scratch:
        lists, files = Path(scratch) / "lists", Path(scratch) / "files"
        for made in (lists / "partial", files / "partial"):
            made.mkdir(parents=True)
        options = ["-o", f"Dir::State={scratch}", "-o", f"Dir::Cache={scratch}", "-o", "APT::Sandbox::User=root"]
        for processor in (native(), *(package.split(":")[1] for package in packages if ":" in package)):
            options += ["-o", f"APT::Architectures::={processor}"]
        tools.run(["apt-get", *options, "update"])
        depends = ["apt-cache", *options, "depends", "--recurse", "--important", *packages]
        # Other lines are indented, or in brackets; a colon is before a foreign processor.
        needed = {line for line in tools.run(depends).stdout.splitlines() if line[0] not in " <" and ":" not in line}
        installed = tools.run(["dpkg-query", "--show", "--showformat", "${Package}\n"]).stdout.splitlines()
        tools.run(["apt-get", *options, "download", *packages, *(needed - {*installed, *packages})], cwd=files)
        for file in files.glob("*.deb"):
            tools.run(["dpkg", "-x", str(file), str(folder)])
    (folder / "complete").touch()
    return folder


def native() -> str:
    """Debian's name for this machine's processor."""
    return tools.run(["dpkg", "--print-architecture"]).stdout.strip()
