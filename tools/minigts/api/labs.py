"""A lab, its hosts, its containers and its links, as another program holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self, TypeVar

from minigts import lab as recorded
from minigts import overlays
from minigts.api.measured import PROBES, RoundTrips, Throughput, end_of, round_trips, throughput
from minigts.errors import InputError
from minigts.fidelity import expectations, measure
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.expectations import Measurements
from minigts.lab import Change, Progress, software
from minigts.lab.links import links_between, require_effect
from minigts.language.problems import did_you_mean, listed, shown
from minigts.language.quantities import TIME_MS
from minigts.overlays import containers
from minigts.providers import DEFAULT
from minigts.providers.base import Result
from minigts.session import bring_up
from minigts.session.plans import planned
from minigts.topology import altering
from minigts.topology.link_settings import SETTABLE
from minigts.topology.plan import Plan
from minigts.topology.setting import Amount
from minigts.topology.time import Time

COMMAND_TIMEOUT_S = 60.0
_F = TypeVar("_F", bound=Callable[..., Any])


def _quiet(_text: str) -> None:
    """Progress that nobody reads."""


@dataclass(frozen=True)
class Lab:
    """A lab that is up. As a context manager it is taken down at the end, if `up` brought it up; another stays."""

    _lab: recorded.Lab
    ours: bool = False
    """Whether `up` brought it up."""
    _say: Progress = field(default=_quiet, repr=False, compare=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ours:
            self.down()

    @property
    def name(self) -> str:
        return self._lab.name

    @property
    def plan(self) -> Plan:
        """What its topology file means: hosts, links, paths, and what is predicted of them."""
        return self._lab.plan

    @property
    def provider(self) -> str:
        return self._lab.provider.name

    @property
    def time(self) -> Time:
        return self._lab.time

    @property
    def kernel(self) -> str:
        """The release of its first host's kernel."""
        return self.hosts[0].run("uname", "-r").stdout.strip()

    @property
    def overlay(self) -> str | None:
        """The overlay that is joined now, by its name."""
        joined = overlays.joined(self._lab)
        return joined.name if joined is not None and joined.ends else None

    @property
    def cut(self) -> frozenset[str]:
        """The names of the links that are cut."""
        return frozenset(recorded.cut_links(self.plan, self._lab.read_record()))

    @property
    def hosts(self) -> tuple[Host, ...]:
        return tuple(Host(self._lab, host.name) for host in self.plan.hosts)

    def host(self, name: str) -> Host:
        """Raises InputError when there is none of that name."""
        return Host(self._lab, self._known(name))

    def container(self, name: str) -> Container | OwnContainer:
        """By a host's name the measuring container of what is joined there; else the topology's own container of that
        name, NAME.HOST where several hosts have it. Raises MinigtsError when nothing is joined, or when there is none.
        """
        if any(host.name == name for host in self.plan.hosts):
            end_of(self._lab, name)
            return Container(self._lab, name)
        return OwnContainer(self._lab, containers.find(self._lab, name))

    def link(self, first: str, second: str) -> Link:
        """Every link between two hosts or switches. Raises InputError when there is none."""
        links_between(self.plan, first, second)
        return Link(self._lab, first, second)

    def rtt(
        self,
        source: str,
        target: str,
        *,
        containers: bool = False,
        count: int = PROBES,
        interval_s: float | None = None,
    ) -> RoundTrips:
        """Send `count` echo requests from host to host, or from container to container; the provider's own pace, if no
        `interval_s` is given, is no load. Raises InputError where the one does not reach the other.
        """
        self._known(source), self._known(target)
        return round_trips(self._lab, source, target, containers=containers, count=count, interval_s=interval_s)

    def throughput(
        self, source: str, target: str, *, containers: bool = False, seconds: int = 2, slow_start_s: int | None = None
    ) -> Throughput:
        """Let one TCP flow run for `seconds`, once it has left slow start: after thirty round trips unless
        `slow_start_s` says otherwise. Raises MinigtsError when nothing arrives.
        """
        self._known(source), self._known(target)
        return throughput(self._lab, source, target, containers=containers, seconds=seconds, slow_start_s=slow_start_s)

    def add_host(self, name: str, neighbour: str, **settings: str) -> Lab:
        """A host more, with a link to a neighbour, which is started again on its own disk; `rtt="10ms", memory="1GB"`,
        as in a topology. The lab as it is then: this object knows it as it was. Raises InputError, EnvironmentLacks.
        """
        return self._altered(altering.with_host(self.plan, name, neighbour, settings))

    def add_link(self, first: str, second: str, **settings: str) -> Lab:
        """A link more, for which both its ends are started again. As `add_host`."""
        return self._altered(altering.with_link(self.plan, first, second, settings))

    def remove_host(self, name: str) -> Lab:
        """A host less, with its links and its disk; its neighbours are started again. As `add_host`."""
        return self._altered(altering.without_host(self.plan, name))

    def remove_link(self, name: str) -> Lab:
        """The link of that name less; both its ends are started again. As `add_host`."""
        return self._altered(altering.without_link(self.plan, name))

    def _altered(self, after: Plan) -> Lab:
        now, _ = overlays.alter(self._lab, after, self._say)
        return replace(self, _lab=now)

    def join(self, overlay: str) -> None:
        """Lay an overlay over the lab, in place of the one that is there. Raises InputError, EnvironmentLacks."""
        overlays.join(self._lab, overlay, self._say)

    def leave(self) -> None:
        """Take off what is joined."""
        overlays.leave(self._lab, self._say)

    def certificate(self, *, anew: bool = False) -> Certificate:
        """The lab against its plan: settings, round trips, loss and rate of its links. Measured, unless it has been
        since its links were last set and is not wanted `anew`."""
        return measure.certify(self._lab, self._say) if anew else measure.after_up(self._lab, self._say)

    def check(self) -> Certificate:
        """The certificate anew, and what the topology's `expect:` wants, as `minigts check`."""
        return expectations.check(self._lab, self._say)

    def expectations(self, certificate: Certificate | None = None) -> Measurements:
        """What the topology's `expect:` is judged by, measured when it is first asked for; what the certificate has
        measured is not measured again."""
        return Measurements(self._lab, self._say, certificate.rows if certificate is not None else ())

    def diagnose(self, host: str, into: Path) -> None:
        """Write what explains a failure of a host or switch, its console and its kernel's log, into `into`."""
        self._lab.provider.diagnose(host, into)

    @contextmanager
    def links_given_back(self) -> Iterator[Self]:
        """Afterwards links are cut and changed as they were before, whatever was done to them meanwhile."""
        before = self._lab.read_record()
        try:
            yield self
        finally:
            recorded.restore_links(self._lab, before)

    @contextmanager
    def given_back(self) -> Iterator[Self]:
        """Afterwards its links, its calibration, its certificate and its overlay are what they were."""
        lab = self._lab
        record, certificate, overlay = lab.read_record(), measure.last(lab), overlays.joined(lab)
        try:
            yield self
        finally:
            lab.write(record)
            recorded.set_links(lab, record.settings)
            if certificate is None:
                (lab.rundir / measure.FILE).unlink(missing_ok=True)
            elif measure.last(lab) != certificate:
                measure.keep(lab, certificate)
            if overlay is None:
                overlays.leave(lab, self._say)
            else:
                overlays.join(lab, overlay.name, self._say)

    def down(self) -> None:
        """Take it down: no process, socket or file of it is left."""
        recorded.down(self._lab)

    def _known(self, name: str) -> str:
        names = [host.name for host in self.plan.hosts]
        if name not in names:
            raise InputError(f"no host {name!r}; hosts are {listed(names)}{did_you_mean(name, names)}")
        return name


@dataclass(frozen=True)
class Host:
    """A host of a lab."""

    _lab: recorded.Lab = field(repr=False)
    name: str

    @property
    def address(self) -> str:
        """Its own IPv4 address, by whichever segment a packet comes."""
        return self._lab.plan.host(self.name).address

    def run(self, *argv: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True, stdin: str = "") -> Result:
        """Run a command as root; its words are given one by one: `run("ip", "route")`. With `check`, a code other than
        0 raises CommandFailed, which shows what it said. Raises CommandTimeout.
        """
        words = software.in_environment(self._lab, self.name, argv)
        return self._lab.provider.run(self.name, words, timeout_s=timeout_s, check=check, stdin=stdin.encode())

    def shell(self, script: str, *, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True) -> Result:
        """Run a script by `sh`."""
        return self.run("sh", "-c", script, timeout_s=timeout_s, check=check)

    def put(self, source: Path, target: str) -> None:
        """Copy a file, or a folder with all that is in it, to `target` on the host."""
        self._lab.provider.put(self.name, source, software.place(self._lab, self.name, PurePosixPath(target)))


@dataclass(frozen=True)
class Container:
    """The measuring container of the overlay that is joined, on one host."""

    _lab: recorded.Lab = field(repr=False)
    host: str

    @property
    def address(self) -> str:
        """Where other containers reach it."""
        return end_of(self._lab, self.host)[1].address

    @property
    def mtu(self) -> int:
        """Of its interface, in bytes."""
        return end_of(self._lab, self.host)[1].mtu

    def run(self, *argv: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True, stdin: str = "") -> Result:
        """As `Host.run`, in the container."""
        inside = (*end_of(self._lab, self.host)[1].prefix, *argv)
        return self._lab.provider.run(self.host, inside, timeout_s=timeout_s, check=check, stdin=stdin.encode())


@dataclass(frozen=True)
class OwnContainer:
    """A container that the topology declares, on its host."""

    _lab: recorded.Lab = field(repr=False)
    _place: containers.Place

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def host(self) -> str:
        return self._place.host

    @property
    def address(self) -> str:
        """Where other containers reach it; by its name they find it, too."""
        return self._place.address

    def run(self, *argv: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True, stdin: str = "") -> Result:
        """As `Host.run`, in the container, with its program's environment."""
        inside = (*self._place.prefix, *argv)
        return self._lab.provider.run(self.host, inside, timeout_s=timeout_s, check=check, stdin=stdin.encode())


_KEYWORDS = {each.word.replace(".", "_"): each for each in SETTABLE.values()}
_KEYWORDS["rtt"] = SETTABLE["delay"]
"""Of `Link.change`."""


def _with_keywords(change: _F) -> _F:
    """So that `help` and editors name them."""
    kind = Parameter.KEYWORD_ONLY
    own = (Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),)
    named = (Parameter(word, kind, default=None, annotation="str | None") for word in _KEYWORDS)
    change.__signature__ = Signature([*own, *named], return_annotation=None)  # type: ignore[attr-defined]
    return change


@dataclass(frozen=True)
class Link:
    """Every link between two hosts or switches. What is set of it stays so until it is set otherwise."""

    _lab: recorded.Lab = field(repr=False)
    first: str
    second: str

    def cut(self) -> None:
        """What is sent is lost, both ways. The interfaces stay up and do not notice."""
        recorded.set_link(self._lab, self.first, self.second, up=False)

    def mend(self) -> None:
        """Whole again, and as the topology declares it."""
        recorded.change_link(self._lab, self.first, self.second, Change())
        recorded.set_link(self._lab, self.first, self.second, up=True)

    @_with_keywords
    def change(self, **settings: str | None) -> None:
        """Set it so in both directions, in the topology language's words and units: `change(delay="50ms", loss="1%")`.
        What is left open is as declared; of delay there is rtt, too. Raises InputError, and nothing has been changed.
        """
        given = {word: written for word, written in settings.items() if written is not None}
        if "delay" in given and "rtt" in given:
            raise InputError("change: say delay, which is one way, or rtt, which is both; not both of them")
        change = Change(**dict(_amount(word, written) for word, written in given.items()))
        require_effect(self._lab, self.first, self.second, change)
        recorded.change_link(self._lab, self.first, self.second, change)


def _amount(keyword: str, written: str) -> tuple[str, Amount]:
    """The field that a keyword names, and what it is set to."""
    if keyword not in _KEYWORDS:
        raise InputError(f"change: {shown(keyword)} is nothing that can be set: write {listed([*_KEYWORDS])}")
    try:
        if keyword == "rtt":
            return "delay_ms", TIME_MS.parse(written) / 2
        setting = _KEYWORDS[keyword]
        return setting.field, setting.parse(written)
    except ValueError as error:
        raise InputError(f"change: {keyword}: {error}") from error


def up(
    topology: Path | str | Plan,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    name: str | None = None,
    overlay: str | None = None,
    say: Progress = _quiet,
) -> Lab:
    """Bring a lab up, as `minigts up` does: hosts, links, certificate, and `overlay`, else the one that a kept lab had,
    else the topology's.

    `topology` is a file, a text of several lines, or a plan. A lab of that name that is up with the same plan is left
    as it is; one that is kept comes up on its hosts' disks, and is not taken down at the end of a `with`.
    `say` is told what is being done. Raises InputError, EnvironmentLacks, HostFailed; then nothing is left.
    """
    plan = topology if isinstance(topology, Plan) else planned(topology, provider=provider, time=time)
    ready = bring_up.ready(bring_up.Request(plan, provider, name, overlay))
    return Lab(bring_up.bring_up(ready, say).lab, ours=ready.is_new, _say=say)


def open_lab(name: str | None = None, *, say: Progress = _quiet) -> Lab:
    """The lab called `name`, or the only one there is. Raises InputError that says which there are."""
    return Lab(recorded.open_lab(name), _say=say)


def all_labs() -> tuple[Lab, ...]:
    """Every lab of this user that is up, by name; one whose making was broken off is left out."""
    return tuple(Lab(each) for each in recorded.all_labs() if each.read_state() == "up")
