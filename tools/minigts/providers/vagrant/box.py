"""The box that virtual machines start from: the image's own recipe and provision/box on top of it, as a disk.

A box is a directory named for the hash of all that goes into it, the key of this machine among it. Vagrant knows it by
a version, which is the time of its making: a box that is built anew replaces the earlier one's volume.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.machine import shell
from minigts.providers.uml import image

NAME = "minigts"
ASSEMBLE_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Box:
    """A complete box."""

    directory: Path

    @property
    def version(self) -> str:
        return (self.directory / "version").read_text().strip()

    @property
    def catalogue(self) -> Path:
        """What `box_url` names: the box's versions, of which there is one (vagrant's "box metadata")."""
        return self.directory / "catalogue.json"

    @property
    def disk_head(self) -> Path:
        """The disk's first part: boot loader, kernel and initrd."""
        return self.directory / "boot" / "head.img"


@dataclass(frozen=True)
class Keys:
    """What SSH needs: the user's key, and which key the machines show."""

    user: Path
    known_hosts: Path


def keys() -> Keys:
    """This machine's keys, made now if they are not there yet."""
    folder, made = keys_folder(), _keys()
    if not made.known_hosts.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("user", "host"):
            (folder / name).unlink(missing_ok=True)
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{NAME} {name}", "-f", str(folder / name)]
            shell.run(argv, timeout_s=60)
        made.known_hosts.write_text(f"{NAME} {(folder / 'host.pub').read_text()}")
    return made


def keys_folder() -> Path:
    """Where this machine's keys are, or will be."""
    return paths.cache_root() / "ssh"


def recipe() -> Path:
    """The directory of what comes on top of the image."""
    return paths.project_root() / "provision" / "box"


def key() -> str:
    """The box's name: a hash of the image's recipe, the box's own, and this machine's keys."""
    keys()
    public = (keys_folder() / "user.pub", keys_folder() / "host.pub")
    own = sorted(path for path in recipe().iterdir() if path.is_file())
    return paths.content_key(((path.name, path) for path in (*own, *public)), image.key())


def present() -> Box | None:
    """The box for this recipe and these keys, if it has been built. Makes nothing: without keys there is no box."""
    if not _keys().known_hosts.exists():
        return None
    directory = _boxes() / key()
    return Box(directory) if directory.is_dir() else None


def ensure(progress: Callable[[str], None]) -> Box:
    """The box, built now if it must be. Raises EnvironmentLacks and HostFailed."""
    ready = present()
    if ready is not None:
        return ready
    _boxes().mkdir(parents=True, exist_ok=True)
    with image.only_builder(_boxes(), progress):
        ready = present()
        return ready or _build(progress)


def _build(progress: Callable[[str], None]) -> Box:
    ready = _boxes() / key()
    image.clear(_boxes())
    with image.building(ready, progress, _recipe_with_keys()) as place:
        progress("making a disk that boots by itself")
        shell.run([str(recipe() / "assemble.sh"), str(place)], timeout_s=ASSEMBLE_TIMEOUT_S, umask=shell.FOR_OTHERS)
        _describe(place, ready)
    return Box(ready)


def _recipe_with_keys() -> Path:
    """A copy of the recipe with this machine's keys in it."""
    copy = _boxes() / "recipe" / "box"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(recipe(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(keys_folder(), copy / "key")
    (copy / "key" / "user").unlink()
    return copy


def _describe(place: Path, ready: Path) -> None:
    """Make of the disk what `vagrant box add` takes: an archive, and a catalogue that names its version."""
    version = f"1.0.{int(time.time())}"
    metadata = place / "metadata.json"
    metadata.write_text(json.dumps({"provider": "libvirt", "format": "qcow2", "virtual_size": 3}))
    with tarfile.open(place / "minigts.box", "w") as archive:
        for name in ("metadata.json", "box.img"):
            archive.add(place / name, arcname=name)
    (place / "box.img").unlink()
    provider = {"name": "libvirt", "url": (ready / "minigts.box").as_uri()}
    catalogue = {"name": NAME, "versions": [{"version": version, "providers": [provider]}]}
    (place / "catalogue.json").write_text(json.dumps(catalogue, indent=1) + "\n")
    (place / "version").write_text(f"{version}\n")


def _boxes() -> Path:
    return paths.cache_root() / "boxes"


def _keys() -> Keys:
    return Keys(keys_folder() / "user", keys_folder() / "known_hosts")
