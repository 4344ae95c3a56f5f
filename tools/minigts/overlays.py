"""Overlays: which script, on which host, in which order, with which environment.

An overlay is a folder under provision/overlays with five scripts, each of which may be run again, in this order:

- install.sh  on all hosts at once: daemons, kernel modules
- join.sh     on the leader (the first host), then on the others at once; the leader's `KEY=VALUE` lines on stdout
              become the others' environment
- start.sh    likewise: the measuring container, with netserver (12865) and iperf3 (5201) listening; prints
              ADDRESS, MTU and, where there is a container, ENTER: a process id in it; OWN, the container's own
              address, where ADDRESS is its host's
- reach.sh    (one for all overlays) on all hosts at once: waits until PEERS, all other ADDRESSes, answer
- verify.sh   proves the data path to PEER, another host's ADDRESS; prints ENCAPSULATION
- leave.sh    on all hosts at once: nothing of the overlay remains

and, where it needs them:

- second.sh   one more container beside the measuring one, for what happens within one host; prints the same as start.sh
- variants    a word a line; the overlay `flannel` with the variant `udp` is known as `flannel-udp`, and plain `flannel`
              means the first line
- build/      makes programs that no package holds: see programs.py

Every script sees

- MINIGTS_HOST, MINIGTS_ADDRESS (its own, on the loopback), MINIGTS_INDEX (from 0)
- MINIGTS_LEADER (an address), MINIGTS_HOSTS (all names), MINIGTS_PEERS (the other hosts' addresses)
- MINIGTS_LINKS: a word for each of its links, `interface:address:peer:peer's address:link's number`; through a switch
  a word for each host behind it
- MINIGTS_MTU: the smallest of the lab's links
- MINIGTS_VARIANT: empty for an overlay without variants
- MINIGTS_PROGRAMS: the directory with what build/ made
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from minigts import paths, programs
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab, Progress, exclusive
from minigts.topology.plan import Host, Plan

UNDERLAY = "none"
IN_HOST = PurePosixPath("/run/minigts")
PROGRAMS_IN_HOST = PurePosixPath("/var/lib/minigts/programs")
ETHERNET_MTU = 1500
PHASE_TIMEOUT_S = 180.0
ENTER = ("nsenter", "--all", "--root", "--wd", "--target")


@dataclass(frozen=True)
class Endpoint:
    """Where an overlay can be measured from and to, on one host.

    `prefix` in front of a command runs it in the measuring container; `mtu` is the overlay interface's, in bytes.
    """

    host: str
    address: str
    mtu: int
    prefix: tuple[str, ...]
    own: str = ""
    """The container's own address on its host, where `address` is another one: Docker's bridge with published ports."""


class Joined(BaseModel):
    """overlay.json in the run directory: the overlay that is up, with what its scripts said on each host."""

    model_config = ConfigDict(extra="forbid")

    name: str
    said: dict[str, dict[str, str]]
    """KEY=VALUE lines of start.sh by host; empty while the overlay is being joined."""

    def endpoints(self) -> dict[str, Endpoint]:
        return {host: _endpoint(host, said) for host, said in self.said.items()}


@dataclass(frozen=True)
class Overlay:
    """A folder of scripts and the variant they are run for; the variant is empty where the folder lists none."""

    folder: Path
    variant: str


def known() -> tuple[str, ...]:
    """Names of the overlays there are, with their variants, in alphabetical order."""
    return tuple(sorted(_catalogue()))


def joined(lab: Lab) -> Joined | None:
    """What is joined on this lab now."""
    try:
        return Joined.model_validate_json((lab.rundir / "overlay.json").read_text())
    except (OSError, ValidationError):
        return None


def join(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Lay overlay `name` over the lab, in place of the one that is there; return where it can be measured.

    Raises InputError for an overlay that is not there, CommandFailed when a script fails.
    """
    if name not in known():
        raise InputError(f"no overlay {name!r}; overlays are {', '.join(known())}")
    with exclusive(lab.rundir):
        _require(lab)
        return _join(lab, name, progress)


def _join(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    before = joined(lab)
    if before is not None and before.name == name and before.said:
        return before.endpoints()
    if before is not None:
        _leave(lab, progress)
    _put_scripts(lab, name)
    _put_programs(lab, name, progress)
    # Written before the first script runs: a join that breaks off half-way can be left.
    _write(lab, Joined(name=name, said={}))
    progress(f"{name}: installing on {len(lab.plan.hosts)} hosts")
    _on_all(lab, name, "install", {})
    progress(f"{name}: joining")
    _leader_first(lab, name, "join")
    progress(f"{name}: starting the measuring ends")
    said = _leader_first(lab, name, "start")
    _wait_until_connected(lab, name, said)
    now = Joined(name=name, said=said)
    _write(lab, now)
    return now.endpoints()


def second(lab: Lab, host: str) -> Endpoint:
    """One more container of what is joined, on that host. Raises InputError for an overlay that has no `second.sh`."""
    now = joined(lab)
    if now is None or not now.said:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    if not (_catalogue()[now.name].folder / "second.sh").exists():
        raise InputError(f"overlay {now.name} has no second container on a host")
    return _endpoint(host, _run(lab, now.name, "second", lab.plan.host(host), now.said[host]))


def verify(lab: Lab, progress: Progress) -> dict[str, dict[str, str]]:
    """Prove the data path of what is joined, from every host to the next in the file; what each host said of it."""
    now = joined(lab)
    if now is None or not now.said:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    progress(f"{now.name}: verifying the data path")
    hosts = [host.name for host in lab.plan.hosts]
    peers = dict(zip(hosts, [*hosts[1:], hosts[0]], strict=True))
    said = {host: {**now.said[host], "PEER": now.said[peers[host]]["ADDRESS"]} for host in hosts}
    return lab.on_every_host(lambda host: _run(lab, now.name, "verify", host, said[host.name]))


def leave(lab: Lab, progress: Progress) -> None:
    """Take the overlay that is joined, or was being joined, off the lab."""
    with exclusive(lab.rundir):
        _require(lab)
        _leave(lab, progress)


def _require(lab: Lab) -> None:
    """Whoever waited for the lab may find that it was taken down meanwhile."""
    if not lab.rundir.is_dir():
        raise MinigtsError(f"lab {lab.name} has been taken down")


def _leave(lab: Lab, progress: Progress) -> None:
    now = joined(lab)
    if now is None:
        return
    progress(f"{now.name}: leaving")
    _on_all(lab, now.name, "leave", {})
    (lab.rundir / "overlay.json").unlink()


def _wait_until_connected(lab: Lab, name: str, said: Mapping[str, Mapping[str, str]]) -> None:
    """Every end reaches every other; the plain hosts of a lab in mode neighbours never will."""
    if name == UNDERLAY and lab.plan.routing == "neighbours":
        return

    def wait(host: Host) -> None:
        peers = " ".join(other["ADDRESS"] for peer, other in said.items() if peer != host.name)
        _run_script(lab, name, "reach.sh", host, {**said[host.name], "PEERS": peers})

    lab.on_every_host(wait)


def _endpoint(host: str, said: Mapping[str, str]) -> Endpoint:
    enter = (*ENTER, said["ENTER"], "--") if "ENTER" in said else ()
    return Endpoint(host, said["ADDRESS"], int(said["MTU"]), enter, said.get("OWN", ""))


def _scripts() -> Path:
    return paths.project_root() / "provision" / "overlays"


def _catalogue() -> dict[str, Overlay]:
    found = {}
    for folder in sorted(path.parent for path in _scripts().glob("*/join.sh")):
        listed = folder / "variants"
        variants = listed.read_text().split() if listed.exists() else [""]
        found[folder.name] = Overlay(folder, variants[0])
        found |= {f"{folder.name}-{variant}": Overlay(folder, variant) for variant in variants[1:]}
    return found


def _put_scripts(lab: Lab, name: str) -> None:
    """The overlay's own folder and what its scripts source, placed relative to each other as they are here."""
    folder = _catalogue()[name].folder
    shared = [_scripts().parent / "lib.sh", *_scripts().glob("*.sh")]

    def put(host: Host) -> None:
        for path in shared:
            lab.provider.put(host.name, path, IN_HOST / path.relative_to(_scripts().parent))
        lab.provider.put(host.name, folder, IN_HOST / "overlays" / folder.name)

    lab.on_every_host(put)


def _put_programs(lab: Lab, name: str, progress: Progress) -> None:
    """What the overlay's own recipe makes, on every host that does not have it yet."""
    recipe = _catalogue()[name].folder / "build"
    if not recipe.is_dir():
        return
    made = programs.ensure(recipe, progress)
    target = PROGRAMS_IN_HOST / programs.key(recipe)

    def put(host: Host) -> None:
        if lab.provider.run(host.name, ["test", "-d", str(target)], timeout_s=PHASE_TIMEOUT_S, check=False).code != 0:
            arriving = target.with_name("arriving")
            lab.provider.put(host.name, made, arriving)
            lab.provider.run(host.name, ["mv", "-T", str(arriving), str(target)], timeout_s=PHASE_TIMEOUT_S)

    progress(f"{name}: handing its programs to {len(lab.plan.hosts)} hosts")
    lab.on_every_host(put)


def _on_all(lab: Lab, name: str, phase: str, said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return lab.on_every_host(lambda host: _run(lab, name, phase, host, said))


def _leader_first(lab: Lab, name: str, phase: str) -> dict[str, dict[str, str]]:
    leader = lab.plan.hosts[0]
    said = _run(lab, name, phase, leader, {})

    def follow(host: Host) -> dict[str, str]:
        return said if host == leader else _run(lab, name, phase, host, said)

    return lab.on_every_host(follow)


def _run(lab: Lab, name: str, phase: str, host: Host, said: Mapping[str, str]) -> dict[str, str]:
    """Run one of an overlay's own scripts on one host; its KEY=VALUE lines."""
    return _run_script(lab, name, f"{_catalogue()[name].folder.name}/{phase}.sh", host, said)


def _run_script(lab: Lab, name: str, script: str, host: Host, said: Mapping[str, str]) -> dict[str, str]:
    environment = {**said, **_environment(lab.plan, host), **_environment_of(_catalogue()[name])}
    settings = [f"{key}={value}" for key, value in environment.items()]
    argv = ["env", *settings, str(IN_HOST / "overlays" / script)]
    result = lab.provider.run(host.name, argv, timeout_s=PHASE_TIMEOUT_S)
    lines = [line.partition("=") for line in result.stdout.splitlines() if "=" in line]
    return {key: value for key, _, value in lines}


def _environment(plan: Plan, host: Host) -> dict[str, str]:
    """What every script sees of its host and the lab."""
    number = {link.name: link.index for link in plan.links}
    links = [
        f"{port.name}:{port.address}:{peer.name}:{far.address}:{number[port.link]}"
        for port, peer, far in plan.neighbours(host)
    ]
    return {
        "MINIGTS_HOST": host.name,
        "MINIGTS_ADDRESS": host.address,
        "MINIGTS_INDEX": str(host.index),
        "MINIGTS_LEADER": plan.hosts[0].address,
        "MINIGTS_HOSTS": " ".join(other.name for other in plan.hosts),
        "MINIGTS_PEERS": " ".join(other.address for other in plan.hosts if other != host),
        "MINIGTS_LINKS": " ".join(links),
        "MINIGTS_MTU": str(min((port.mtu for other in plan.hosts for port in other.ports), default=ETHERNET_MTU)),
    }


def _environment_of(overlay: Overlay) -> dict[str, str]:
    recipe = overlay.folder / "build"
    built = {"MINIGTS_PROGRAMS": str(PROGRAMS_IN_HOST / programs.key(recipe))} if recipe.is_dir() else {}
    return {"MINIGTS_VARIANT": overlay.variant, **built}


def _write(lab: Lab, content: Joined) -> None:
    temporary = lab.rundir / "overlay.json.new"
    temporary.write_text(content.model_dump_json(indent=1) + "\n")
    temporary.rename(lab.rundir / "overlay.json")
