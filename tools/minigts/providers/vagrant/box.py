"""The box: the disk that virtual machines start from, built from the image's recipe and provision/box.

A box is a directory of the cache that is named for the hash of its recipe and of this machine's SSH keys. Vagrant knows
it by a version, the time at which it was built, so that a new box replaces the volume of an earlier one.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.uml.build import image

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
        """The file that `box_url` names: the list of the box's versions, with this one alone (Vagrant's "box
        metadata")."""
        return self.directory / "catalogue.json"

    @property
    def disk_head(self) -> Path:
        """The disk's first part: boot loader, kernel and initrd."""
        return self.directory / "boot" / "head.img"


@dataclass(frozen=True)
class Keys:
    """The files that SSH needs: the user's private key, and a known_hosts with the machines' public key."""

    user: Path
    known_hosts: Path


def keys() -> Keys:
    """This machine's keys, made now if necessary."""
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
    """The directory of this machine's keys, which need not exist yet."""
    return paths.cache_root() / "ssh"


def recipe() -> Path:
    """The folder of the box's own recipe, which extends the image's."""
    return paths.project_root() / "provision" / "box"


def key() -> str:
    """The name of the box's directory: a hash of the image's recipe, the box's own, and this machine's keys."""
    keys()
    public = (keys_folder() / "user.pub", keys_folder() / "host.pub")
    own = sorted(path for path in recipe().iterdir() if path.is_file())
    return paths.content_key(((path.name, path) for path in (*own, *public)), image.key())


def present() -> Box | None:
    """The box of this recipe and these keys; None if it is not built. Makes no keys."""
    if not _keys().known_hosts.exists():
        return None
    directory = _boxes() / key()
    return Box(directory) if directory.is_dir() else None


def ensure(progress: Progress) -> Box:
    """The box, built now if necessary. Raises EnvironmentLacks and HostFailed."""
    ready = present()
    if ready is not None:
        return ready
    _boxes().mkdir(parents=True, exist_ok=True)
    with image.only_builder(_boxes(), progress):
        ready = present()
        return ready or _build(progress)


def _build(progress: Progress) -> Box:
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
    """Pack the disk into an archive for `vagrant box add`, and write a catalogue with its version."""
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
