"""Reads the raw outputs of one attempt, of its tool and other commands, into a value and further columns. Pure."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence

from minigts.experiment_language.model import AnyMeasurement
from minigts.experiments import counters, flow_results, link_changes, queue_watch
from minigts.experiments.link_changes import SCHEDULE
from minigts.experiments.queue_watch import QUEUES
from minigts.experiments.sample_steps import CROSSING, LISTENING, SERVING
from minigts.results.schema import RawSample, Side
from minigts.tools import flows, iperf3_tcp, iperf3_udp
from minigts.tools.base import Measured, ParseError, complaint
from minigts.tools.columns import COST
from minigts.tools.flows import FlowsOptions

SHOWN_OFFLOADS = ("tcp-segmentation-offload", "generic-segmentation-offload", "tx-udp-segmentation")


def read(measurement: AnyMeasurement, raw: RawSample) -> Measured:
    """The attempt's result. Raises ParseError when its tool, or another session, gave no result."""
    if isinstance(measurement.options, FlowsOptions):
        return flows.together(flow_results.results(measurement.options, raw))
    read_output = measurement.instrument.read
    main = read_output(raw.stdout, raw.stderr)
    others = [read_output(side.stdout, side.stderr) for side in _named(raw, "session")]
    counted = [each.payload_bytes for each in (main, *others) if each.payload_bytes is not None]
    payload_bytes = sum(counted) if len(counted) == 1 + len(others) else 0.0
    return Measured(
        value=main.value + sum(other.value for other in others),
        extra={**_joined([main, *others]), **_processors(raw, payload_bytes), **_stress(raw), **_crossing(raw)},
        note="; ".join(_offloads(raw)),
    )


def time_series(measurement: AnyMeasurement, raw: RawSample) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Figures over time of a good sample: for each column, pairs of seconds since the client began and the figure. They
    are the tool's where `series` is set, the queues where these were read, and the processor use of both hosts in per
    cent where it was watched; as in `read` the outer machine's count is preferred.
    """
    found: dict[str, Sequence[tuple[float, float]]] = {}
    if measurement.series and isinstance(measurement.options, FlowsOptions):
        found |= flow_results.time_series(measurement.options, raw)
    elif measurement.series and (series := measurement.instrument.series) is not None:
        with contextlib.suppress(ParseError):
            found |= series(raw.stdout)
    inside, outside = ({side.host: side for side in _named(raw, name)} for name in ("cpu", "cpu outside"))
    for host, end in zip(inside, ("source", "target"), strict=False):
        with contextlib.suppress(ParseError):
            own = counters.processor_over_time(inside[host].stdout)
            found[f"cpu_{end}_inside_percent"] = found[f"cpu_{end}_percent"] = own
            if host in outside:
                found[f"cpu_{end}_percent"] = counters.processor_over_time(outside[host].stdout)
    for side in _named(raw, SCHEDULE):
        with contextlib.suppress(ValueError):
            found |= link_changes.time_series(side.stdout)
    for side in _named(raw, QUEUES):
        with contextlib.suppress(ValueError):
            found |= queue_watch.time_series(side.stdout)
    return {column: series for column, series in found.items() if series}


def failure(measurement: AnyMeasurement, raw: RawSample) -> str:
    """One line that says why the attempt has no result, by how its tool or `serve` ended; empty if both ended well."""
    for side in (*_named(raw, SERVING), *_named(raw, LISTENING)):
        if side.code:
            said = complaint("\n".join(reversed((side.stderr or side.stdout).splitlines()))) or "it said nothing"
            ended = f" ended with code {side.code}" if side.name == SERVING else ""
            return f"what serves on {side.host}{ended}: {said}"
    return measurement.instrument.failure(raw.code, raw.stdout, raw.stderr)


def _named(raw: RawSample, name: str) -> list[Side]:
    return [side for side in raw.around if side.name == name]


def _joined(sessions: Sequence[Measured]) -> dict[str, float]:
    """The further columns of several sessions: the worst jitter, the mean loss, the sums of the others."""
    extra = dict(sessions[0].extra)
    if len(sessions) > 1:
        each = {key: [session.extra[key] for session in sessions] for key in extra}
        extra = {key: sum(values) for key, values in each.items()}
        extra |= {"jitter_ms": max(each["jitter_ms"]), "loss_percent": statistics.fmean(each["loss_percent"])}
    return extra


def _processors(raw: RawSample, payload_bytes: float) -> dict[str, float]:
    """Processor use of both hosts, and processor time for each byte that arrived. `cpu_source_percent` is what the host
    costs the outer machine where that is known, otherwise what its own kernel counts; the latter is always in
    `cpu_source_inside_percent`."""
    found: dict[str, float] = {}
    inside, outside = ({side.host: side for side in _named(raw, name)} for name in ("cpu", "cpu outside"))
    ends = dict(zip(inside, ("source", "target"), strict=False))
    for host, end in ends.items():
        try:
            use = counters.processor_use(inside[host].stdout)
            found[f"cpu_{end}_inside_percent"] = found[f"cpu_{end}_percent"] = use.host_percent
            found[f"group_{end}_percent"] = max(use.groups_percent.values(), default=0.0)
            if host in outside:
                use = counters.processor_use(outside[host].stdout)
                found[f"cpu_{end}_percent"] = use.host_percent
            if payload_bytes:
                found[f"cpu_{end}_ns_per_byte"] = use.host_s * 1e9 / payload_bytes
        except ParseError:
            continue
    busiest = [value for key, value in found.items() if key in ("cpu_source_percent", "cpu_target_percent")]
    costs = [value for key, value in found.items() if key.endswith("_ns_per_byte")]
    if costs and len(costs) == len(ends):
        found[COST.name] = sum(costs)
    return {**found, "cpu_percent": max(busiest)} if busiest else found


def _stress(raw: RawSample) -> dict[str, float]:
    """How many seconds stress-ng really ran, the longer of both hosts."""
    runs = [counters.stress_ng(side.stdout, side.stderr).seconds for side in _named(raw, "stress")]
    return {"stress_s": max(runs)} if runs else {}


def _crossing(raw: RawSample) -> dict[str, float]:
    """The sum of all cross traffic in Mbit/s, and the loss of its datagrams in per cent. Raises ParseError when a flow
    has no result."""
    sides = _named(raw, CROSSING)
    streams = [iperf3_tcp.parse(side.stdout, side.stderr) for side in sides if "-u" not in side.argv]
    datagrams = [iperf3_udp.parse(side.stdout, side.stderr) for side in sides if "-u" in side.argv]
    arrived = [*(flow.received_mbit for flow in streams), *(flow.received_mbit for flow in datagrams)]
    found = {"cross_mbit": sum(arrived)} if sides else {}
    if sent := sum(flow.datagrams for flow in datagrams):
        found["cross_loss_percent"] = 100 * sum(flow.lost for flow in datagrams) / sent
    return found


def _offloads(raw: RawSample) -> list[str]:
    """The interfaces' offloads, as read back: `source eth0: tcp-segmentation-offload off (fixed)`."""
    lines = []
    for end in ("source", "target"):
        for side in _named(raw, f"offload {end}"):
            features = counters.ethtool_features(side.stdout, side.stderr)
            shown = [
                f"{name} {'on' if features[name].on else 'off'}{' (fixed)' if features[name].fixed else ''}"
                for name in SHOWN_OFFLOADS
                if name in features
            ]
            lines.append(f"{end} {counters.device(side.stdout)}: {', '.join(shown)}")
    return lines
