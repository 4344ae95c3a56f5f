"""Vagrant's directory `.vagrant`: its machines, and their topology, so that all verbs after `vagrant up` use the same
lab."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts import paths
from minigts.errors import InputError, MinigtsError
from minigts.language import documents
from minigts.providers.vagrant import libvirt
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

DEFAULT = paths.project_root() / "topologies" / "chain6.yaml"
MEMORY = "minigts.json"
_BOUNDS = documents.Bounds(elements=1_000_000)


class Memory(BaseModel):
    """The topology of `vagrant up`. Its plan is kept, too, to end its machines when the file has changed or is gone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topology: Path
    plan: Plan


@dataclass(frozen=True)
class Directory:
    """The directory `.vagrant` of a checkout, or the one that VAGRANT_DOTFILE_PATH names; it need not exist."""

    path: Path

    def machines(self) -> dict[str, str]:
        """Name -> libvirt's UUID of the machines that Vagrant has made and libvirt still has; all that Vagrant has made
        if libvirt does not answer."""
        ids = {file.parents[1].name: _text(file) for file in sorted(self.path.glob("machines/*/libvirt/id"))}
        try:
            known = libvirt.identifiers() if ids else []
        except MinigtsError:
            return ids
        return {name: number for name, number in ids.items() if number in known}

    def memory(self) -> Memory | None:
        """The remembered topology; None when there is none, or it cannot be read."""
        try:
            return documents.model(paths.read_whole(self.path / MEMORY, _BOUNDS.bytes), Memory, _BOUNDS)
        except (OSError, ValueError):
            return None

    def remember(self, topology: Path, plan: Plan) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        paths.write_whole(self.path / MEMORY, Memory(topology=topology, plan=plan).model_dump_json(indent=1) + "\n")

    def forget(self) -> None:
        (self.path / MEMORY).unlink(missing_ok=True)

    def lab(self, topology: Path | None, *, starting: bool, overlays: Collection[str]) -> Memory:
        """The lab that a verb of Vagrant uses: that of the existing machines, otherwise that of `topology` (variable
        TOPOLOGY) or of the default topology. `starting` means that the verb makes or starts machines, which then have
        to fit the present file.

        Raises InputError when there are machines of another topology, of an earlier version of the file, or of an
        unknown topology.
        """
        made = self.machines()
        remembered = self.memory() if made else None
        if made and remembered is None and topology is None:
            raise InputError(
                f"there are machines ({', '.join(made)}), and {self.path / MEMORY} does not say of which topology: "
                "name it with TOPOLOGY=FILE vagrant …"
            )
        if remembered is None:
            file = (topology or DEFAULT).resolve()
            return Memory(topology=file, plan=load(file, known_overlays=overlays))
        there = f"there are machines of {remembered.topology}: {', '.join(made)}"
        if topology is not None and topology.resolve() != remembered.topology:
            raise InputError(
                f"TOPOLOGY says {topology.resolve()}, and {there}; leave TOPOLOGY out to use these, or end them first "
                "(vagrant destroy -f, without TOPOLOGY)"
            )
        if starting and load(remembered.topology, known_overlays=overlays) != remembered.plan:
            raise InputError(f"{there}; the file has changed since they were made: vagrant destroy -f, then vagrant up")
        return remembered


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
