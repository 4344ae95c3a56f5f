"""Takes samples over one overlay that is up, one batch at a time, and stores the result of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Protocol

from minigts.errors import CommandTimeout, InputError
from minigts.experiment_language.model import AnyMeasurement, Cut, Links
from minigts.experiments import outputs, queue_watch
from minigts.experiments.commands import estimate_s, warm_up
from minigts.experiments.link_changes import SCHEDULE, line, moments_of
from minigts.experiments.matrix import Sample, path_between
from minigts.experiments.sample_steps import (
    CROSSING,
    FLOW,
    SHORT_S,
    WATCH,
    WATCHED_EVERY_S,
    Call,
    Procedure,
    Surroundings,
    begun_late,
    client_end,
    procedure,
    way_of,
)
from minigts.fidelity.host_load import LoadRecording, taints
from minigts.foreign import Foreign, content
from minigts.lab.queues import End, Queue
from minigts.overlays import Endpoint
from minigts.providers.base import CommandResult, Provider
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Laid, Manifest, RawSample, Side
from minigts.tools.base import ParseError
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan.elements import Path as PathOfPlan
from minigts.topology.schedule import Moment

ATTEMPTS = 3
"""How often a sample is tried in one run, because it failed or because the machine was starved meanwhile."""
WARM_UP_TIMEOUT_S = 10.0
MOST_KEPT = 5_000_000
"""The most characters kept of one output; a raw file, with all its outputs, is read up to 100 MB."""


Watched = tuple[Sequence[End], float]
"""The queues that are read, and the seconds between two readings."""


class LabControl(Protocol):
    """What a run does with a lab, apart from running commands on its hosts."""

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        """Set up the named overlay on the lab and return its endpoint on each host."""
        ...

    def verify(self, overlay: str) -> str:
        """Prove its data path, and return what was seen, in a text that changes only with the data path."""
        ...

    def overlay_record(self, overlay: str) -> Laid:
        """What the overlay that is joined was laid with."""
        ...

    def leave(self, overlay: str) -> None: ...

    def second(self, host: str) -> Endpoint:
        """A second container of the overlay on that host. Raises InputError where there is none."""
        ...

    def set_links(self, links: Links) -> None:
        """Set all links; `Links()` means as the topology declares them."""
        ...

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None:
        """Cut the link of that name, or restore it."""
        ...

    def links_kept(self) -> AbstractContextManager[None]:
        """Restore every link's settings when the context closes."""
        ...

    def play(self, moments: Sequence[Moment]) -> Iterable[tuple[float, Mapping[str, float]]]:
        """Make the changes of a schedule that begins now. Yields when each was made, in seconds, and the link's
        settings since then, as `ams-bra rate_mbit`; the first are the previous settings.
        """
        ...

    def queues(
        self, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
    ) -> Iterable[tuple[float, Mapping[End, Queue]]]:
        """Read these queues now and then again and again until `ended`. Yields seconds, and what was read."""
        ...

    def recording(self) -> AbstractContextManager[LoadRecording]:
        """Record the machine's load while the context is open."""
        ...

    def processor_seconds(self) -> Mapping[str, float]:
        """The processor time that each host has cost the outer machine, in seconds; empty where it is unknown."""
        ...


class Sampler:
    """Takes samples of one results directory over one overlay."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        provider: Provider,
        stage: LabControl,
        endpoints: Mapping[str, Endpoint],
        log: logging.Logger,
    ) -> None:
        self._directory, self._manifest, self._provider, self._stage = directory, manifest, provider, stage
        self._log, self._virtual = log, manifest.plan.time == "virtual"
        self._tried = store.attempts(directory)
        self._warm: set[tuple[str, str, str]] = set()
        self._starved = False
        self._links = Links()
        self._seconds: dict[str, Endpoint] = {}
        pace_s = None if self._virtual else provider.pace_s
        self._around = Surroundings(manifest.plan, endpoints, self._second, pace_s)

    def take(self, batch: Sequence[Sample]) -> bool:
        """Take the samples of a batch (`matrix.batches`) at the same time, in several attempts if necessary. True when
        each has a result. If one fails, all fail, as the others were not measured together with it.
        """
        first = batch[0]
        measurement = self._manifest.experiment.measurement(first.measurement).under(first.condition)
        if self._virtual:
            measurement = measurement.model_copy(update={"watch": ()})
        try:
            # Cross traffic is started once for all samples of the batch.
            others = measurement.model_copy(update={"cross": ()})
            asked = [measurement, *(others for _ in batch[1:])]
            todo = [
                begun_late(procedure(each, sample, self._around), sample, self._around.plan)
                for each, sample in zip(asked, batch, strict=True)
            ]
        except InputError as error:
            return self._impossible(batch, str(error))
        return any(
            self._attempt(batch, measurement, todo, last=number == ATTEMPTS or self._starved)
            for number in range(1, ATTEMPTS + 1)
        )

    def put_links_back(self) -> None:
        """Set the links as declared again."""
        self._set_links(Links())

    def _impossible(self, batch: Sequence[Sample], reason: str) -> bool:
        for sample in batch:
            result = CommandResult(sample.source, (), 1, Foreign(), Foreign(reason), 0.0)
            raw = _raw(sample, result, (), self._moment(), self._tried.get(sample.id, 0) + 1)
            store.save(self._directory, raw.model_copy(update={"error": reason}))
            self._log.warning("%s: %s", sample.id, reason)
        return False

    def _attempt(
        self, batch: Sequence[Sample], measurement: AnyMeasurement, todo: Sequence[Procedure], *, last: bool
    ) -> bool:
        """Take the batch once and store the result of each sample. True when all have a result that stays.

        A tainted result stays only at the `last` attempt. After one has stayed, the next batch has one attempt only, as
        the machine is probably still starved.
        """
        self._set_links(measurement.links)
        if measurement.rest_s:
            self._wait(batch[0].source, measurement.rest_s)
        for sample in batch:
            self._warm_up(measurement, sample)
        started = self._moment()
        with self._stage.recording() as machine:
            lengths_s = (estimate_s(measurement, self._path(sample)) for sample in batch)
            changes = moments_of(measurement, self._manifest.plan, min(lengths_s))
            with self._stage.links_kept() if changes else nullcontext():
                # In virtual time the clock cuts a link, as a schedule says; no program on a host waits for the moment.
                cut = None if self._virtual else measurement.cut
                performed = self._perform(todo, cut, changes, self._queues(measurement, batch))
        taken = [
            checked_sample(measurement, _raw(sample, result, around, started, self._tried.get(sample.id, 0) + 1))
            for sample, (result, around) in zip(batch, _all_crossed(performed), strict=True)
        ]
        tainted = taints(machine.load)
        taken = [raw.model_copy(update={"machine": machine.load, "tainted": tainted}) for raw in _all_or_none(taken)]
        again = bool(any(raw.error for raw in taken) or (tainted and not last))
        for raw in taken:
            self._keep(raw, again=again)
        if not again:
            self._starved = bool(tainted)
        return not again

    def _keep(self, raw: RawSample, *, again: bool) -> None:
        store.save(self._directory, raw, repeated=again)
        if again or raw.tainted:
            reason = raw.error or f"tainted: {', '.join(raw.tainted)}"
            self._log.warning("%s, attempt %d: %s", raw.sample, raw.attempt, reason)
        else:
            self._log.info("%s in %.2f s", raw.sample, raw.seconds)
        if again:
            self._tried[raw.sample] = raw.attempt

    def _moment(self) -> str:
        """The present time in UTC, or in virtual time the seconds of the lab's clock."""
        return f"{self._provider.now_s():.6f}" if self._virtual else manifests.now()

    def _path(self, sample: Sample) -> PathOfPlan:
        return path_between(self._manifest.plan, sample.source, sample.target)

    def _perform(
        self, todo: Sequence[Procedure], cut: Cut | None, changes: Sequence[Moment], queues: Watched | None
    ) -> list[tuple[CommandResult, tuple[Side, ...]]]:
        """Run all commands, the clients at the same time. Returns each client's result with the outputs of the commands
        around it. If a setting fails, no client is started.
        """
        sides: list[list[Side]] = [[] for _ in todo]
        for each, own in zip(todo, sides, strict=True):
            if (failed := self._prepare(each, own)) is not None:
                results = [failed if other is each else replace(failed, host=other.client.host) for other in todo]
                return [(result, tuple(said)) for result, said in zip(results, sides, strict=True)]
        watched = [call.host for each in todo for call in each.beside if call.name == WATCH]
        ended, measured, sent = Event(), Event(), Event()
        with ThreadPoolExecutor(max_workers=1) as outer, self._provider.together() as pool:
            outside = outer.submit(self._watch_outside, watched, measured, ended)
            beside = [[(call, pool.start(partial(self._run, call))) for call in each.beside] for each in todo]
            try:
                leading = [(own, call) for each, own in zip(todo, sides, strict=True) for call in each.lead]
                led = pool.all([partial(self._run, call) for _, call in leading])
                for (own, call), result in zip(leading, led, strict=True):
                    own.extend([_side(call, result)] if call.needed else [])
                measured.set()
                cutting = cut and pool.start(partial(self._cut, todo[0].client.host, cut))
                playing = pool.start(partial(self._play, todo[0].client.host, changes)) if changes else None
                reading = pool.start(partial(self._read_queues, todo[0].client.host, queues, sent)) if queues else None
                began_s = self._provider.now_s() if queues else 0.0
                others = [pool.start(partial(self._run, each.client)) for each in todo[1:]]
                clients = [self._run(todo[0].client), *(task.result() for task in others)]
                # Flows beside the first one may take longer than it, and need their server until then.
                for call, task in (each for tasks in beside for each in tasks):
                    if call.name.startswith(FLOW):
                        task.result()
                took_s = self._provider.now_s() - began_s if queues else 0.0
                sent.set()
                measured.clear()
                pool.all([partial(self._run, call) for each in todo for call in each.tail])
            finally:
                sent.set()
                ended.set()
                for call in (call for each in todo for call in each.after):
                    self._run(call)
            cuts = [task.result() for task in (cutting, playing) if task]
            if reading is not None:
                cuts.append(_until(reading.result(), took_s))
            for own, tasks in zip(sides, beside, strict=True):
                own += [*(_side(call, task.result()) for call, task in tasks), *cuts]
        for each, own in zip(todo, sides, strict=True):
            own += [side for side in outside.result() if side.host in {call.host for call in each.beside}]
        return [(result, tuple(own)) for result, own in zip(clients, sides, strict=True)]

    def _queues(self, measurement: AnyMeasurement, batch: Sequence[Sample]) -> Watched | None:
        paths = [(sample.source, sample.target) for sample in batch]
        ends = queue_watch.ends_of(measurement, self._manifest.plan, paths)
        return (ends, measurement.queues.every_s) if ends and measurement.queues else None

    def _prepare(self, todo: Procedure, sides: list[Side]) -> CommandResult | None:
        """Run the commands before the client. Returns the client's result if a needed setting failed, or None."""
        for call in todo.before:
            result = self._run(call)
            sides.append(_side(call, result))
            if result.code and call.needed:
                return CommandResult(
                    result.host, result.argv, result.code, Foreign(), f"{call.name}: " + result.stderr, 0.0
                )
        return None

    def _play(self, host: str, changes: Sequence[Moment]) -> Side:
        """Make the changes, each at its moment, and return which were made when."""
        said = "".join(line(at_s, amounts) for at_s, amounts in self._stage.play(changes))
        return Side(name=SCHEDULE, host=host, stdout=said)

    def _read_queues(self, host: str, queues: Watched, sent: Event) -> Side:
        """Read the queues until everything was sent, and return what was read when."""
        ends, every_s = queues
        said = "".join(queue_watch.line(*each) for each in self._stage.queues(ends, every_s, sent.is_set))
        return Side(name=queue_watch.QUEUES, host=host, stdout=said)

    def _cut(self, host: str, cut: Cut) -> Side:
        """Cut and restore the link at its times by the clock of `host`, and return when that was."""
        self._wait(host, cut.at_s)
        self._stage.set_link(cut.link, up=False, how=Outage(silent=cut.carrier == "kept"))
        down = self._moment()
        try:
            self._wait(host, cut.for_s)
        finally:
            self._stage.set_link(cut.link, up=True)
        return Side(name="cut", host=host, stdout=f"{cut.link} was down from {down} to {self._moment()}\n")

    def _wait(self, host: str, seconds: float) -> None:
        self._run(Call("wait", host, ("sleep", f"{seconds:g}"), seconds + SHORT_S))

    def _watch_outside(self, hosts: Sequence[str], measured: Event, ended: Event) -> list[Side]:
        """The hosts' processor time as the outer machine counts it, in the format of the watcher inside."""
        seen: dict[str, list[str]] = {host: [] for host in hosts}
        while hosts:
            used, now = self._stage.processor_seconds(), time.monotonic()
            for host in seen.keys() & used.keys():
                mark = "measured\n" if measured.is_set() else ""
                seen[host].append(f"@ {now:.4f}\nprocess {used[host]:.2f}\n{mark}")
            if ended.wait(WATCHED_EVERY_S):
                break
        return [Side(name="cpu outside", host=host, stdout="".join(lines)) for host, lines in seen.items() if lines]

    def _second(self, host: str) -> Endpoint:
        if host not in self._seconds:
            self._seconds[host] = self._stage.second(host)
        return self._seconds[host]

    def _set_links(self, links: Links) -> None:
        if links != self._links:
            self._stage.set_links(links)
            self._links = links

    def _warm_up(self, measurement: AnyMeasurement, sample: Sample) -> None:
        """Send one echo request over each path before its first sample. If it is lost, that is only logged."""
        source, way = client_end(measurement, sample, self._around), way_of(measurement, sample, self._around)
        known = (sample.source, sample.target, way.address)
        if known in self._warm:
            return
        self._warm.add(known)
        call = Call("warm-up", sample.source, warm_up(source, way), WARM_UP_TIMEOUT_S)
        if self._run(call).code != 0:
            self._log.warning("%s: no echo from %s before the sample", sample.id, way.address)

    def _run(self, call: Call) -> CommandResult:
        try:
            return self._provider.run(call.host, call.argv, timeout_s=call.limit_s, check=False)
        except CommandTimeout as error:
            return CommandResult(call.host, call.argv, error.code, error.out, error.err, error.timeout_s)


def _until(side: Side, length_s: float) -> Side:
    """The readings up to that time: after the last one something else may have been sent."""
    return side.model_copy(update={"stdout": queue_watch.readings_before(side.stdout, length_s)})


def _side(call: Call, result: CommandResult) -> Side:
    return Side(
        name=call.name,
        host=call.host,
        argv=call.argv,
        code=result.code,
        stdout=_kept(result.stdout),
        stderr=_kept(result.stderr),
    )


def _kept(said: Foreign) -> str:
    """The output as stored in a raw file: all of it, or the beginning of one that is too long."""
    output = content(said)
    if len(output) <= MOST_KEPT:
        return output
    return f"{output[:MOST_KEPT]}\n[{len(output) - MOST_KEPT:,} characters more were printed, which are not kept]\n"


def _raw(sample: Sample, result: CommandResult, around: tuple[Side, ...], started: str, number: int) -> RawSample:
    return RawSample(
        sample=sample.id,
        host=sample.source,
        argv=result.argv,
        code=result.code,
        stdout=_kept(result.stdout),
        stderr=_kept(result.stderr),
        started=started,
        seconds=round(result.seconds, 6),
        attempt=number,
        around=around,
    )


def checked_sample(measurement: AnyMeasurement, raw: RawSample) -> RawSample:
    """The same, with `error` set where it has no result."""
    return raw.model_copy(update={"error": _error(measurement, raw)})


def _all_crossed(
    performed: Sequence[tuple[CommandResult, tuple[Side, ...]]],
) -> Sequence[tuple[CommandResult, tuple[Side, ...]]]:
    """The same, with the first sample's cross traffic added to all."""
    crossing = tuple(side for side in performed[0][1] if side.name == CROSSING)
    return [performed[0], *((result, (*around, *crossing)) for result, around in performed[1:])]


def _all_or_none(taken: Sequence[RawSample]) -> Sequence[RawSample]:
    """The same, or all as failed if one failed."""
    failed = next((raw for raw in taken if raw.error), None)
    if failed is None:
        return taken
    reason = f"was taken together with {failed.sample}, which failed"
    return [raw if raw.error else raw.model_copy(update={"error": reason}) for raw in taken]


def _error(measurement: AnyMeasurement, raw: RawSample) -> str | None:
    """One line that says why the output is no result; None when it is one."""
    if reason := outputs.failure(measurement, raw):
        return reason
    try:
        outputs.read(measurement, raw)
    except ParseError as error:
        return f"{error} (code {raw.code})" if raw.code else str(error)
    return f"the command ended with code {raw.code}" if raw.code else None
