"""The objects of `minigts.api`: a lab, its hosts, its containers and its links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from os import PathLike
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self, TypeVar

from minigts import lab as recorded
from minigts import overlays
from minigts.api.measured import PROBES, RoundTrips, Throughput, end_of, round_trips, throughput
from minigts.errors import InputError
from minigts.fidelity import expectations, kept_certificate, measure
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.expectations import Measurements
from minigts.foreign import user_text
from minigts.lab import Change, provisioning
from minigts.lab.changes import require_effect
from minigts.lab.edit import defaults_of
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.language.quantities import TIME_MS
from minigts.machine.parallel import Together
from minigts.machine.progress import Progress
from minigts.overlays import containers
from minigts.overlays import policy as policies
from minigts.providers import DEFAULT, base
from minigts.session import apply, bring_up
from minigts.session.plans import read
from minigts.topology import edit
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import SETTABLE
from minigts.topology.outage import Outage
from minigts.topology.plan.link_names import links_between
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import Loaded
from minigts.topology.time import Time

COMMAND_TIMEOUT_S = 60.0
_F = TypeVar("_F", bound=Callable[..., Any])


Words = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A word of a command, or as the only argument all of its words."""


def words_of(argv: Sequence[Words]) -> tuple[str, ...]:
    """The words of a command, of `("ip", "route")` and of `(["ip", "route"],)`. Raises InputError."""
    first = argv[0] if len(argv) == 1 else None
    words = argv if first is None or isinstance(first, str | PathLike) else first
    wrong = [word for word in words if not isinstance(word, str | PathLike)] if isinstance(words, Sequence) else [words]
    if wrong or not words:
        what = f"{repr(wrong[0])[:60]} is no text" if wrong else "it has no word"
        raise InputError(f'run: {what}: write a command as words, "ping", "-c", "1", or as one list of them')
    return tuple(os.fspath(word) for word in words if isinstance(word, str | PathLike))


def _quiet(_text: str) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True)
class Lab:
    """A lab that is up. A `with` block takes it down at the end if `up` brought it up; otherwise it stays up."""

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
        """The plan of its topology file: hosts, links, paths, and predictions for them."""
        return self._lab.plan

    @property
    def provider(self) -> str:
        return self._lab.provider.name

    @property
    def time(self) -> Time:
        return self._lab.time

    @property
    def kernel(self) -> str:
        """The kernel release of its first host."""
        return self.hosts[0].run("uname", "-r").stdout.strip()

    @property
    def overlay(self) -> str | None:
        """The name of the overlay that is joined now; None: none."""
        joined = overlays.joined_overlay(self._lab)
        return joined.name if joined is not None and joined.ends else None

    @property
    def cut(self) -> frozenset[str]:
        """The names of the links that are cut."""
        return frozenset(recorded.cut_links(self.plan, self._lab.read_record()))

    @property
    def hosts(self) -> tuple[Host, ...]:
        return tuple(Host(self._lab, host.name) for host in self.plan.hosts)

    def host(self, name: str) -> Host:
        """The host of that name. Raises InputError when there is none."""
        return Host(self._lab, self._known(name))

    def container(self, name: str) -> Container | OwnContainer:
        """The overlay's measuring container on the host `name`; or else the topology's container `name`, which is
        NAME.HOST where several hosts have it. Raises MinigtsError when no overlay is joined, or there is none.
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
        """Send `count` echo requests from host to host, or with `containers` from container to container, one each
        `interval_s` (default: the provider's pace, which is no load). Raises InputError where `source` does not reach
        `target`.
        """
        self._known(source), self._known(target)
        return round_trips(self._lab, source, target, containers=containers, count=count, interval_s=interval_s)

    def throughput(
        self, source: str, target: str, *, containers: bool = False, seconds: int = 2, slow_start_s: int | None = None
    ) -> Throughput:
        """Measure one TCP flow for `seconds` after its slow start, which is given `slow_start_s` (default: thirty RTTs,
        at least 1 s). Raises MinigtsError when nothing arrives, InputError where nothing limits TCP, as in virtual time
        over links with neither a rate nor a delay.
        """
        self._known(source), self._known(target)
        return throughput(self._lab, source, target, containers=containers, seconds=seconds, slow_start_s=slow_start_s)

    def add_host(self, name: str, neighbour: str, **settings: str) -> Lab:
        """Add a host with a link to a neighbour, which is restarted on its own disk; `settings` are as in a topology:
        `rtt="10ms", memory="1GB"`. Return the altered lab; this object still has the old plan. Raises InputError,
        EnvironmentLacks.
        """
        return self._altered(edit.add_host(self.plan, name, neighbour, settings, defaults_of(self._lab)))

    def add_link(self, first: str, second: str, **settings: str) -> Lab:
        """Add a link; both its ends are restarted. Otherwise as `add_host`."""
        return self._altered(edit.add_link(self.plan, first, second, settings, defaults_of(self._lab)))

    def remove_host(self, name: str) -> Lab:
        """Remove a host with its links and its disk; its neighbours are restarted. Otherwise as `add_host`."""
        return self._altered(edit.remove_host(self.plan, name))

    def remove_link(self, name: str) -> Lab:
        """Remove the link of that name; both its ends are restarted. Otherwise as `add_host`."""
        return self._altered(edit.remove_link(self.plan, name))

    def _altered(self, after: Plan) -> Lab:
        now, _ = apply.alter(self._lab, after, self._say)
        return replace(self, _lab=now)

    def join(self, overlay: str) -> None:
        """Join an overlay, in place of the one that is joined. Raises InputError, EnvironmentLacks."""
        overlays.join(self._lab, overlay, self._say)

    def settle(self) -> None:
        """Wait until routes and overlay have followed links that were cut, changed or mended: the hosts' routing
        protocol has its routes, and every end of the overlay reaches every other to which a way is left. Raises
        MinigtsError when one does not in time. Once a link is whole again, an overlay that finds its ways itself may
        use a detour for some seconds more.
        """
        overlays.settle(self._lab, self._say)

    def leave(self) -> None:
        """Leave the overlay that is joined."""
        overlays.leave(self._lab, self._say)

    def certificate(self, *, anew: bool = False) -> Certificate:
        """The certificate, which compares the lab with its plan: settings, RTTs, loss and rate of its links. It is
        measured with `anew`, or if there is none since links were last set."""
        return measure.certify(self._lab, self._say) if anew else measure.certificate_after_up(self._lab, self._say)

    def check(self) -> Certificate:
        """Measure the certificate and the topology's `expect:`, as `minigts check` does."""
        return expectations.check(self._lab, self._say)

    def expectations(self, certificate: Certificate | None = None) -> Measurements:
        """The measurements by which the topology's `expect:` is judged. Each is made on first use; values that
        `certificate` has are not measured again."""
        return Measurements(self._lab, self._say, certificate.rows if certificate is not None else ())

    @property
    def now_s(self) -> float:
        """The lab's time in seconds: of its own clock since that began, in real time of this machine's."""
        return self._lab.provider.now_s()

    def sleep(self, seconds: float) -> None:
        """Let so many seconds of the lab's time pass. In virtual time a program that sleeps itself lets none pass."""
        self._lab.provider.sleep_until(self._lab.provider.now_s() + seconds)

    def together(self) -> AbstractContextManager[Together]:
        """A context in which calls on the lab can run side by side: `start(call)` of its value begins one in a thread,
        and returns a task, whose `result()` waits for it. In virtual time the same calls have the same results, which
        threads of your own do not promise."""
        return self._lab.provider.together()

    def note(self, text: str) -> None:
        """Add a note to the lab's events, which `minigts events` shows, at its present time."""
        self._lab.note({"event": "note", "text": text})

    def diagnose(self, host: str, into: Path) -> None:
        """Write the console and the kernel log of a host or switch into the folder `into`."""
        self._lab.provider.diagnose(host, into)

    @contextmanager
    def links_given_back(self) -> Iterator[Self]:
        """A context at whose end links are cut and changed as they were before it."""
        before = self._lab.read_record()
        try:
            yield self
        finally:
            recorded.restore_links(self._lab, before)

    @contextmanager
    def given_back(self) -> Iterator[Self]:
        """A context at whose end links, calibration, certificate, overlay and policy are as they were before it."""
        lab = self._lab
        record, certificate, overlay = lab.read_record(), kept_certificate.last(lab), overlays.joined_overlay(lab)
        policy = policies.policy_in_force(lab)
        try:
            yield self
        finally:
            recorded.set_back(lab, record)
            if certificate is None:
                (lab.rundir / kept_certificate.FILE).unlink(missing_ok=True)
            elif kept_certificate.last(lab) != certificate:
                kept_certificate.keep(lab, certificate)
            if overlay is None:
                overlays.leave(lab, self._say)
            else:
                overlays.join(lab, overlay.name, self._say)
            if policy is not None and policies.policy_in_force(lab) != policy:
                policies.apply(lab, policy)
            elif policy is None and policies.policy_in_force(lab) is not None:
                policies.remove(lab)

    def fork(self, name: str | None = None, *, seed: int = 0) -> Lab:
        """A second lab, which this one becomes at this moment, with all that its hosts have in memory and on disk. Both
        go on from here, each by itself; a `with` block takes the second one down at its end, and it ends with this one
        at the latest.

        With a seed of 0 the two have one course as long as the same is done to them. With another one the second lab
        draws other random numbers from now on. `name` None: this lab's, with a number. Raises InputError,
        EnvironmentLacks, HostFailed.
        """
        other = recorded.fork(self._lab, recorded.next_fork(self.name) if name is None else name, seed)
        return Lab(other, ours=True, _say=self._say)

    def down(self) -> None:
        """Take the lab down: no process, socket or file of it is left."""
        recorded.down(self._lab)

    def _known(self, name: str) -> str:
        names = [host.name for host in self.plan.hosts]
        if name not in names:
            raise InputError(f"no host {name!r}; hosts are {list_names(names)}{did_you_mean(name, names)}")
        return name


@dataclass(frozen=True)
class Result:
    """A command that has ended on a host. `seconds` is wall time on this machine. What it printed is text as the host
    has sent it, any character included: it is for the program to judge."""

    host: str
    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    seconds: float


def _to_user(ended: base.CommandResult) -> Result:
    out, err = user_text(ended.stdout), user_text(ended.stderr)
    return Result(ended.host, ended.argv, ended.code, out, err, ended.seconds)


@dataclass(frozen=True)
class Host:
    """A host of a lab."""

    _lab: recorded.Lab = field(repr=False)
    name: str

    @property
    def address(self) -> str:
        """Its own address, which is reached over all of its links: of IPv4, or of IPv6 in a lab without IPv4."""
        return self._lab.plan.own_address(self.name)

    def run(
        self,
        *argv: Words,
        timeout_s: float = COMMAND_TIMEOUT_S,
        check: bool = True,
        stdin: str = "",
        on_output: Callable[[bytes], None] | None = None,
    ) -> Result:
        """Run a command as root; each word is an argument: `run("ip", "route")`, or as with Python's `subprocess` one
        list of them, `run(["ip", "route"])`. With `check`, an exit code other than 0 raises CommandFailed with the
        output. `on_output` gets each piece of output as it comes; in virtual time up to a link's least delay after the
        host has sent it. Raises CommandTimeout after `timeout_s`, InputError for words that are no text.
        """
        words = provisioning.environment_command(self._lab, self.name, words_of(argv))
        return _to_user(
            self._lab.provider.run(
                self.name, words, timeout_s=timeout_s, check=check, stdin=stdin.encode(), on_output=on_output
            )
        )

    def shell(self, script: str, *, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True) -> Result:
        """Run a script by `sh`."""
        return self.run("sh", "-c", script, timeout_s=timeout_s, check=check)

    def put(self, source: Path, target: str) -> None:
        """Copy a file, or a folder with all that is in it, to `target` on the host."""
        self._lab.provider.put(self.name, source, provisioning.place(self._lab, self.name, PurePosixPath(target)))


@dataclass(frozen=True)
class Container:
    """The measuring container of the overlay that is joined, on one host."""

    _lab: recorded.Lab = field(repr=False)
    host: str

    @property
    def address(self) -> str:
        """The address at which other containers reach it."""
        return end_of(self._lab, self.host)[1].address

    @property
    def mtu(self) -> int:
        """The MTU of its interface, in bytes."""
        return end_of(self._lab, self.host)[1].mtu

    def run(self, *argv: Words, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True, stdin: str = "") -> Result:
        """As `Host.run`, in the container."""
        inside = (*end_of(self._lab, self.host)[1].prefix, *words_of(argv))
        ended = self._lab.provider.run(self.host, inside, timeout_s=timeout_s, check=check, stdin=stdin.encode())
        return _to_user(ended)


@dataclass(frozen=True)
class OwnContainer:
    """A container that the topology declares, on its host."""

    _lab: recorded.Lab = field(repr=False)
    _place: containers.ContainerAddress

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def host(self) -> str:
        return self._place.host

    @property
    def address(self) -> str:
        """The address at which other containers reach it; they know its name, too."""
        return self._place.address

    def run(self, *argv: Words, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True, stdin: str = "") -> Result:
        """As `Host.run`, in the container, with its program's environment."""
        inside = (*self._place.prefix, *words_of(argv))
        ended = self._lab.provider.run(self.host, inside, timeout_s=timeout_s, check=check, stdin=stdin.encode())
        return _to_user(ended)


_KEYWORDS = {each.word.replace(".", "_"): each for each in SETTABLE.values()}
_KEYWORDS["rtt"] = SETTABLE["delay"]
"""The keyword arguments of `Link.change`, and the settings that they set."""


def _with_keywords(change: _F) -> _F:
    """Give `change` a signature with all keywords, for `help` and editors."""
    kind = Parameter.KEYWORD_ONLY
    own = (Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),)
    named = (Parameter(word, kind, default=None, annotation="str | None") for word in _KEYWORDS)
    change.__signature__ = Signature([*own, *named], return_annotation=None)  # type: ignore[attr-defined]
    return change


@dataclass(frozen=True)
class Link:
    """Every link between two hosts or switches. A change stays until the next one."""

    _lab: recorded.Lab = field(repr=False)
    first: str
    second: str

    def cut(self) -> None:
        """Cut the links in silence: frames are lost in both directions. The interfaces keep their carrier, and nobody
        is told."""
        recorded.set_links_up(self._lab, self.first, self.second, up=False)

    def down(self, end: str | None = None) -> None:
        """Take the links down: frames are lost in both directions, and both ends lose their carrier, or only `end`.
        Raises InputError for another host, EnvironmentLacks where the lab's interfaces cannot lose it."""
        recorded.set_links_up(self._lab, self.first, self.second, up=False, how=Outage(end=end))

    def mend(self) -> None:
        """Bring the links up, with a carrier, and set them as the topology declares them."""
        recorded.replace_settings(self._lab, self.first, self.second, Change())
        recorded.set_links_up(self._lab, self.first, self.second, up=True)

    @_with_keywords
    def change(self, **settings: str | None) -> None:
        """Set the links in both directions, in the topology language's words and units:
        `change(delay="50ms", loss="1%")`. Settings that are not named become as declared. `rtt` sets half of it as
        delay. Raises InputError before anything is changed.
        """
        given = {word: written for word, written in settings.items() if written is not None}
        if "delay" in given and "rtt" in given:
            raise InputError("change: set either delay, which is one-way, or rtt, not both")
        change = Change(**dict(_amount(word, written) for word, written in given.items()))
        require_effect(self._lab, self.first, self.second, change)
        recorded.replace_settings(self._lab, self.first, self.second, change)


def _amount(keyword: str, written: str) -> tuple[str, Amount]:
    """The field that a keyword sets, and its value. Raises InputError."""
    if keyword not in _KEYWORDS:
        raise InputError(f"change: {quote(keyword)} cannot be set: write {list_names([*_KEYWORDS])}")
    try:
        if keyword == "rtt":
            return "delay_ms", TIME_MS.parse(written) / 2
        return _KEYWORDS[keyword].read(written)
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
    """Bring a lab up, as `minigts up` does: hosts, links, certificate and overlay. `overlay` None: the overlay that a
    kept lab had, without that the topology's.

    `topology` is a file, a text of several lines, or a plan. A lab of that name that is up with the same plan is left
    as it is; a kept lab comes up on its hosts' disks. Neither is taken down at the end of a `with` block. `say` is
    called with each step. Raises InputError, EnvironmentLacks, HostFailed; then nothing is left of a new lab.
    """
    file = Loaded(topology) if isinstance(topology, Plan) else read(topology, provider=provider, time=time)
    ready = bring_up.ready(bring_up.Request(file.plan, provider, name, overlay, defaults=file.defaults))
    brought = bring_up.bring_up(ready, say)
    for warning in brought.warnings:
        say(warning)
    return Lab(brought.lab, ours=ready.is_new, _say=say)


def open_lab(name: str | None = None, *, say: Progress = _quiet) -> Lab:
    """The lab called `name`; None: the only lab. Raises InputError, which lists the labs."""
    return Lab(recorded.open_lab(name), _say=say)


def all_labs() -> tuple[Lab, ...]:
    """Every lab of this user that is up, in the order of names; a lab that never came up is left out."""
    return tuple(Lab(each) for each in recorded.all_labs() if each.read_state() == "up")
