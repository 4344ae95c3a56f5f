"""The user's own containers on an overlay: they start when it is joined and when their host restarts, and end with it.

The plan declares them; provision/overlays/containers.sh has the phases on a host. Phase `hold` makes every container's
network first, so that all addresses are known; then the containers start, with all names in their /etc/hosts.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from minigts.artifacts import container_images
from minigts.artifacts.container_images import ContainerImage
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab
from minigts.language.problems import did_you_mean, list_names
from minigts.machine.progress import Progress
from minigts.overlays import catalogue
from minigts.overlays.catalogue import ADDRESS
from minigts.overlays.phases import Printed
from minigts.providers.base import Provider
from minigts.topology import containers as declared
from minigts.topology.containers import ComposeSettings, PlannedContainer
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

RECORD = "containers.json"
IN_HOST = PurePosixPath("/run/minigts")
KEPT = PurePosixPath("/var/lib/minigts")
ENTER = IN_HOST / "overlays" / "enter.sh"
COPY_TIMEOUT_S = 600.0
TAKE_PLACE = 'mkdir -p "$(dirname "$2")" && rm -rf -- "$2" && mv -T -- "$1" "$2"'
FILL = 'cat >"$1"'
"""It overwrites the existing file: containers mount it as /etc/hosts, and would not see a new one."""

RunPhase = Callable[[str, Host, Mapping[str, str]], Printed]
"""A function that runs a phase on a host with variables, and returns the KEY=VALUE lines that it prints."""
STATE = re.compile("[a-z]{1,20}( -?[0-9]{1,5})?(, [a-z]{1,20})?")
"""A container's state, as phases print it: `running, healthy`, `exited 1`."""
HAS = {"HAS": re.compile("yes")}


class ContainerRecord(BaseModel):
    """containers.json in the run directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: dict[str, str] = {}
    """The address of each container, by NAME.HOST."""
    launched: frozenset[str] = frozenset()
    """The hosts whose containers have been started."""


@dataclass(frozen=True)
class ContainerAddress:
    """A container of the user's, on its host."""

    host: str
    name: str
    address: str

    @property
    def full_name(self) -> str:
        return full_name(self.name, self.host)

    @property
    def prefix(self) -> tuple[str, ...]:
        """A prefix that runs a command in the container."""
        return ("bash", str(ENTER), self.full_name)

    @property
    def network(self) -> tuple[str, ...]:
        """A prefix that runs a program of the host in the container's network namespace."""
        return ("bash", str(ENTER), "--network", self.full_name)


def full_name(name: str, host: str) -> str:
    """The container's name in the whole lab, and in the host's engine."""
    return f"{name}.{host}"


def _of_each(host: Host, value: re.Pattern[str]) -> dict[str, re.Pattern[str]]:
    """What a phase may print of a host's containers: for each a value of that form."""
    return dict.fromkeys((full_name(one.name, host.name) for one in host.containers), value)


def require(plan: Plan, provider: Provider, overlay: str) -> None:
    """Raises InputError when the plan has containers and the overlay or provider has no place for them, or when a file
    of theirs or an image in this machine's engine does not exist. It fetches and starts nothing."""
    if not any(host.containers for host in plan.hosts):
        return
    if provider.engine != "docker" or not catalogue.find(overlay).declaration.containers:
        fitting = [name for name in catalogue.known_names() if catalogue.find(name).declaration.containers]
        where = f"provider {provider.name}" if provider.engine != "docker" else f"overlay {overlay}"
        raise InputError(
            f"{where} has no place for the containers of {plan.name}: overlays that have are {list_names(fitting)}; "
            "choose one by `overlay:` or --overlay"
        )
    known = set[str]()
    for host in plan.hosts:
        for one in host.containers:
            if one.image not in known:
                with _naming(host, one):
                    container_images.require(one.image)
                known.add(one.image)
            for path in (one.image, *(volume.source for volume in one.volumes)):
                if path.startswith("/") and not Path(path).exists():
                    raise InputError(f"container {one.name} of host {host.name}: there is no {path}")


def bring_up(lab: Lab, overlay: str, hosts: Sequence[Host], run: RunPhase, progress: Progress) -> dict[str, str]:
    """Make the networks of the containers of `hosts`, on which the overlay is joined; return the addresses of all
    containers by NAME.HOST. `launch` starts the containers.

    Raises InputError for an image that cannot be used, CommandFailed when the engine refuses a request.
    """
    having = [host for host in hosts if host.containers]
    network = catalogue.find(overlay).declaration.containers
    if not having:
        return {}
    if not network:
        progress(f"{overlay} has no place for containers: those of the topology are not started")
        return {}
    images = _images(having, progress)
    progress(f"{overlay}: handing containers' images and files to {list_names([host.name for host in having])}")
    lab.work_on(having, lambda host: _prepare(lab, host, network, images, run))
    progress(f"{overlay}: starting containers")
    held = lab.work_on(having, lambda host: run("hold", host, {}).variables(_of_each(host, ADDRESS)))
    before = _record(lab)
    addresses = before.addresses | {name: address for words in held.values() for name, address in words.items()}
    _write(lab, ContainerRecord(addresses=addresses, launched=before.launched - {host.name for host in having}))
    return addresses


def launch(lab: Lab, hosts: Sequence[Host], peers: Callable[[Host], Sequence[Host]], run: RunPhase) -> list[str]:
    """Write all containers' names into their /etc/hosts, and start those of `hosts`; return a line for each container
    that has failed. `peers` gives the hosts in a host's network, with that host.
    """
    addresses = _addresses(lab)
    everywhere = [
        host for host in lab.plan.hosts if any(full_name(one.name, host.name) in addresses for one in host.containers)
    ]
    lab.work_on(
        everywhere, lambda host: fill(lab, host, IN_HOST / "names.txt", names_file(host, peers(host), addresses))
    )
    started = [host for host in hosts if host in everywhere]
    states = _started(lab, started, run)
    record = _record(lab)
    _write(lab, record.model_copy(update={"launched": record.launched | {host.name for host in started}}))
    return [
        f"container {name} has ended: {state}; minigts logs {host}, at container-{name}.log, says why"
        for host, name, state in states
        if state.partition(",")[0] not in ("running", "exited 0")
    ]


def _started(lab: Lab, hosts: Sequence[Host], run: RunPhase) -> list[tuple[str, str, str]]:
    """Start the containers of these hosts, those first on which others depend; return host, container and state of
    each."""
    found = []
    waves = declared.waves({host.name: host.containers for host in hosts})
    for wave in waves:

        def launched(host: Host, wave: Mapping[str, Sequence[str]] = wave) -> dict[str, str]:
            printed = run("launch", host, {"CONTAINERS": " ".join(wave[host.name])} if len(waves) > 1 else {})
            return printed.variables(_of_each(host, STATE))

        states = lab.work_on([host for host in hosts if host.name in wave], launched)
        found += [(host, name, state) for host, words in states.items() for name, state in words.items()]
    return found


def lacking(lab: Lab, overlay: str, hosts: Sequence[Host]) -> list[Host]:
    """The hosts whose containers have not been started, since a command was interrupted."""
    if not catalogue.find(overlay).declaration.containers:
        return []
    return [host for host in hosts if host.containers and host.name not in _record(lab).launched]


def forget(lab: Lab) -> None:
    """Remove the containers' record, after the overlay was left."""
    (lab.rundir / RECORD).unlink(missing_ok=True)


def names_beside(host: Host, peers: Sequence[Host], lab: Lab) -> str:
    """The names of the network's containers as lines of hosts(5) for the name servers of a host."""
    return names_file(host, peers, _addresses(lab)).partition("\n")[2]


def find(lab: Lab, name: str) -> ContainerAddress:
    """The container NAME.HOST, or NAME where only one host has it. Raises InputError when there is none, or it is not
    up."""
    known = declared.names({host.name: host.containers for host in lab.plan.hosts})
    if name not in known:
        hint = did_you_mean(name, known) or (
            f"; there are {list_names(list(known))}" if known else "; this lab has none"
        )
        raise InputError(f"no container {name!r}{hint}")
    host, own = known[name]
    address = _addresses(lab).get(full_name(own, host))
    if address is None:
        raise InputError(f"container {name} is not up: no overlay with a place for containers is joined")
    return ContainerAddress(host, own, address)


def states(lab: Lab, run: RunPhase) -> list[dict[str, str]]:
    """Every container of the plan: name, host, image, address, state; `not up` on a host that does not answer."""
    addresses = _addresses(lab)

    def ask(host: Host) -> dict[str, str]:
        try:
            return run("states", host, {}).variables(_of_each(host, STATE)) if addresses and host.containers else {}
        except MinigtsError:
            return {}

    said = lab.work_on_hosts(ask)
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


def load(lab: Lab, image: ContainerImage, hosts: Sequence[Host], run: RunPhase) -> list[str]:
    """Load an image into these hosts' engines, unless they have it; return the hosts that got it."""
    given = lab.work_on(hosts, lambda host: _load(lab, host, image, run))
    return [host for host, did in given.items() if did]


def names_in_engine(image: ContainerImage) -> tuple[str, ...]:
    """The names of an image in a host's engine."""
    return image.names or (f"{_stem(image)}:latest" if image.kind == "filesystem" else image.tag,)


def names_file(host: Host, peers: Sequence[Host], addresses: Mapping[str, str]) -> str:
    """The /etc/hosts of a host's containers. It has all containers of the network by NAME.HOST, and by NAME those whose
    name is unique or that are on this host. Containers on this host have their further names, too."""
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


def settings(host: Host, one: PlannedContainer, image: str) -> dict[str, object]:
    """The request to the engine: Docker Engine API, ContainerCreate."""
    binds = [f"{IN_HOST / 'names.txt'}:/etc/hosts"]
    for number, volume in enumerate(one.volumes):
        source = str(_volume_in_host(one, number)) if declared.is_path(volume.source) else volume.source
        binds.append(f"{source}:{volume.target}{':ro' if volume.read_only else ''}")
    return {
        "Image": image,
        **({"Cmd": list(one.command)} if one.command else {}),
        **_beside(one.beside or ComposeSettings()),
        "Env": list(one.environment),
        "HostConfig": {
            "NetworkMode": f"container:{full_name(one.name, host.name)}.network",
            "RestartPolicy": {"Name": one.restart},
            "Binds": binds,
            "LogConfig": {"Type": "json-file"},
        },
    }


def _beside(beside: ComposeSettings) -> dict[str, object]:
    """Settings that only Compose files have, by the engine's keys, without those that are left to the image."""
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


def _images(hosts: Sequence[Host], progress: Progress) -> dict[str, ContainerImage]:
    """The images by their names in the topology. Raises InputError where neither image nor topology has a command."""
    images: dict[str, ContainerImage] = {}
    for host in hosts:
        for one in host.containers:
            with _naming(host, one):
                image = images.get(one.image) or container_images.take(one.image, progress)
            images[one.image] = image
            if not image.runs and not one.command and not (one.beside and one.beside.entrypoint):
                raise InputError(
                    f"container {one.name} of host {host.name}: {one.image} does not say what to run: write `command:`"
                )
    return images


@contextmanager
def _naming(host: Host, one: PlannedContainer) -> Iterator[None]:
    """Adds to an error about the container's image which container it is."""
    try:
        yield
    except MinigtsError as error:
        error.add_note(f"it is the image of container {one.name} of host {host.name}")
        raise


def _prepare(lab: Lab, host: Host, network: str, images: Mapping[str, ContainerImage], run: RunPhase) -> None:
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
    """Copy a volume as it is now on this machine, in place of an earlier copy."""
    arriving = KEPT / "arriving" / target.name
    lab.provider.put(host.name, source, arriving)
    argv = ["sh", "-euc", TAKE_PLACE, "sh", str(arriving), str(target)]
    lab.provider.run(host.name, argv, timeout_s=COPY_TIMEOUT_S)


def _volume_in_host(one: PlannedContainer, number: int) -> PurePosixPath:
    return KEPT / "volumes" / one.name / f"{number}"


def _load(lab: Lab, host: Host, image: ContainerImage, run: RunPhase) -> bool:
    """Load an image into a host's engine; return whether it was missing there."""
    if run("has", host, {"IMAGE_TAG": image.tag}).variables(HAS):
        return False
    file = KEPT / "images" / f"{image.key}.tar"
    lab.provider.put(host.name, image.path, file)
    words = {"IMAGE_FILE": str(file), "IMAGE_KIND": image.kind, "IMAGE_TAG": image.tag}
    run("load", host, words | {"IMAGE_ID": image.ids[0] if image.ids else "", "IMAGE_NAME": _stem(image)})
    return True


def _stem(image: ContainerImage) -> str:
    """The file's name without its ending as a valid image name: `web` of web.tar.gz."""
    stem = re.sub(r"[^a-z0-9._-]+", "-", image.path.name.lower().partition(".tar")[0].removesuffix(".tgz"))
    return stem.strip("._-") or "image"


def fill(lab: Lab, host: Host, file: PurePosixPath, content: str) -> None:
    """Write a file on a host, in place of what it had before."""
    argv = ["sh", "-euc", FILL, "sh", str(file)]
    lab.provider.run(host.name, argv, timeout_s=COPY_TIMEOUT_S, stdin=content.encode())


def _addresses(lab: Lab) -> dict[str, str]:
    return _record(lab).addresses


def _record(lab: Lab) -> ContainerRecord:
    return lab.read(RECORD, ContainerRecord) or ContainerRecord()


def _write(lab: Lab, record: ContainerRecord) -> None:
    lab.put(RECORD, record.model_dump_json(indent=1) + "\n")
