"""Hosts of `tc_hosts` whose disks can outlive them, and that die where a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import tc_hosts

from minigts import paths
from minigts.errors import InputError
from minigts.topology.plan.plan import Plan

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class BrokenOff(BaseException):
    """As by a kill: nothing may act on it but what cleans up anyway."""


class KeepingHosts(tc_hosts.TcHosts):
    """See `providers.base.KeepsDisks`. A disk is a file; `standing` says whether no host runs now."""

    name = "keeping-hosts"
    standing = False
    dies_at = ""
    """The call at which it is killed."""

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        kept = (self.rundir / "kept.json").exists()
        if kept and self._image() != json.loads((self.rundir / "kept.json").read_text())["image"]:
            raise InputError("of another image")
        (self.rundir / "hosts").mkdir(exist_ok=True)
        for machine in plan.machines:
            disk = self.rundir / "hosts" / machine.name / "disk.cow"
            if not kept or not disk.exists():
                disk.parent.mkdir(exist_ok=True)
                disk.write_text("new")
        self._die("up")
        tc_hosts.NETWORKS[self.rundir] = tc_hosts.Network(plan, plan)

    def note(self, into: Path) -> datetime | None:
        self._die("note")
        paths.write_whole(into / "kept.json", json.dumps({"image": self._image()}))
        return NOON

    def disks(self) -> Mapping[str, Path]:
        return {path.parent.name: path for path in sorted(self.rundir.glob("hosts/*/disk.cow"))}

    @contextmanager
    def frozen(self) -> Iterator[None]:
        KeepingHosts.standing = True
        try:
            yield
        finally:
            KeepingHosts.standing = False

    def down(self) -> None:
        super().down()
        self._die("down")

    def _image(self) -> str:
        return (self.rundir.parents[1] / "image").read_text()

    def _die(self, at: str) -> None:
        if KeepingHosts.dies_at == at:
            KeepingHosts.dies_at = ""
            raise BrokenOff
