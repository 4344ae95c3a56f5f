"""Renews what builds are held to, when minigts moves to a newer release of Debian.

`bench/run locks packages` writes the lock of each compile root and of the image (provision/*/packages.lock): the
packages that the Debian mirror has now. It takes some ten minutes. `bench/run locks digests` writes provision/digests:
the sums of the image, kernel and clock that are built here, and of the agent in that image. No hosts.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bench import stage
from minigts.artifacts import checksums, digests
from minigts.cli import console
from minigts.errors import EnvironmentLacks
from minigts.machine import shell
from minigts.providers.uml.build import image, provenance

RECIPES = ("agent", "clock", "kernel", "image")
BUILD_TIMEOUT_S = 3600.0
AGENT = "/usr/lib/minigts/agent"
"""The agent's path in the image."""


def write_locks(recipes: Iterable[str]) -> None:
    """Write the lock of each recipe. Raises CommandFailed."""
    for name in recipes:
        console.note(f"writing provision/{name}/packages.lock")
        script = stage.PROJECT / "provision" / name / "build.sh"
        shell.run_group([str(script), "--lock"], timeout_s=BUILD_TIMEOUT_S, env={"PATH": image.search_path()})


def sums() -> Iterator[tuple[str, str]]:
    """The place and the digest of each file of the built parts. Raises EnvironmentLacks when a part is not built, or
    not with the packages of its lock."""
    built = provenance.new_lab_parts(virtual=True)
    if lacking := sorted({*digests.PARTS.values()} - built.keys()):
        raise EnvironmentLacks(f"not built yet: {', '.join(lacking)}; build them with: minigts setup uml")
    for word, directory in built.items():
        if (unlocked := directory / digests.UNLOCKED).is_file():
            raise EnvironmentLacks(f"the {word} is not to be expected elsewhere: {unlocked.read_text().strip()}")
        for each in checksums.entries(directory):
            yield f"{word}/{each.name}", each.sha256
    yield "agent/agent", _agent(built["image"] / "root.ext4")


def _agent(root: Path) -> str:
    with tempfile.NamedTemporaryFile() as file:
        argv = ["debugfs", "-R", f"dump {AGENT} {file.name}", str(root)]
        subprocess.run(argv, check=True, capture_output=True, env={"PATH": image.search_path()})
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_of(found: Mapping[str, str]) -> str:
    """The text of provision/digests, in the order of places."""
    return "".join(f"{digest}  {place}\n" for place, digest in sorted(found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packages = verbs.add_parser("packages", help="write the locks")
    packages.add_argument("--only", action="append", choices=RECIPES, help="the lock of this recipe")
    verbs.add_parser("digests", help="write the digests")
    wanted = parser.parse_args()
    if wanted.verb == "packages":
        write_locks(wanted.only or RECIPES)
        console.note("now: minigts setup uml, the tests, and bench/run locks digests")
    else:
        digests.file().write_text(text_of(dict(sums())), encoding="utf-8")
        console.note(f"{digests.file().relative_to(stage.PROJECT)} is written; what it expected before: git diff")


if __name__ == "__main__":
    main()
