"""A lab: a plan that a provider has brought up. It outlives the command that made it, in one run directory.

A run directory is `<state root>/labs/<name>`; it holds plan.json and lab.json beside what the provider puts there.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import IO, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from minigts import calibration, network, paths, shaping, switches
from minigts.errors import EnvironmentLacks, HostFailed, InputError, MinigtsError, noting_failures
from minigts.providers import registry
from minigts.providers.base import Provider, Restarts
from minigts.topology.plan import End, Host, Machine, Plan, Switch

T = TypeVar("T")
M = TypeVar("M", bound=Machine)
Progress = Callable[[str], None]
CONFIGURE_TIMEOUT_S = 60.0


class Record(BaseModel):
    """lab.json: what is known of a lab without asking it."""

    model_config = ConfigDict(extra="forbid")

    provider: str
    created: datetime
    state: Literal["starting", "up"] = "starting"
    own_latency_ms: float = 0.0
    """The emulator's own one-way latency over a link, taken off every link's delay."""


@dataclass(frozen=True)
class Lab:
    """A lab, up or not, told apart by its run directory."""

    rundir: Path

    @property
    def name(self) -> str:
        return self.rundir.name

    @cached_property
    def plan(self) -> Plan:
        return Plan.model_validate_json((self.rundir / "plan.json").read_text())

    @property
    def record(self) -> Record:
        """As it stands on disk now. Raises MinigtsError when the lab has no readable record."""
        try:
            return Record.model_validate_json((self.rundir / "lab.json").read_text())
        except (OSError, ValidationError) as error:
            raise MinigtsError(f"lab {self.name} was never complete: minigts down {self.name}") from error

    def write(self, record: Record) -> None:
        temporary = self.rundir / "lab.json.new"
        temporary.write_text(record.model_dump_json(indent=2) + "\n")
        temporary.rename(self.rundir / "lab.json")

    @cached_property
    def provider(self) -> Provider:
        return registry.make(self.record.provider, self.rundir)

    def state_of_hosts(self) -> dict[str, str]:
        """For each host and switch `answers` or why it does not."""

        def ask(machine: Host | Switch) -> str:
            try:
                self.provider.run(machine.name, ["true"], timeout_s=5)
            except MinigtsError as error:
                return str(error)
            return "answers"

        return self.on_every_machine(ask)

    def on_every_host(self, work: Callable[[Host], T]) -> dict[str, T]:
        """Do `work` for all hosts at once; the first error is raised after all have ended."""
        return for_each(self.plan.hosts, work)

    def on_every_machine(self, work: Callable[[Host | Switch], T]) -> dict[str, T]:
        """The same for all hosts and switches."""
        return for_each(self.plan.machines, work)

    def on_every_switch(self, work: Callable[[Switch], T]) -> dict[str, T]:
        """The same for all switches."""
        return for_each(self.plan.switches, work)


def all_labs() -> list[Lab]:
    """Every lab of this user with a run directory, up or not, by name."""
    directory = paths.state_root() / "labs"
    return [Lab(path) for path in sorted(directory.glob("*")) if path.is_dir()]


def open_lab(name: str | None = None) -> Lab:
    """The lab called `name`, or the only one there is. Raises InputError that says which there are."""
    labs = {lab.name: lab for lab in all_labs()}
    if name is None and len(labs) == 1:
        return next(iter(labs.values()))
    if name is not None and name in labs:
        return labs[name]
    if not labs:
        raise InputError("no lab is up; bring one up with: minigts up topologies/chain6.yaml")
    known = ", ".join(labs)
    if name is None:
        raise InputError(f"several labs are up ({known}): say which with --lab")
    close = get_close_matches(name, labs, 1)
    raise InputError(f"no lab {name!r}{f'; did you mean {close[0]!r}?' if close else ''} Labs are: {known}")


def up(plan: Plan, provider_name: str, name: str | None, progress: Progress) -> Lab:
    """Bring `plan` up as the lab `name` (the plan's own by default) and return when it is configured and shaped.

    A lab of that name that is up with the same plan is left as it is. On failure nothing is left running. Raises
    InputError when the name is taken by another plan, EnvironmentLacks, HostFailed.
    """
    rundir = paths.state_root() / "labs" / (name or plan.name)
    lab = Lab(rundir)
    with exclusive(rundir):
        if _is_up(lab, plan):
            return lab
        _clear(lab)
        rundir.mkdir(parents=True, mode=0o700)
        try:
            _bring_up(lab, plan, provider_name, progress)
        except BaseException as error:
            if isinstance(error, Exception):  # and not that the user broke it off
                with noting_failures(error):
                    _keep_consoles(lab)
            with noting_failures(error):
                _clear(lab)
            raise
    return lab


def down(lab: Lab) -> None:
    """Take a lab down and remove its run directory. Works after any crash; a second call does nothing."""
    with exclusive(lab.rundir):
        _clear(lab)


def _bring_up(lab: Lab, plan: Plan, provider_name: str, progress: Progress) -> None:
    provider = registry.make(provider_name, lab.rundir)
    lacking = provider.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    (lab.rundir / "plan.json").write_text(plan.model_dump_json(indent=1) + "\n")
    lab.write(Record(provider=provider_name, created=datetime.now(UTC)))
    also = f" and {len(plan.switches)} switches" if plan.switches else ""
    progress(f"starting {len(plan.hosts)} hosts{also}")
    provider.up(plan, progress)
    progress("configuring addresses, routes and links")
    _configure(lab, 0.0)
    progress("measuring the emulator's own latency")
    calibrate(lab)
    lab.on_every_switch(lambda switch: switches.do(provider, switch, "ask_controller"))
    lab.write(lab.record.model_copy(update={"state": "up"}))


def calibrate(lab: Lab) -> None:
    """Measure the emulator's own latency, as it is now, and take it off every delay instead of what was taken off."""
    taken_off_ms = lab.record.own_latency_ms
    own_latency_ms = calibration.own_latency_ms(lab.provider, lab.plan, taken_off_ms)
    if own_latency_ms != taken_off_ms:
        shape(lab, own_latency_ms)
        lab.write(lab.record.model_copy(update={"own_latency_ms": own_latency_ms}))


def restart(lab: Lab, name: str) -> None:
    """End a host or switch without asking it, start it again on its own disk and links, and configure it as `up` did.

    What ran on it has ended; the others run on. Raises EnvironmentLacks when the provider cannot do it.
    """
    if not isinstance(lab.provider, Restarts):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot start one host again")
    machine = next(each for each in lab.plan.machines if each.name == name)
    with exclusive(lab.rundir):
        lab.provider.restart(name)
        _configure_one(lab, machine, lab.record.own_latency_ms)
        if isinstance(machine, Switch):
            switches.do(lab.provider, machine, "ask_controller")


def _configure(lab: Lab, own_latency_ms: float) -> None:
    lab.on_every_machine(lambda machine: _configure_one(lab, machine, own_latency_ms))


def _configure_one(lab: Lab, machine: Host | Switch, own_latency_ms: float) -> None:
    text = network.script(lab.plan, machine)
    if isinstance(machine, Switch):
        _run_script(lab.provider, machine, text)
        switches.do(lab.provider, machine, "make_switch")
        text = ""
    _run_script(lab.provider, machine, text + shaping.script(machine.ports, own_latency_ms))


def shape(lab: Lab, own_latency_ms: float) -> None:
    """Set every link's delay again, less the emulator's own latency, and read all shaping back."""

    def shape_and_read_back(one: Host | Switch) -> list[str]:
        batch = shaping.delays_again(one.ports, own_latency_ms).encode()
        argv = ["tc", "-j", "-batch", "-"]
        shown = lab.provider.run(one.name, argv, timeout_s=CONFIGURE_TIMEOUT_S, stdin=batch).stdout
        return [f"{one.name}: {x}" for port in one.ports for x in shaping.differences(port, shown, own_latency_ms)]

    wrong = [text for texts in lab.on_every_machine(shape_and_read_back).values() for text in texts]
    if wrong:
        raise HostFailed("links are not shaped as declared:\n" + "\n".join(wrong))


def set_ports(lab: Lab, change: Callable[[End], End], gro: str) -> None:
    """Shape every port again as `change` makes it, its own latency taken off, and switch receive offload on or off."""
    own_latency_ms = lab.record.own_latency_ms

    def set_machine(machine: Host | Switch) -> None:
        ports = [change(port) for port in machine.ports]
        offload = "".join(f"ethtool -K {port.name} gro {gro}\n" for port in ports)
        _run_script(lab.provider, machine, shaping.script(ports, own_latency_ms) + offload)

    lab.on_every_machine(set_machine)


def set_link(lab: Lab, first: str, second: str, *, up: bool) -> None:
    """Cut every link between two machines, or make it whole again.

    The interfaces stay up, as at a light path that breaks in its middle: what is sent is lost, and nothing tells them.

    Raises InputError when there is no such link.
    """
    links = {link.name for link in lab.plan.links if set(link.ends) == {first, second}}
    if not links:
        others = ", ".join("-".join(link.ends) for link in lab.plan.links)
        raise InputError(f"no link between {first} and {second}; links are {others}")
    for machine in lab.plan.machines:
        ports = [port if up else _cut(port) for port in machine.ports if port.link in links]
        if ports:
            _run_script(lab.provider, machine, shaping.script(ports, lab.record.own_latency_ms))


def _cut(port: End) -> End:
    return port.model_copy(update={"incoming": port.incoming.model_copy(update={"loss_percent": 100.0})})


def _run_script(provider: Provider, machine: Host | Switch, text: str) -> str:
    argv = ["bash", "-eu", "-s"]
    return provider.run(machine.name, argv, timeout_s=CONFIGURE_TIMEOUT_S, stdin=text.encode()).stdout


def for_each(machines: Sequence[M], work: Callable[[M], T]) -> dict[str, T]:
    """Do `work` for all of them at once; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=max(1, len(machines))) as pool:
        started = {machine.name: pool.submit(work, machine) for machine in machines}
    return {name: future.result() for name, future in started.items()}


def _is_up(lab: Lab, plan: Plan) -> bool:
    """Whether the lab runs already. A lab that started and never finished, or lost a host, does not count."""
    if not (lab.rundir / "lab.json").exists() or lab.record.state != "up":
        return False
    if set(lab.state_of_hosts().values()) != {"answers"}:
        return False
    if lab.plan != plan:
        raise InputError(f"lab {lab.name} is up with another plan: minigts down {lab.name}, or choose --lab NAME")
    return True


def _clear(lab: Lab) -> None:
    if not lab.rundir.exists():
        return
    for provider in _possible_providers(lab):
        provider.down()
    shutil.rmtree(lab.rundir)


def _possible_providers(lab: Lab) -> list[Provider]:
    """The lab's provider; all of them when its record cannot be read, since each ends only what it recorded itself."""
    try:
        return [lab.provider]
    except MinigtsError:
        return [registry.make(name, lab.rundir) for name in registry.names()]


def _keep_consoles(lab: Lab) -> None:
    """What explains a failed start outlives it, in the state directory's `failed` folder; the last one only."""
    kept = paths.state_root() / "failed" / lab.name
    shutil.rmtree(kept, ignore_errors=True)
    for file in (path for path in lab.rundir.rglob("*") if path.suffix in (".log", ".json")):
        copy = kept / file.relative_to(lab.rundir)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


@contextmanager
def exclusive(rundir: Path) -> Iterator[None]:
    """One command at a time changes the lab of this run directory; others wait for their turn.

    The lock goes with the process that holds it, and its file with the lab. Not to be nested.
    """
    rundir.parent.mkdir(parents=True, exist_ok=True)
    path = rundir.parent / f".{rundir.name}.lock"
    with _locked(path):
        try:
            yield
        finally:
            if not rundir.exists():
                path.unlink()


def _locked(path: Path) -> IO[str]:
    """Waits for its turn. A lock whose file was removed meanwhile is nobody's: then it begins anew."""
    while True:
        lock = path.open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists() and path.samefile(f"/proc/self/fd/{lock.fileno()}"):
            return lock
        lock.close()
