"""The stage of a run on a real lab."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from minigts import lab as labs
from minigts import overlays
from minigts.experiment_language.model import Links
from minigts.experiments import provenance
from minigts.experiments.guard import Drops
from minigts.fidelity.host_load import LoadRecording, recording
from minigts.lab import Lab, Settings, queues, schedule_player
from minigts.machine.proc import family, used_s
from minigts.machine.progress import Progress
from minigts.overlays import Endpoint, policy
from minigts.providers.base import OwnProcesses
from minigts.results.schema import Laid
from minigts.topology.link_settings import SETTABLE
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan.link_names import link_named
from minigts.topology.schedule import Moment


@contextmanager
def overlay_kept(lab: Lab, say: Progress) -> Iterator[str | None]:
    """Yields the name of the overlay that the lab has now. If another one has taken its place when the context closes,
    it is joined again, with the policy that was in force."""
    before, rules = overlays.joined_overlay(lab), policy.policy_in_force(lab)
    name = None if before is None or not before.ends else before.name
    try:
        yield name
    finally:
        now = overlays.joined_overlay(lab)
        if name is not None and (now is None or now.name != name or not now.ends):
            say(f"{name}: joining again, as before the run")
            overlays.join(lab, name, say)
        if rules is not None and policy.policy_in_force(lab) is None:
            say(f"{name}: policy {rules.name} again")
            policy.apply(lab, rules)


@dataclass(frozen=True)
class RealLabControl:
    """See `experiments.sampler.LabControl`."""

    lab: Lab
    say: Progress
    kept: str | None = None
    """The overlay that the lab had before, which stays."""

    @cached_property
    def drops(self) -> Drops:
        return Drops(self.lab)

    @property
    def _virtual(self) -> bool:
        """Whether the lab is in virtual time, where the machine's load changes nothing and delays drop nothing."""
        return self.lab.plan.time == "virtual"

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        return overlays.join(self.lab, overlay, self.say)

    def verify(self, overlay: str) -> str:
        return json.dumps(overlays.verify(self.lab, self.say), sort_keys=True)

    def overlay_record(self, _overlay: str) -> Laid:
        now, rules = overlays.joined_overlay(self.lab), policy.policy_in_force(self.lab)
        return Laid(
            programs=provenance.programs(PurePosixPath(now.programs).name) if now else None,
            policy={} if rules is None else rules.model_dump(mode="json", by_alias=True, exclude_unset=True),
        )

    def leave(self, overlay: str) -> None:
        if overlay != self.kept:
            overlays.leave(self.lab, self.say)

    def second(self, host: str) -> Endpoint:
        return overlays.second_container(self.lab, host)

    def set_links(self, links: Links) -> None:
        self.say("setting the links")
        if not self._virtual:
            self.drops.expected = links.rate == "unlimited"  # delays are sized for the declared rate
        labs.set_for_experiment(self.lab, settings(links))

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None:
        if not self._virtual:
            self.drops.expect_once()
        labs.set_links_up(self.lab, *link_named(self.lab.plan, name).ends, up=up, how=how)

    @contextmanager
    def links_kept(self) -> Iterator[None]:
        before = self.lab.read_record()
        try:
            yield
        finally:
            if not self._virtual:
                self.drops.expect_once()
            labs.restore_links(self.lab, before)

    def play(self, moments: Sequence[Moment]) -> Iterator[tuple[float, Mapping[str, float]]]:
        yield 0.0, schedule_player.amounts(self.lab.plan, self.lab.read_record(), moments)
        if not self._virtual:
            self.drops.expect_once()
        for each in schedule_player.play_moments(self.lab, moments):
            yield each.at_s, each.amounts

    def queues(
        self, ends: Sequence[queues.End], every_s: float, ended: Callable[[], bool]
    ) -> Iterator[tuple[float, Mapping[queues.End, queues.Queue]]]:
        return queues.readings(self.lab, ends, every_s, ended)

    def recording(self) -> AbstractContextManager[LoadRecording]:
        return recording((), self.lab.plan.time) if self._virtual else self.drops.recording()

    def processor_seconds(self) -> Mapping[str, float]:
        provider = self.lab.provider
        kernels = provider.kernels() if isinstance(provider, OwnProcesses) else {}
        own = {host: pid for host, pid in kernels.items() if host not in self.lab.plan.sharing}
        return {host: sum(map(used_s, family([pid]))) for host, pid in own.items()}


def settings(links: Links) -> Settings:
    """The lab's settings for `links`; what these leave out is as declared."""
    unlimited = links.rate == "unlimited"
    queue = dict([SETTABLE["queue"].read(links.queue)]) if links.queue and not unlimited else {}
    return Settings.model_validate({"unlimited": unlimited, "gro": links.gro, **queue})
