"""Overlays: which script, on which host, in which order, with which environment.

An overlay is a folder under provision/overlays with five scripts, each of which may be run again, in this order:

- install.sh  on all hosts at once: daemons, kernel modules
- join.sh     on the leader (the first host), then on the others at once; the leader's `KEY=VALUE` lines on stdout
              become the others' environment
- start.sh    likewise: the measuring container, with netserver (12865) and iperf3 (5201) listening; prints
              ADDRESS, MTU and, where there is a container, ENTER: a process id in it; OWN, the container's own
              address, where ADDRESS is its host's
- reach.sh    (one for all overlays) on all hosts at once: waits until PEERS, all other ADDRESSes, answer
- verify.sh   proves the data path to PEER, another host's ADDRESS; prints ENCAPSULATION, and prints the same again for
              as long as the data path is the same: an experiment takes a difference for a fall-back
- leave.sh    on all hosts at once: nothing of the overlay remains

and, where it needs it,

- second.sh   one more container beside the measuring one, for what happens within one host; prints the same as start.sh
- policy.sh   on all hosts at once: the network itself enforces POLICY (see policy.py) from now on; empty: none

A script that ends with code 3 has said what this machine lacks. What else a folder may have is in catalogue.py. Every
script sees

- MINIGTS_HOST, MINIGTS_ADDRESS (its own, on the loopback), MINIGTS_INDEX (from 0)
- MINIGTS_LEADER (an address), MINIGTS_HOSTS (all names), MINIGTS_PEERS (the other hosts' addresses)
- MINIGTS_LINKS: a word for each of its links, `interface:address:peer:peer's address:link's number`; through a switch
  a word for each host behind it
- MINIGTS_ENGINE: `docker` or `namespace`, as above
- MINIGTS_MTU: the smallest of the lab's links
- MINIGTS_VARIANT: empty for an overlay without variants
- MINIGTS_PROGRAMS: the directory with what build/ made or the user gave; empty without
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError
from minigts.lab import Lab, Progress, exclusive, for_each
from minigts.overlays import catalogue
from minigts.overlays.catalogue import Overlay
from minigts.providers.base import Provider
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

    @property
    def network(self) -> tuple[str, ...]:
        """In front of a command it runs the host's own program in the container's network, and in nothing else."""
        return ("nsenter", "--net", *self.prefix[-3:]) if self.prefix else ()


class Joined(BaseModel):
    """overlay.json in the run directory: the overlay that is up, with what its scripts said on each host."""

    model_config = ConfigDict(extra="forbid")

    name: str
    programs: str
    """Where each host has the overlay's own programs; empty when it needs none."""
    said: dict[str, dict[str, str]] = {}
    """KEY=VALUE lines of start.sh by host; empty while the overlay is being joined."""

    def endpoints(self) -> dict[str, Endpoint]:
        return {host: _endpoint(host, said) for host, said in self.said.items()}


def enforcing() -> tuple[str, ...]:
    """Names of the overlays that enforce rules between containers."""
    return tuple(name for name in catalogue.known() if (catalogue.find(name).folder / "policy").exists())


def enforces_itself(name: str) -> bool:
    """Whether that overlay has a policy of its own kind made of the rules; else its hosts filter by nftables."""
    return (catalogue.find(name).folder / "policy.sh").exists()


def enforce(lab: Lab, now: Joined, rules: str) -> None:
    """Have the network that is joined enforce these rules itself; none when empty. The caller holds the lab."""
    _on_all(lab, now, "policy", {"POLICY": rules})


def joined(lab: Lab) -> Joined | None:
    """What is joined on this lab now."""
    try:
        return Joined.model_validate_json((lab.rundir / "overlay.json").read_text())
    except (OSError, ValidationError):
        return None


def join(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Lay overlay `name` over the lab, in place of the one that is there; return where it can be measured.

    Raises InputError for an overlay that is not there, EnvironmentLacks when its programs cannot be had, CommandFailed
    when a script fails.
    """
    require_engine(lab.provider, name)
    overlay = catalogue.find(name)
    with exclusive(lab.rundir):
        _require(lab)
        return _join(lab, overlay, progress)


def require_engine(provider: Provider, name: str) -> None:
    """Raises InputError when overlay `name` cannot run on this provider's hosts."""
    if provider.engine not in catalogue.find(name).engines:
        fitting = ", ".join(other for other in catalogue.known() if provider.engine in catalogue.find(other).engines)
        raise InputError(
            f"overlay {name!r} needs Docker on every host, and a host of provider {provider.name} has none; "
            f"overlays there are {fitting}: say which with --overlay"
        )


def _join(lab: Lab, overlay: Overlay, progress: Progress) -> dict[str, Endpoint]:
    before = joined(lab)
    if before is not None and before.name == overlay.name and before.said:
        return before.endpoints()
    made = overlay.programs(progress)
    if before is not None:
        _leave(lab, progress)
    now = Joined(name=overlay.name, programs="" if made is None else str(PROGRAMS_IN_HOST / made.name))
    _put_scripts(lab, overlay, lab.plan.hosts)
    if made is not None:
        progress(f"{overlay.name}: handing its programs to {len(lab.plan.hosts)} hosts")
        lab.on_every_host(lambda host: _put_programs(lab, host, made))
    # Written before the first script runs: a join that breaks off half-way can be left.
    _write(lab, now)
    progress(f"{overlay.name}: installing on {len(lab.plan.hosts)} hosts")
    _on_all(lab, now, "install", {})
    progress(f"{overlay.name}: joining")
    _leader_first(lab, now, "join")
    progress(f"{overlay.name}: starting the measuring ends")
    now = now.model_copy(update={"said": _leader_first(lab, now, "start")})
    _wait_until_connected(lab, now)
    _write(lab, now)
    return now.endpoints()


def rejoin(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Run on one host, which has been started again, what joins it; return, when every end reaches every other, where
    the overlay can be measured.

    The other hosts are left alone, but for the leader's words to those that join. Nothing is done without an overlay.
    """
    with exclusive(lab.rundir):
        now, host, leader = joined(lab), lab.plan.host(name), lab.plan.hosts[0]
        if now is None or not now.said:
            return {}
        progress(f"{now.name}: joining {name} again")
        _put_scripts(lab, catalogue.find(now.name), [host])
        _run(lab, now, "install", host, {})
        words = _run(lab, now, "join", leader, {})
        if host != leader:
            _run(lab, now, "join", host, words)
        said = _run(lab, now, "start", host, {} if host == leader else now.said[leader.name])
        now = now.model_copy(update={"said": {**now.said, name: said}})
        _write(lab, now)
        _wait_until_connected(lab, now)
        return now.endpoints()


def second(lab: Lab, host: str) -> Endpoint:
    """One more container of what is joined, on that host. Raises InputError for an overlay that has no `second.sh`."""
    now = joined(lab)
    if now is None or not now.said:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    if not (catalogue.find(now.name).folder / "second.sh").exists():
        raise InputError(f"overlay {now.name} has no second container on a host")
    return _endpoint(host, _run(lab, now, "second", lab.plan.host(host), now.said[host]))


def verify(lab: Lab, progress: Progress) -> dict[str, dict[str, str]]:
    """Prove the data path of what is joined, from every host to the next in the file; what each host said of it."""
    now = joined(lab)
    if now is None or not now.said:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    progress(f"{now.name}: verifying the data path")
    hosts = [host.name for host in lab.plan.hosts]
    peers = dict(zip(hosts, [*hosts[1:], hosts[0]], strict=True))
    said = {host: {**now.said[host], "PEER": now.said[peers[host]]["ADDRESS"]} for host in hosts}
    return lab.on_every_host(lambda host: _run(lab, now, "verify", host, said[host.name]))


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
    _on_all(lab, now, "leave", {})
    (lab.rundir / "overlay.json").unlink()


def _wait_until_connected(lab: Lab, now: Joined) -> None:
    """Every end reaches every other; the plain hosts of a lab in mode neighbours never will."""
    if now.name == UNDERLAY and lab.plan.routing == "neighbours":
        return

    def wait(host: Host) -> None:
        peers = " ".join(other["ADDRESS"] for peer, other in now.said.items() if peer != host.name)
        _run_script(lab, now, "reach.sh", host, {**now.said[host.name], "PEERS": peers})

    lab.on_every_host(wait)


def _endpoint(host: str, said: Mapping[str, str]) -> Endpoint:
    enter = (*ENTER, said["ENTER"], "--") if "ENTER" in said else ()
    return Endpoint(host, said["ADDRESS"], int(said["MTU"]), enter, said.get("OWN", ""))


def _put_scripts(lab: Lab, overlay: Overlay, hosts: Sequence[Host]) -> None:
    """The overlay's folders and what its scripts source, placed relative to each other as they are here."""
    scripts = catalogue.scripts()
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / IN_HOST.name
        for folder in overlay.folders:
            shutil.copytree(folder, staged / "overlays" / folder.name, ignore=shutil.ignore_patterns("build"))
        shutil.copy(scripts.parent / "lib.sh", staged)
        for path in scripts.glob("*.sh"):
            shutil.copy(path, staged / "overlays")
        for_each(hosts, lambda host: lab.provider.put(host.name, staged, IN_HOST))


def _put_programs(lab: Lab, host: Host, made: Path) -> None:
    """Unless the host has them."""
    target = PROGRAMS_IN_HOST / made.name
    if lab.provider.run(host.name, ["test", "-d", str(target)], timeout_s=PHASE_TIMEOUT_S, check=False).code != 0:
        arriving = target.with_name("arriving")
        lab.provider.put(host.name, made, arriving)
        lab.provider.run(host.name, ["mv", "-T", str(arriving), str(target)], timeout_s=PHASE_TIMEOUT_S)


def _on_all(lab: Lab, now: Joined, phase: str, said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return lab.on_every_host(lambda host: _run(lab, now, phase, host, said))


def _leader_first(lab: Lab, now: Joined, phase: str) -> dict[str, dict[str, str]]:
    leader = lab.plan.hosts[0]
    said = _run(lab, now, phase, leader, {})

    def follow(host: Host) -> dict[str, str]:
        return said if host == leader else _run(lab, now, phase, host, said)

    return lab.on_every_host(follow)


def _run(lab: Lab, now: Joined, phase: str, host: Host, said: Mapping[str, str]) -> dict[str, str]:
    """Run one of an overlay's own scripts on one host; its KEY=VALUE lines."""
    return _run_script(lab, now, f"{catalogue.find(now.name).folder.name}/{phase}.sh", host, said)


def _run_script(lab: Lab, now: Joined, script: str, host: Host, said: Mapping[str, str]) -> dict[str, str]:
    own = {"MINIGTS_VARIANT": catalogue.find(now.name).variant, "MINIGTS_PROGRAMS": now.programs}
    environment = {**said, **_environment(lab.plan, host), **own, "MINIGTS_ENGINE": lab.provider.engine}
    settings = [f"{key}={value}" for key, value in environment.items()]
    argv = ["env", *settings, str(IN_HOST / "overlays" / script)]
    try:
        result = lab.provider.run(host.name, argv, timeout_s=PHASE_TIMEOUT_S)
    except CommandFailed as error:
        if error.code == EnvironmentLacks.exit_code:
            raise EnvironmentLacks(f"{now.name}: {error.stderr.strip()}") from error
        raise
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


def _write(lab: Lab, content: Joined) -> None:
    temporary = lab.rundir / "overlay.json.new"
    temporary.write_text(content.model_dump_json(indent=1) + "\n")
    temporary.rename(lab.rundir / "overlay.json")
