"""What is joined on a lab, by overlay.json in its run directory; and how a phase of it runs on a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from minigts import foreign
from minigts.errors import CommandFailed, EnvironmentLacks, HostFailed, MinigtsError
from minigts.foreign import Foreign, screen_text
from minigts.lab import Lab
from minigts.overlays import catalogue
from minigts.overlays.teams import teams
from minigts.topology.plan.elements import Host
from minigts.topology.time import Time

FILE = "overlay.json"
IN_HOST = PurePosixPath("/run/minigts")
PHASE_TIMEOUT_S: Mapping[Time, float] = {"virtual": 180.0, "real": 1800.0}
"""What ends a phase that hangs; the scripts' own limits are shorter, and say more. In real time a machine that is busy,
or emulates its hosts' processors, makes a phase late."""
SECRET = re.compile(r"(^|_)(KEY|SECRET|TOKEN)$")
"""The names of a phase's variables whose values no message shows."""
ENTER = ("nsenter", "--all", "--root", "--wd", "--target")


@dataclass(frozen=True)
class Endpoint:
    """A measuring end of an overlay: the measuring container on a host, or the plain host itself.

    `prefix` in front of a command runs it in the measuring container; `mtu` is the overlay interface's, in bytes.
    """

    host: str
    address: str
    mtu: int
    prefix: tuple[str, ...]
    own: str = ""
    """The container's own address, where it differs from `address`: on Docker's bridge with published ports."""

    @property
    def network(self) -> tuple[str, ...]:
        """A prefix that runs a program of the host in the container's network namespace."""
        return ("nsenter", "--net", *self.prefix[-3:]) if self.prefix else ()


class Joined(BaseModel):
    """overlay.json in the run directory: the overlay that is joined, with its measuring ends."""

    model_config = ConfigDict(extra="forbid")

    name: str
    programs: str
    """The directory on each host with the overlay's own programs; empty when it needs none."""
    ends: dict[str, dict[str, str]] = {}
    """Its measuring ends: KEY=VALUE lines of phase `start`, by host; empty while the overlay is being joined."""

    @field_validator("ends")
    @classmethod
    def _can_be_measured(cls, ends: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for end in ends.values():
            foreign.variables(((Foreign(key), Foreign(value)) for key, value in end.items()), catalogue.END)
            if not {"ADDRESS", "MTU"} <= end.keys():
                raise ValueError("an end has no ADDRESS or no MTU")
        return ends

    def endpoints(self) -> dict[str, Endpoint]:
        return {host: endpoint_of(host, words) for host, words in self.ends.items()}


def joined_overlay(lab: Lab) -> Joined | None:
    """The overlay that is joined on this lab; None: no overlay. Raises MinigtsError when overlay.json is damaged, or
    has other hosts."""
    now = lab.read(FILE, Joined)
    if now is None:
        return None
    hosts = {host.name for host in members_of(lab, now)}
    if now.name not in catalogue.known_names() or set(now.ends) not in (set(), hosts):
        raise lab.damage_error(FILE, "names an overlay or hosts that there are not")
    return now


def add_ends(now: Joined, ends: Mapping[str, Mapping[str, str]]) -> Joined:
    """`now` with these measuring ends. Raises MinigtsError when a phase has not printed one's address and MTU."""
    try:
        return Joined(name=now.name, programs=now.programs, ends={host: dict(words) for host, words in ends.items()})
    except ValidationError as error:
        lacking = ", ".join(host for host, words in ends.items() if not {"ADDRESS", "MTU"} <= words.keys())
        raise MinigtsError(f"{now.name}: phase start printed no ADDRESS or MTU on {lacking or 'a host'}") from error


def endpoint_of(host: str, words: Mapping[str, str]) -> Endpoint:
    enter = (*ENTER, words["ENTER"], "--") if "ENTER" in words else ()
    return Endpoint(host, words["ADDRESS"], int(words["MTU"]), enter, words.get("OWN", ""))


def members_of(lab: Lab, now: Joined) -> list[Host]:
    """The hosts of all teams, in the topology's order."""
    joining = {name for team in teams(lab.plan, now.name) for name in team.names}
    return [host for host in lab.plan.hosts if host.name in joining]


@dataclass(frozen=True)
class Printed:
    """The KEY=VALUE lines that a phase has printed on a host, whose root chooses them."""

    host: str
    phase: str
    words: tuple[tuple[Foreign, Foreign], ...] = ()

    def variables(self, allowed: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
        """The lines, of which each has one of these keys and a value that the key's whole pattern allows. Raises
        HostFailed."""
        try:
            return foreign.variables(self.words, allowed, hidden=SECRET)
        except ValueError as error:
            raise HostFailed(f"{self.host}: phase {self.phase} has printed what it may not: {error}") from None


def printed_lines(lab: Lab, overlay: str, phase: str, host: Host, words: Mapping[str, str]) -> dict[str, str]:
    """As `run_phase`; return the lines that this overlay's phase may print (catalogue.Overlay.phase_outputs). Raises
    HostFailed for any other. A line whose key is not in capitals is none of them, and is left out."""
    said = run_phase(lab, phase, host, words)
    keyed = tuple((key, value) for key, value in said.words if key.match_whole(catalogue.KEY) is not None)
    return replace(said, words=keyed).variables(catalogue.find(overlay).phase_outputs(phase))


def run_phase(lab: Lab, phase: str, host: Host, words: Mapping[str, str], more_s: float = 0.0) -> Printed:
    """Run a phase of the overlay on one host; return its KEY=VALUE lines. `words` are variables for it. It may take
    `more_s` seconds beyond the limit of every phase."""
    settings = [f"{key}={value}" for key, value in words.items()]
    argv = ["env", *settings, str(IN_HOST / "overlays" / "phase.sh"), phase]
    try:
        result = lab.provider.run(host.name, argv, timeout_s=PHASE_TIMEOUT_S[lab.time] + more_s)
    except CommandFailed as error:
        failed = error.hiding([value for key, value in words.items() if SECRET.search(key)])
        if error.code == EnvironmentLacks.exit_code:
            now = joined_overlay(lab)
            raise EnvironmentLacks(f"{now.name if now else 'overlay'}: {screen_text(failed.err.strip())}") from None
        raise failed from None
    lines = (line.partition("=") for line in result.stdout.splitlines() if "=" in line)
    return Printed(host.name, phase, tuple((key, value) for key, _, value in lines))


def write(lab: Lab, content: Joined) -> None:
    lab.put(FILE, content.model_dump_json(indent=1) + "\n")
