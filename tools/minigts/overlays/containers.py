"""The user's own containers on an overlay: started when it is joined, again with their host, and taken away with it.

The plan says which there are; the phases on a host are provision/overlays/containers.sh. First every network is held,
so that all addresses are known; then every container is started, and finds the others by name in its /etc/hosts.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from minigts.artifacts import container_images
from minigts.artifacts.container_images import Image
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab, Progress
from minigts.language.problems import did_you_mean, listed
from minigts.overlays import catalogue
from minigts.providers.base import Provider
from minigts.topology import containers as declared
from minigts.topology.containers import Beside, Container
from minigts.topology.parts import Host
from minigts.topology.plan import Plan

RECORD = "containers.json"
IN_HOST = PurePosixPath("/run/minigts")
KEPT = PurePosixPath("/var/lib/minigts")
ENTER = IN_HOST / "overlays" / "enter.sh"
COPY_TIMEOUT_S = 600.0
TAKE_PLACE = 'mkdir -p "$(dirname "$2")" && rm -rf -- "$2" && mv -T -- "$1" "$2"'
FILL = 'cat >"$1"'
"""Into the file that is there: containers have it as their /etc/hosts, and would keep an old one."""

RunPhase = Callable[[str, Host, Mapping[str, str]], dict[str, str]]
"""Runs a phase on a host, with variables; what it prints as KEY=VALUE."""


class Record(BaseModel):
    """containers.json in the run directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: dict[str, str] = {}
    """Of each container, by NAME.HOST."""
    launched: frozenset[str] = frozenset()
    """The hosts whose containers have been started."""


@dataclass(frozen=True)
class Place:
    """A container of the user's, on its host."""

    host: str
    name: str
    address: str

    @property
    def full_name(self) -> str:
        return full_name(self.name, self.host)

    @property
    def prefix(self) -> tuple[str, ...]:
        """In front of a command it runs it in the container."""
        return ("bash", str(ENTER), self.full_name)

    @property
    def network(self) -> tuple[str, ...]:
        """In front of a command it runs the host's own program in the container's network, and in nothing else."""
        return ("bash", str(ENTER), "--network", self.full_name)


def full_name(name: str, host: str) -> str:
    """In the whole lab, and in the host's engine."""
    return f"{name}.{host}"


def require(plan: Plan, provider: Provider, overlay: str) -> None:
    """Raises InputError when the plan has containers and that overlay has no place for them, or when what they are made
    of is not there; EnvironmentLacks when it cannot be fetched. Fetches and starts nothing."""
    if not any(host.containers for host in plan.hosts):
        return
    if provider.engine != "docker" or not catalogue.find(overlay).declaration.containers:
        fitting = [name for name in catalogue.known() if catalogue.find(name).declaration.containers]
        where = f"provider {provider.name}" if provider.engine != "docker" else f"overlay {overlay}"
        raise InputError(
            f"{where} has no place for containers, and {plan.name} has some: overlays that have are {listed(fitting)}; "
            "write `overlay:`, or say --overlay"
        )
    for host in plan.hosts:
        for one in host.containers:
            for path in (one.image, *(volume.source for volume in one.volumes)):
                if path.startswith("/") and not Path(path).exists():
                    raise InputError(f"container {one.name} of host {host.name}: there is no {path}")


def bring_up(lab: Lab, overlay: str, hosts: Sequence[Host], run: RunPhase, progress: Progress) -> dict[str, str]:
    """Start the containers of `hosts` on the overlay, which is joined there; the address of each, by NAME.HOST.

    Raises InputError for an image that is none, CommandFailed when the engine refuses something.
    """
    having = [host for host in hosts if host.containers]
    network = catalogue.find(overlay).declaration.containers
    if not having:
        return {}
    if not network:
        progress(f"{overlay}: it has no place for containers; those of the topology are not started")
        return {}
    images = _images(having, progress)
    progress(f"{overlay}: handing containers' images and files to {listed([host.name for host in having])}")
    lab.on_each(having, lambda host: _prepare(lab, host, network, images, run))
    progress(f"{overlay}: starting containers")
    held = lab.on_each(having, lambda host: run("hold", host, {}))
    before = _record(lab)
    addresses = before.addresses | {name: address for words in held.values() for name, address in words.items()}
    _write(lab, Record(addresses=addresses, launched=before.launched - {host.name for host in having}))
    return addresses


def launch(lab: Lab, hosts: Sequence[Host], peers: Callable[[Host], Sequence[Host]], run: RunPhase) -> list[str]:
    """Tell every container which others there are, and start those of `hosts`; what has ended badly, a line each.

    `peers` are the hosts on a host's network, itself among them.
    """
    addresses = _addresses(lab)
    everywhere = [
        host for host in lab.plan.hosts if any(full_name(one.name, host.name) in addresses for one in host.containers)
    ]
    lab.on_each(everywhere, lambda host: _tell_names(lab, host, names_file(host, peers(host), addresses)))
    started = [host for host in hosts if host in everywhere]
    states = lab.on_each(started, lambda host: run("launch", host, {}))
    record = _record(lab)
    _write(lab, record.model_copy(update={"launched": record.launched | {host.name for host in started}}))
    return [
        f"container {name} has ended: {state}; minigts logs {host}, at container-{name}.log, says why"
        for host, words in states.items()
        for name, state in words.items()
        if state.partition(",")[0] not in ("running", "exited 0")
    ]


def lacking(lab: Lab, overlay: str, hosts: Sequence[Host]) -> list[Host]:
    """The hosts whose containers are still to be started, since a command was broken off."""
    if not catalogue.find(overlay).declaration.containers:
        return []
    return [host for host in hosts if host.containers and host.name not in _record(lab).launched]


def forget(lab: Lab) -> None:
    """They have gone with their overlay."""
    (lab.rundir / RECORD).unlink(missing_ok=True)


def find(lab: Lab, name: str) -> Place:
    """The container NAME.HOST, or NAME where only one host has it. Raises InputError when it is none, or not up."""
    known = declared.names({host.name: host.containers for host in lab.plan.hosts})
    if name not in known:
        hint = did_you_mean(name, known) or (f"; there are {listed(list(known))}" if known else "; this lab has none")
        raise InputError(f"no container {name!r}{hint}")
    host, own = known[name]
    address = _addresses(lab).get(full_name(own, host))
    if address is None:
        raise InputError(f"container {name} is not up: its lab has no overlay joined that it can be on")
    return Place(host, own, address)


def states(lab: Lab, run: RunPhase) -> list[dict[str, str]]:
    """Every container of the plan: name, host, image, address, state. On a host that does not answer none is up."""
    addresses = _addresses(lab)

    def ask(host: Host) -> dict[str, str]:
        try:
            return run("states", host, {}) if addresses and host.containers else {}
        except MinigtsError:
            return {}

    said = lab.on_every_host(ask)
    return [
        {
            "container": one.name,
            "host": host.name,
            "image": one.image,
            "address": addresses.get(full_name(one.name, host.name), ""),
            "state": said[host.name].get(full_name(one.name, host.name), "not up"),
        }
        for host in lab.plan.hosts
        for one in host.containers
    ]


def load(lab: Lab, image: Image, hosts: Sequence[Host], run: RunPhase) -> list[str]:
    """Put an image into these hosts' engines, unless they have it; the hosts that were handed it."""
    given = lab.on_each(hosts, lambda host: _load(lab, host, image, run))
    return [host for host, did in given.items() if did]


def names_in_engine(image: Image) -> tuple[str, ...]:
    """What a host's engine calls it."""
    return image.names or (f"{_stem(image)}:latest" if image.kind == "filesystem" else image.tag,)


def names_file(host: Host, peers: Sequence[Host], addresses: Mapping[str, str]) -> str:
    """The /etc/hosts of a host's containers: all of its network by NAME.HOST; by NAME, too, those that are alone in
    having it, and the host's own, which have their further names as well."""
    several = {peer.name: peer.containers for peer in peers}
    alone = declared.names(several) | {one.name: (host.name, one.name) for one in host.containers}
    lines = ["127.0.0.1 localhost"]
    for peer, ones in several.items():
        for one in ones:
            whole = full_name(one.name, peer)
            words = [addresses.get(whole, ""), whole]
            words += [one.name] if alone.get(one.name) == (peer, one.name) else []
            words += one.beside.names if one.beside is not None and peer == host.name else ()
            lines += [" ".join(words)] if whole in addresses else []
    return "\n".join(lines) + "\n"


def settings(host: Host, one: Container, image: str) -> dict[str, object]:
    """What the engine is asked for: Docker Engine API, ContainerCreate."""
    binds = [f"{IN_HOST / 'names.txt'}:/etc/hosts"]
    for number, volume in enumerate(one.volumes):
        source = str(_volume_in_host(one, number)) if declared.is_path(volume.source) else volume.source
        binds.append(f"{source}:{volume.target}{':ro' if volume.read_only else ''}")
    return {
        "Image": image,
        **({"Cmd": list(one.command)} if one.command else {}),
        **_beside(one.beside or Beside()),
        "Env": list(one.environment),
        "HostConfig": {
            "NetworkMode": f"container:{full_name(one.name, host.name)}.network",
            "RestartPolicy": {"Name": one.restart},
            "Binds": binds,
            "LogConfig": {"Type": "json-file"},
        },
    }


def _beside(beside: Beside) -> dict[str, object]:
    """What a Compose file alone says, in the engine's words; what it leaves to the image is left out."""
    health = beside.health
    words: dict[str, object] = {
        "Entrypoint": list(beside.entrypoint),
        "WorkingDir": beside.working_directory,
        "User": beside.user,
        "Labels": dict(label.partition("=")[::2] for label in beside.labels),
        "Healthcheck": health
        and {
            "Test": list(health.test),
            "Interval": health.interval_ns,
            "Timeout": health.timeout_ns,
            "StartPeriod": health.start_period_ns,
            "Retries": health.retries,
        },
    }
    return {key: word for key, word in words.items() if word}


def _images(hosts: Sequence[Host], progress: Progress) -> dict[str, Image]:
    """By what the topology calls them. Raises InputError where neither image nor topology says what to run."""
    images: dict[str, Image] = {}
    for host in hosts:
        for one in host.containers:
            image = images.get(one.image) or container_images.take(one.image, progress)
            images[one.image] = image
            if not image.runs and not one.command and not (one.beside and one.beside.entrypoint):
                raise InputError(
                    f"container {one.name} of host {host.name}: {one.image} does not say what to run: write `command:`"
                )
    return images


def _prepare(lab: Lab, host: Host, network: str, images: Mapping[str, Image], run: RunPhase) -> None:
    content = {
        "network": network,
        "containers": [
            {
                "name": full_name(one.name, host.name),
                "hostname": (one.beside and one.beside.hostname) or one.name,
                "ports": [published.model_dump() for published in one.ports],
                "settings": settings(host, one, images[one.image].tag),
            }
            for one in host.containers
        ],
    }
    with tempfile.TemporaryDirectory(dir=lab.rundir, prefix="staged.") as place:
        file = Path(place) / RECORD
        file.write_text(json.dumps(content, indent=1) + "\n")
        lab.provider.put(host.name, file, IN_HOST / RECORD)
    for one in host.containers:
        for number, volume in enumerate(one.volumes):
            if declared.is_path(volume.source):
                _put_volume(lab, host, Path(volume.source), _volume_in_host(one, number))
    for image in {one.image: images[one.image] for one in host.containers}.values():
        _load(lab, host, image, run)


def _put_volume(lab: Lab, host: Host, source: Path, target: PurePosixPath) -> None:
    """Anew, as it is now on this machine."""
    arriving = KEPT / "arriving" / target.name
    lab.provider.put(host.name, source, arriving)
    argv = ["sh", "-euc", TAKE_PLACE, "sh", str(arriving), str(target)]
    lab.provider.run(host.name, argv, timeout_s=COPY_TIMEOUT_S)


def _volume_in_host(one: Container, number: int) -> PurePosixPath:
    return KEPT / "volumes" / one.name / f"{number}"


def _load(lab: Lab, host: Host, image: Image, run: RunPhase) -> bool:
    """Whether it had to be handed over."""
    if run("has", host, {"IMAGE_TAG": image.tag}):
        return False
    file = KEPT / "images" / f"{image.key}.tar"
    lab.provider.put(host.name, image.path, file)
    words = {"IMAGE_FILE": str(file), "IMAGE_KIND": image.kind, "IMAGE_TAG": image.tag}
    run("load", host, words | {"IMAGE_ID": image.ids[0] if image.ids else "", "IMAGE_NAME": _stem(image)})
    return True


def _stem(image: Image) -> str:
    """`web` of web.tar.gz, as an engine writes names."""
    stem = re.sub(r"[^a-z0-9._-]+", "-", image.path.name.lower().partition(".tar")[0].removesuffix(".tgz"))
    return stem.strip("._-") or "image"


def _tell_names(lab: Lab, host: Host, content: str) -> None:
    argv = ["sh", "-euc", FILL, "sh", str(IN_HOST / "names.txt")]
    lab.provider.run(host.name, argv, timeout_s=COPY_TIMEOUT_S, stdin=content.encode())


def _addresses(lab: Lab) -> dict[str, str]:
    return _record(lab).addresses


def _record(lab: Lab) -> Record:
    return lab.read(RECORD, Record) or Record()


def _write(lab: Lab, record: Record) -> None:
    lab.put(RECORD, record.model_dump_json(indent=1) + "\n")
