"""Moves the cluster of Kubernetes to another version: writes the go.mod and go.sum of its build.

`bench/run bump 1.35.4` writes those in provision/overlays/kubernetes/build/cluster; `1.35` means the newest version of
that series. It names each of Kubernetes' own modules at the version that belongs to it, has Go find the others and
their sums, and sees that every package that the programs import is there. `--into FOLDER` leaves the project as it is.
Nothing is compiled: the next `up` of a cluster does that. The modules come from where Go's GOPROXY says, a few hundred
MB. No hosts.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.errors import EnvironmentLacks, InputError

BUILD = stage.PROJECT / "provision" / "overlays" / "kubernetes" / "build"
KUBERNETES = "k8s.io/kubernetes"
OWN = "./staging/src/"
"""Where Kubernetes' source has the modules that are published by themselves, too."""
WANTED = re.compile(r"v?(1\.[0-9]+)(\.[0-9]+)?")
LOOP = "case watchEvent := <-watcher.ResultChan():"
"""The line of client-go that compile.sh corrects."""


def version_of(wanted: str, known: Sequence[str]) -> str:
    """The version that is meant, such as `v1.35.4`: the newest of a series where only that is named. Raises
    InputError."""
    found = WANTED.fullmatch(wanted)
    if found is None:
        raise InputError(f"{wanted!r} is no version of Kubernetes: write 1.35.4, or 1.35 for its newest")
    series = [each for each in known if re.fullmatch(rf"v{re.escape(found[1])}\.[0-9]+", each)]
    if found[2] is None and series:
        return max(series, key=lambda each: int(each.rpartition(".")[2]))
    version = f"v{found[1]}{found[2] or ''}"
    if version not in series:
        there = ", ".join(series or [each for each in known if "-" not in each][-12:])
        raise InputError(f"there is no Kubernetes {wanted} to be had from Go's module source; there are {there}")
    return version


def go_mod(theirs: Mapping[str, Any], version: str) -> str:
    """A go.mod with Kubernetes at this version, before Go has filled it in. `theirs` is Kubernetes' own, as `go mod
    edit -json` prints it: its modules by themselves have the version v0.X.Y that belongs to v1.X.Y."""
    own = sorted(each["Old"]["Path"] for each in theirs["Replace"] if each["New"]["Path"].startswith(OWN))
    beside = f"v0{version.removeprefix('v1')}"
    settings = "".join(f"godebug {each['Key']}={each['Value']}\n\n" for each in theirs.get("GoDebug") or ())
    replaced = "".join(f"\t{path} => {path} {beside}\n" for path in own)
    return (
        f"module minigts/kubernetes\n\ngo {theirs['Go']}\n\n{settings}"
        f"require (\n\tk8s.io/component-base {beside}\n\t{KUBERNETES} {version}\n)\n\nreplace (\n{replaced})\n"
    )


def is_to_be_corrected(client_go: Path) -> bool:
    """Whether compile.sh's correction of client-go is for this version: since 1.36 Kubernetes has its own."""
    return LOOP in (client_go / "tools" / "record" / "event.go").read_text()


def go(*arguments: str, at: Path) -> str:
    """What Go prints. Raises EnvironmentLacks with the end of its errors."""
    try:
        done = subprocess.run(["go", *arguments], cwd=at, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise EnvironmentLacks("there is no Go on this machine") from error
    except subprocess.CalledProcessError as error:
        raise EnvironmentLacks(f"go {' '.join(arguments[:2])} failed: {error.stderr.strip()[-1500:]}") from error
    return done.stdout


def module(path: str, version: str, at: Path) -> dict[str, Any]:
    """Of a module that Go has fetched: its `Dir` and its `GoMod`."""
    found: dict[str, Any] = json.loads(go("mod", "download", "-json", f"{path}@{version}", at=at))
    return found


def bump(wanted: str, into: Path) -> None:
    """Write go.mod and go.sum of that version into a folder. Raises InputError, EnvironmentLacks."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="minigts-bump.") as name:
        work = Path(name)
        (work / "go.mod").write_text("module minigts/kubernetes\n")
        version = version_of(wanted, go("list", "-m", "-versions", KUBERNETES, at=work).split()[1:])
        console.note(f"Kubernetes {version}")
        theirs = json.loads(go("mod", "edit", "-json", module(KUBERNETES, version, work)["GoMod"], at=work))
        (work / "go.mod").write_text(go_mod(theirs, version))
        shutil.copy(BUILD / "cluster" / "main.go", work)
        console.note("finding the other modules and their sums")
        go("mod", "tidy", at=work)
        packages = len(go("list", "-deps", ".", at=work).splitlines())
        beside = f"v0{version.removeprefix('v1')}"
        corrected = not is_to_be_corrected(Path(module("k8s.io/client-go", beside, work)["Dir"]))
        for file in ("go.mod", "go.sum"):
            shutil.copy(work / file, into)
    console.note(f"{into}: go.mod and go.sum, for {packages} packages, after {time.monotonic() - begun:.0f} s")
    console.note(f"go {theirs['Go']} or newer compiles it")
    if corrected:
        console.note("this client-go has its loop corrected itself: compile.sh leaves it as it is")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="such as 1.35.4, or 1.35 for its newest")
    parser.add_argument("--into", type=Path, default=BUILD / "cluster", metavar="FOLDER", help="an existing folder")
    wanted = parser.parse_args()
    stage.perform(lambda: bump(wanted.version, wanted.into))


if __name__ == "__main__":
    main()
