"""An experiment from its file to what a run of it needs: plan, measurements, and what is left out. Prints nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

from minigts import overlays
from minigts.artifacts import kernels
from minigts.errors import InputError, Problem
from minigts.experiment_language.model import Experiment, replicates_of
from minigts.experiments import real_seconds, replication, run, time_limits
from minigts.experiments.load import LANGUAGE, load, topology_file
from minigts.experiments.matrix import Sample, matrix, wrong_places
from minigts.language.problems import Location, list_names
from minigts.language.source import read_text
from minigts.language.tree import read_tree
from minigts.providers import DEFAULT as DEFAULT_PROVIDER
from minigts.providers import registry
from minigts.results import chance
from minigts.results.schema import BESIDE, EXPERIMENT, TOPOLOGY, LeftOut
from minigts.topology import overlay_names
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load_file, topology_bytes
from minigts.topology.time import Time
from minigts.topology.user_files import UserFiles

_T = TypeVar("_T")
LOOKS = 3
"""How often a quick run of one course in virtual time measures each cell, as samples of one lab may differ. A file
whose `quick:` names its replicates says itself how often."""


MOST_NAMED = 3
"""How many links a sentence names."""


@dataclass(frozen=True)
class Prepared:
    """An experiment whose input has all been checked; nothing has been started."""

    experiment: Experiment
    topology_sha256: str
    plan: Plan
    samples: tuple[Sample, ...]
    left_out: tuple[LeftOut, ...] = ()
    """The parts that say nothing in `time` and so are not in `samples`."""
    asked: Time | None = None
    """A time that was asked for and is impossible for the topology; the plan has the other, and `samples` is empty."""
    sources: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of the files that it was read from, by their names in its results folder."""
    quick: bool = False
    """Whether the experiment is as its file's `quick:` changes it."""
    random_links: tuple[str, ...] = ()
    """The links on which chance decides what becomes of frames, in virtual time; they ask for replicates."""

    @property
    def time(self) -> Time:
        return self.asked or self.plan.time

    @property
    def name(self) -> str:
        """The experiment's name; in a sweep with this lab's values, `delays, chain.hosts=3`."""
        return ", ".join(filter(None, (self.experiment.name, self.experiment.variant)))

    @property
    def seconds(self) -> float:
        """How long measuring takes, in seconds, without set-up."""
        return run.total_s(self.experiment, self.plan, self.samples)

    @property
    def chance(self) -> str | None:
        """A sentence on the links on which chance decides, and on what is measured for it; None where it decides
        nothing."""
        if not self.random_links or not self.samples:
            return None
        links = list_names(self.random_links[:MOST_NAMED])
        more = f" and {len(self.random_links) - MOST_NAMED} more" if len(self.random_links) > MOST_NAMED else ""
        by_chance = f"{self.name}: chance decides what becomes of frames on {links}{more}"
        number = self.experiment.replicates
        if number > 1:
            return f"{by_chance}: {number} replicates, each with another draw; --replicates 1 takes a single course"
        fewest = replication.fewest_replicates(self.experiment)
        return f"{by_chance}, and one course of events is measured: --replicates {fewest} shows how far courses differ"

    @property
    def real_seconds(self) -> float:
        """About how long that takes this machine, in seconds, with labs and overlays."""
        return real_seconds.real_s(self.experiment, self.plan, self.samples)


def files(places: Sequence[Path]) -> tuple[Path, ...]:
    """The experiments' files; a directory stands for all files in it, without those in folders of its own. Raises
    InputError for an empty one."""
    found: list[Path] = []
    for place in places:
        inside = sorted(place.glob("*.yaml")) if place.is_dir() else [place]
        if not inside:
            raise InputError(f"{place}: holds no experiment (*.yaml)")
        found += inside
    return tuple(found)


def skipped_folders(places: Sequence[Path]) -> list[str]:
    """A line for each of the directories in which `files` leaves folders with files out."""
    lines = []
    for place in (place for place in places if place.is_dir()):
        inside = Counter(file.parent for file in sorted(place.glob("*/*.yaml")))
        if inside:
            folders = ", ".join(f"{folder.name} ({count})" for folder, count in inside.items())
            first = next(iter(inside))
            lines.append(
                f"{place}: the files of its folders are not run: {folders}; to run those of one: minigts run {first}"
            )
    return lines


def prepare(
    file: Path,
    *,
    paper: bool,
    quick: bool,
    only: Sequence[str],
    time: Time | None = None,
    provider: str = DEFAULT_PROVIDER,
    leaving_out: bool = False,
    replicates: int | None = None,
) -> Prepared:
    """Read an experiment and its topology. The lab's time is the first that is set of `time`, the experiment's and the
    topology's; by default it is the best that the provider offers.

    An overlay whose programs the user has not provided is left out, unless `only` names it. Raises InputError, also for
    parts that say nothing in that time unless `leaving_out`, and for a sweep of several labs.
    """
    found = prepare_sweep(
        file,
        paper=paper,
        quick=quick,
        only=only,
        time=time,
        provider=provider,
        leaving_out=leaving_out,
        replicates=replicates,
    )
    if len(found) > 1:
        raise InputError(
            f"{file}: `vary:` asks for {len(found)} labs, but only one is possible here: minigts run {file}"
        )
    return found[0]


def prepare_sweep(
    file: Path,
    *,
    paper: bool,
    quick: bool,
    only: Sequence[str],
    time: Time | None = None,
    provider: str = DEFAULT_PROVIDER,
    leaving_out: bool = False,
    replicates: int | None = None,
    kernel: str | None = None,
) -> tuple[Prepared, ...]:
    """As `prepare`, for each combination of the values that the experiment varies in its topology. `kernel` takes
    the place of the topology's `kernel:`."""
    if replicates is not None:
        _require_telling(replicates)
    try:
        experiment = as_written = load(file)
    except InputError as error:
        raise _with_those_around(file, error, provider) from error
    wrong = tuple(_unknown_overlays(file, experiment.overlays))
    try:
        topology = topology_file(experiment.topology, file)
    except InputError as error:
        raise InputError([*wrong, *error.problems]) from error
    experiment = _at_scale(experiment, paper=paper, quick=quick)
    if only:
        experiment = experiment.only(only)
    read = _Read(
        file,
        topology,
        as_written,
        provider,
        only,
        wrong,
        quick=quick,
        leaving_out=leaving_out,
        replicates=replicates,
        kernel=kernels.values(kernel),
    )
    if kernel is not None and "kernel" in experiment.vary:
        raise InputError(f"{file}: --kernel: the experiment varies the kernel itself: leave --kernel out")
    planned = [_planned(read, each, time or experiment.time) for each in experiment.variations]
    unsaid = replicates is None and "replicates" not in as_written.model_fields_set
    unsaid = unsaid and not (quick and as_written.quick.replicates)
    if unsaid and any(each.random_links for each in planned):
        read = replace(read, replicates=replication.fewest_replicates(experiment))
    return tuple(_prepared(read, each) for each in planned)


def _with_those_around(file: Path, error: InputError, provider: str) -> InputError:
    """The problems of an experiment's file, and those of its overlays' names and of its topology."""
    try:
        written = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE).data
    except InputError:
        return error
    if not isinstance(written, dict) or not error.problems:
        return error
    named, topology = written.get("overlays"), written.get("topology")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    further = list(_unknown_overlays(file, names)) if names == named else []
    if isinstance(topology, str):
        try:
            place = topology_file(topology, file)
            _plan_of(place, None, provider, {}, UserFiles(place.parent))
        except InputError as of_topology:
            further += of_topology.problems
    known = {str(problem) for problem in error.problems}
    return InputError([*error.problems, *(each for each in further if str(each) not in known)])


@dataclass(frozen=True)
class _Read:
    """What the labs of an experiment have in common."""

    file: Path
    topology: Path
    as_written: Experiment
    provider: str
    only: Sequence[str]
    wrong: tuple[Problem, ...]
    """The problems found already, which are reported together with those of a lab."""
    quick: bool
    leaving_out: bool
    replicates: int | None
    """The number asked for in place of the experiment's own; None where none was."""
    kernel: Mapping[str, str]
    """What --kernel puts into the topology."""

    def values_of(self, experiment: Experiment) -> Mapping[str, str]:
        """What is put into the topology for this lab."""
        return {**self.kernel, **experiment.values}


@dataclass(frozen=True)
class _Planned:
    """One lab of the experiment, before it is decided how often it is measured."""

    experiment: Experiment
    plan: Plan
    impossible: _Impossible | None
    beside: UserFiles

    @property
    def random_links(self) -> tuple[str, ...]:
        return chance.random_links(self.plan, self.experiment.measurements) if self.plan.time == "virtual" else ()


@contextmanager
def _in_sweep(read: _Read, experiment: Experiment) -> Iterator[None]:
    """Problems of a sweep's lab name that lab."""
    try:
        yield
    except InputError as error:
        if not experiment.variant:
            raise
        tree = read_tree(read_text(read.file, LANGUAGE), str(read.file), LANGUAGE)
        line = tree.line(("vary",))
        known = [str(problem) for problem in read.wrong]
        own = [said for said in _said(error) if said not in known]
        problems = [Problem(str(read.file), line, f"vary: {experiment.variant}: {said}") for said in own]
        raise InputError([*read.wrong, *problems]) from error


def _said(error: InputError) -> Sequence[str]:
    return [str(each) for each in error.problems] or [str(error)]


def _planned(read: _Read, experiment: Experiment, time: Time | None) -> _Planned:
    """Raises InputError."""
    beside = UserFiles(read.topology.parent)
    with _in_sweep(read, experiment):
        try:
            plan, impossible = _plan_of(read.topology, time, read.provider, read.values_of(experiment), beside)
        except InputError as error:
            if read.wrong and error.problems:
                raise InputError([*read.wrong, *error.problems]) from error
            raise
        if wrong := [*read.wrong, *_wrong_in_lab(read, experiment, plan)]:
            raise InputError(wrong)
    return _Planned(experiment, plan, impossible, beside)


def _prepared(read: _Read, lab: _Planned) -> Prepared:
    """Raises InputError."""
    with _in_sweep(read, lab.experiment):
        return _prepared_lab(read, lab)


def _prepared_lab(read: _Read, lab: _Planned) -> Prepared:
    experiment, plan, impossible = lab.experiment, lab.plan, lab.impossible
    as_asked = plan if impossible is None else plan.model_copy(update={"time": impossible.time})
    experiment = experiment.copy_with_replicates(_replicates(read, experiment, as_asked))
    if read.quick and as_asked.time == "virtual" and experiment.replicates == 1 and experiment.quick.replicates is None:
        experiment = experiment.model_copy(update={"repetitions": max(experiment.repetitions, LOOKS)})
    found = time_limits.unanswerable(experiment, as_asked)
    refused = [each for each in found if each.part.kind != "watch"]
    if refused and not read.leaving_out:
        raise InputError(_refusal(read, experiment, as_asked, refused))
    left_out = (*(each.part for each in found), *_absent(experiment, read.only))
    sources = {EXPERIMENT: read.file.read_bytes(), TOPOLOGY: topology_bytes(read.topology, read.values_of(experiment))}
    sources |= {f"{BESIDE}/{quote(name, safe='')}": text.encode() for name, text in lab.beside.texts.items()}
    digest = hashlib.sha256(sources[TOPOLOGY]).hexdigest()
    samples = time_limits.remaining_samples(matrix(experiment, plan), left_out)
    if impossible is not None and samples:
        if not read.leaving_out or impossible.time == "virtual":
            raise impossible.why
        left_out = tuple(_measurements_of(experiment, impossible))
        samples = ()
    time_asked = impossible.time if impossible else None
    return Prepared(experiment, digest, plan, samples, left_out, time_asked, sources, read.quick, lab.random_links)


def _unknown_overlays(file: Path, names: Sequence[str]) -> Iterator[Problem]:
    known = overlays.known_names()
    tree = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE)
    for index, name in enumerate(names):
        if name not in known:
            why = overlay_names.why_unknown(name, known) or f"no overlay {name!r}; there are {', '.join(known)}"
            yield tree.problem(str(file), (("overlays", index), f"overlays: {why}"))


def _wrong_in_lab(read: _Read, experiment: Experiment, plan: Plan) -> Iterator[Problem]:
    """The problems with overlays that do not fit the topology, and with unknown hosts and links in measurements."""
    tree = read_tree(read_text(read.file, LANGUAGE), str(read.file), LANGUAGE)
    written = [measurement.name for measurement in read.as_written.measurements]
    for name in experiment.overlays:
        try:
            overlays.require_fit(plan, name)
        except InputError as error:
            index = read.as_written.overlays.index(name)
            yield tree.problem(str(read.file), (("overlays", index), f"overlays: {error}"))
    for measurement in experiment.measurements:
        for place, message in wrong_places(measurement, plan):
            where = ("measurements", written.index(measurement.name), *place)
            yield tree.problem(str(read.file), (where, message))


def _require_telling(replicates: int) -> None:
    """Raises InputError for a number of replicates that decides nothing."""
    try:
        replicates_of(replicates)
    except ValueError as error:
        raise InputError(f"replicates: {error}") from error


def _replicates(read: _Read, experiment: Experiment, plan: Plan) -> int:
    """The number of replicates. Raises InputError if several were asked for in real time."""
    if plan.time == "virtual":
        return read.replicates or experiment.replicates
    if (read.replicates or 1) > 1 and not read.leaving_out:
        raise InputError(
            f"{read.file}: --replicates: the experiment is in real time, where each repetition is an independent "
            "sample: write more `repetitions:`, or --time virtual"
        )
    return 1


@dataclass(frozen=True)
class _Impossible:
    """A time that is impossible for a topology, and why."""

    time: Time
    why: InputError


def _plan_of(
    topology: Path, time: Time | None, provider: str, values: Mapping[str, str], beside: UserFiles
) -> tuple[Plan, _Impossible | None]:
    """The topology's plan in that time. Where that is impossible, the plan in the other time, and why: shares of a
    processor need real time, a modelled processor needs virtual time. It is an error only if something is measured.
    """
    best = registry.best_time(provider)
    try:
        return _loaded(topology, time, best, values, beside), None
    except InputError as error:
        if time is None:
            raise
        try:
            plan = _loaded(topology, _other(time), best, values, beside)
        except InputError:
            raise error from None
        return plan, _Impossible(time, error)


def _loaded(topology: Path, time: Time | None, best: Time, values: Mapping[str, str], beside: UserFiles) -> Plan:
    return load_file(
        topology,
        known_overlays=overlays.known_names(),
        time=time,
        best=best,
        values=values,
        beside=beside,
        wrong_kernel=kernels.wrong,
    ).plan


def _other(time: Time) -> Time:
    return "real" if time == "virtual" else "virtual"


def _measurements_of(experiment: Experiment, impossible: _Impossible) -> Iterator[LeftOut]:
    """All measurements, as left out. The reason goes into the manifest, so it has no path of this machine."""
    why = "; ".join(str(replace(problem, file=Path(problem.file).name)) for problem in impossible.why.problems)
    yield from (LeftOut(kind="measurement", name=each.name, why=why) for each in experiment.measurements)


def _absent(experiment: Experiment, only: Sequence[str]) -> tuple[LeftOut, ...]:
    lacking = {name: overlays.find(name).lacks for name in experiment.overlays if name not in only}
    absent = tuple(LeftOut(kind="overlay", name=name, why=why) for name, why in lacking.items() if why)
    return absent if len(absent) < len(experiment.overlays) else ()


def _at_scale(experiment: Experiment, *, paper: bool, quick: bool) -> Experiment:
    if paper:
        experiment = experiment.paper_version()
    return experiment.quick_version() if quick else experiment


def _refusal(
    read: _Read, experiment: Experiment, plan: Plan, refused: Sequence[time_limits.Unanswerable]
) -> list[Problem]:
    """A line with the remedies, and one for each measurement and claim that says nothing."""
    file, as_written = read.file, read.as_written
    gone = [each.part.name for each in refused if each.part.kind == "measurement"]
    kept = [each.name for each in experiment.measurements if each.name not in gone]
    remedies = (
        ["write --time real"] if as_written.time == "real" else ["write --time real, or `time: real` in the file"]
    )
    if gone and kept and not _refused(experiment.only(kept), plan):
        remedies.append(f"{' '.join(f'--only {name}' for name in kept)} for the rest")
    if modelled := [each.part.name for each in refused if each.modelled]:
        remedies.append(f"for {', '.join(modelled)} give the hosts of {read.topology} a modelled `processor:`")
    what = f"{len(refused)} of its measurements and claims say" if kept else "no measurement of it says"
    ending = "nothing" if kept else "anything"
    lead = f"{what} {ending} in virtual time, where the processor is free; {', or '.join(remedies)}"
    tree = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE)
    return [
        Problem(str(file), 0, lead),
        *(
            tree.problem(str(file), (_place(as_written, each), f"{each.part.name}: {each.part.why}"))
            for each in refused
        ),
    ]


def _refused(experiment: Experiment, plan: Plan) -> bool:
    return any(each.part.kind != "watch" for each in time_limits.unanswerable(experiment, plan))


def _place(as_written: Experiment, each: time_limits.Unanswerable) -> Location:
    """The part's place in the file, also where `--only` has removed other parts."""
    if each.part.kind == "claim":
        return "claims", [claim.words for claim in as_written.claims].index(each.part.name)
    return "measurements", [measurement.name for measurement in as_written.measurements].index(each.part.name)


def prepare_all(
    places: Sequence[Path],
    *,
    paper: bool,
    quick: bool,
    only: Sequence[str],
    time: Time | None = None,
    provider: str = DEFAULT_PROVIDER,
    replicates: int | None = None,
    kernel: str | None = None,
) -> tuple[Prepared, ...]:
    """Read several experiments. `only` selects within each, and one without any of its names is left out. Parts that
    say nothing in the lab's time are left out, too; an experiment alone is refused for them.

    Raises InputError, also when two have the same name, and when no part of any says anything.
    """
    if len(places) == 1:
        return prepare_sweep(
            places[0],
            paper=paper,
            quick=quick,
            only=only,
            time=time,
            provider=provider,
            replicates=replicates,
            kernel=kernel,
        )
    found: list[Prepared] = []
    names = []
    for file in places:
        own = [name for name in only if name in _at_scale(load(file), paper=paper, quick=quick).parts] if only else []
        if own or not only:
            found += prepare_sweep(
                file,
                paper=paper,
                quick=quick,
                only=own,
                time=time,
                provider=provider,
                leaving_out=True,
                replicates=replicates,
                kernel=kernel,
            )
            names.append(found[-1].experiment.name)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"run: two experiments are called {twice[0]}")
    if not found:
        raise InputError(f"run: no experiment has {', '.join(only)}")
    if not any(each.samples for each in found) and any(each.left_out for each in found):
        raise InputError("\n".join(left_out_in_words(found)))
    return tuple(found)


def left_out_in_words(prepared: Sequence[Prepared]) -> tuple[str, ...]:
    """A line for each experiment with parts that say nothing in its lab's time, and for each overlay that is absent."""
    of_the_time = [each for each in prepared if any(part.kind != "overlay" for part in each.left_out)]
    absent = {part.name: part.why for each in prepared for part in each.left_out if part.kind == "overlay"}
    return (
        *dict.fromkeys(f"{each.experiment.name}: {_left_out(each)}" for each in of_the_time),
        *(f"without {name}: {why}" for name, why in absent.items()),
    )


def _left_out(prepared: Prepared) -> str:
    names = {kind: [part.name for part in prepared.left_out if part.kind == kind] for kind in ("measurement", "watch")}
    if len(names["measurement"]) == len(prepared.experiment.measurements):
        other = _other(prepared.time)
        return f"left out, as no part of it says anything in {prepared.time} time; --time {other} measures it"
    claims = sum(part.kind == "claim" for part in prepared.left_out)
    parts = [*names["measurement"], *(f"the counters of {name}" for name in names["watch"])]
    parts += [f"{claims} claim{'s' if claims > 1 else ''}"] if claims else []
    return f"without {', '.join(parts)}, which say nothing in virtual time; --time real has them"


def directories_by_plan(
    directories: Sequence[Path], prepared: Sequence[Prepared]
) -> tuple[tuple[Plan, tuple[Path, ...]], ...]:
    """The directories that can share a lab, by plan, in the order in which plans first occur."""
    sharing = _Sharing[Path]()
    for directory, each in zip(directories, prepared, strict=True):
        if each.samples:
            sharing.of(each).append(directory)
    for directory, each in zip(directories, prepared, strict=True):
        if not each.samples and sharing.has(each):
            sharing.of(each).append(directory)
    return tuple((plan, tuple(own)) for plan, own in sharing)


def overlays_by_plan(prepared: Sequence[Prepared]) -> tuple[tuple[Plan, tuple[str, ...]], ...]:
    """The overlays that each plan's lab will have, one after the other."""
    sharing = _Sharing[str]()
    for each in prepared:
        sharing.of(each).extend(sample.overlay for sample in each.samples)
    return tuple((plan, tuple(dict.fromkeys(overlays))) for plan, overlays in sharing if overlays)


class _Sharing(Generic[_T]):
    """A list of items for each plan, in the order in which plans first occur. Plans are compared only where their
    files are equal."""

    def __init__(self) -> None:
        self._found: list[tuple[Plan, list[_T]]] = []
        self._alike: dict[tuple[str, Time], list[tuple[Plan, list[_T]]]] = {}

    def __iter__(self) -> Iterator[tuple[Plan, list[_T]]]:
        return iter(self._found)

    def has(self, prepared: Prepared) -> bool:
        return any(plan == prepared.plan for plan, _ in self._alike.get(self._key(prepared), ()))

    def of(self, prepared: Prepared) -> list[_T]:
        alike = self._alike.setdefault(self._key(prepared), [])
        known = next((own for plan, own in alike if plan == prepared.plan), None)
        if known is None:
            known = []
            alike.append((prepared.plan, known))
            self._found.append(alike[-1])
        return known

    @staticmethod
    def _key(prepared: Prepared) -> tuple[str, Time]:
        return prepared.topology_sha256, prepared.plan.time
