#!/usr/bin/env python3
"""Prints the version that is built: of a source distribution, of the tag "v1.2.3", or of the commits after it.

A commit after v1.2.3 is 1.2.4.devN+gHASH, where N counts the commits; before the first tag it is 0.1.0.devN+gHASH.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST = "0.1.0"
UNKNOWN = "0+unknown"  # neither a repository nor a source distribution


def git(*arguments: str) -> str | None:
    """What git says of this folder; None where it says nothing, or is not there."""
    # In the containers that build wheels the folder belongs to somebody else.
    command = ["git", "-c", f"safe.directory={ROOT.as_posix()}", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def of_source_distribution() -> str | None:
    """The version that the metadata of an unpacked source distribution names."""
    metadata = ROOT / "PKG-INFO"
    found = re.search(r"^Version: (.+)$", metadata.read_text("utf-8"), re.MULTILINE) if metadata.exists() else None
    return found and found[1]


def of_repository() -> str | None:
    """The version of the commit that is checked out."""
    if not (ROOT / ".git").exists():
        return None
    described = git("describe", "--tags", "--long", "--match", "v[0-9]*")
    if described is not None:
        tag, n_commits, commit = described.removeprefix("v").rsplit("-", 2)
        return tag if n_commits == "0" else f"{after(tag)}.dev{n_commits}+{commit}"
    n_commits, commit = git("rev-list", "--count", "HEAD"), git("rev-parse", "--short", "HEAD")
    return f"{FIRST}.dev{n_commits}+g{commit}" if n_commits and commit else None


def after(version: str) -> str:
    """The next patch; what comes after a candidate is the version itself."""
    release = re.match(r"\d+(\.\d+)*", version)[0]
    numbers = release.split(".")
    return release if release != version else ".".join([*numbers[:-1], str(int(numbers[-1]) + 1)])


print(of_source_distribution() or of_repository() or UNKNOWN)
