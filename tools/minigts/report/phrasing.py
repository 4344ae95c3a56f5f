"""The report's sentences and captions. Pure: it makes plain text from points; the page escapes the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from minigts.experiment_language.figures import PLAIN_FIGURE, Figure
from minigts.judge.statistics import MOST_IN_RANGE, coverage
from minigts.judge.verdicts import Word
from minigts.language.figures import digits, span
from minigts.report.points import LatencyPoint, ThroughputPoint
from minigts.report.read import ReportResults
from minigts.report.style import PLAIN, PLAIN_IPV6, PLAIN_IPV6_LABEL, PLAIN_LABEL
from minigts.results import chance
from minigts.results.schema import ClaimVerdict, LeftOut
from minigts.tools import COLUMNS, TOOLS
from minigts.tools.base import Tool
from minigts.topology.plan.plan import Plan

if TYPE_CHECKING:
    from minigts.report.chart_model import Chart

MOST_TOLD = 4
"""The most series that a sentence describes."""
INTERVAL = " In brackets is the interval of the median"
OVERLAPPING = ", and networks whose intervals overlap are not told apart"
"""What has to be known of rates whose samples differ."""
ABOVE_THE_CEILING = (
    " A rate above the ceiling is in how iperf3 counts: its receiver also counts what waits or is under way when the "
    "time ends, which tells in a short measurement."
)
VERDICTS: tuple[tuple[Word, str], ...] = (
    ("held", "held"),
    ("failed", "failed"),
    ("undecided", "are undecided"),
    ("vacuous", "are vacuous here"),
)


def label(overlay: str, asked: Figure = PLAIN_FIGURE) -> str:
    """The overlay's name for readers: that of a figure's declaration, or `no overlay` for `none`."""
    return asked.word_name(overlay, {PLAIN: PLAIN_LABEL, PLAIN_IPV6: PLAIN_IPV6_LABEL}.get(overlay))


def measurement(name: str) -> str:
    """The measurement's name in headings: TCP for `tcp`, RTT for `latency`; others are unchanged."""
    return next((tool.value.label for tool in TOOLS.values() if tool.usual_name == name), name)


def axis(name: str) -> str:
    """A varied setting's name as the label of an axis: `network` for `overlay`, `delay of chain link` for the place
    `chain.link.delay` in a topology file, `RTT of link ams-bra` for `links.ams-bra.rtt`."""
    *places, last = name.split(".")
    if len(places) == 2 and places[0] in ("links", "hosts"):
        places[0] = places[0].removesuffix("s")
    words = [{"overlay": "network", "rtt": "RTT", "mtu": "MTU", "cpu": "CPU"}.get(last, last)]
    words += ["of", *places] if places else []
    return " ".join(words).replace("_", " ")


def column(name: str, unit: str, tool: Tool | None = None) -> str:
    """A column of samples.csv as the label of an axis, `loss in %`; `tool` is the one that filled it, where known. The
    unit of a column that no tool here fills comes from the end of its name, or is the row's."""
    known = (tool.column(name) if tool else None) or COLUMNS.get(name)
    if known is not None:
        return known.heading(unit)
    stem, _, last = name.rpartition("_")
    own = {"percent": "%", "ms": "ms", "mbit": "Mbit/s", "bytes": "bytes", "s": "s"}.get(last)
    text = (stem if own and stem else name).replace("_", " ")
    return f"{text.replace('cpu', 'CPU').replace('rtt', 'RTT')} in {own or unit}"


def short(name: str, most: int = 12) -> str:
    """A name cut to fit under a tick."""
    return name if len(name) <= most else name[: most - 1] + "…"


def enumeration(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = list(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def count_phrase(number: int, noun: str) -> str:
    """`1 sample`, `2 samples`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clock(plan: Plan) -> str:
    """The results' time, and in virtual time the model of processors: `virtual time, with a free processor`."""
    if plan.time == "real":
        return "real time"
    modelled: dict[str, list[str]] = {}
    for host in plan.hosts:
        if host.processor is not None:
            taken = host.processor
            costs = f"{figure(taken.frame_ns)} ns a frame and {figure(taken.byte_ns)} ns a byte"
            costs += f" and {figure(taken.call_ns)} ns a system call" if taken.call_ns else ""
            modelled.setdefault(costs, []).append(host.name)
    if not modelled:
        return "virtual time, with a free processor"
    everywhere = [*map(len, modelled.values())] == [len(plan.hosts)]
    told = [costs if everywhere else f"{costs} on {enumeration(hosts)}" for costs, hosts in modelled.items()]
    return f"virtual time, with a modelled processor ({'; '.join(told)})"


def command(results: ReportResults) -> str:
    """The command that makes the same results again, in the same time."""
    time = f" --time {results.plan.time}" if results.plan else ""
    number = results.manifest.experiment.replicates if results.manifest else 1
    replicates = f" --replicates {number}" if number > 1 else ""
    return f"minigts run {results.experiment or f'experiments/{results.name}.yaml'}{time}{replicates}"


def left_out(parts: Sequence[LeftOut]) -> list[str]:
    """The parts that were left out because they say nothing in virtual time, and why, a line each."""
    kinds = {"measurement": "Measurement", "claim": "Claim", "watch": "The processor counters of"}
    return [f"{kinds[part.kind]} {part.name}: {part.why}." for part in parts if part.kind in kinds]


def absent(parts: Sequence[LeftOut]) -> str:
    """A sentence with the networks that were left out for lack of their programs; empty without any."""
    names = [part.name for part in parts if part.kind == "overlay"]
    if not names:
        return ""
    theirs = "its programs are" if len(names) == 1 else "their programs are"
    return f"Without {enumeration(names)}: {theirs} the user's to bring, and were not there."


def state(results: ReportResults) -> str | None:
    """Sentences about what an incomplete run lacks; None when it is complete."""
    manifest, missing = results.manifest, results.missing_samples
    if manifest is None or not results.incomplete:
        return None
    lack = f" {count_phrase(missing, 'sample')} of {manifest.samples_planned} missing." if missing else ""
    ended = " It was interrupted, or is still running." if manifest.ended is None else ""
    skipped = "".join(f" {name} was skipped: {reason}." for name, reason in manifest.skipped.items())
    return f"This run is incomplete.{lack}{ended}{skipped} What follows rests on the samples that are there."


def counts(results: ReportResults) -> str:
    """A sentence with the numbers of samples, of failed ones, and of repeated ones."""
    samples = results.samples
    verb = "is" if samples.failed == 1 else "are"
    failed = f"; {samples.failed} failed and {verb} not averaged in" if samples.failed else ", none failed"
    repeated = f"; {samples.repeated} had to be repeated" if samples.repeated else ""
    busy = ""
    if samples.tainted:
        verb = "was" if samples.tainted == 1 else "were"
        busy = f"; {samples.tainted} {verb} taken while the machine was too busy"
    if samples.retaken:
        busy += f"; {count_phrase(samples.retaken, 'attempt')} thrown away for that reason and taken again"
    return f"{count_phrase(samples.total, 'sample')}{failed}{repeated}{busy}."


def verdicts(claims: Sequence[ClaimVerdict]) -> str:
    """A sentence with the numbers of verdicts, for claims of documents and for the experiments' own."""
    if not claims:
        return "No claims were made."
    sourced, own = ([claim for claim in claims if bool(claim.source) == of_others] for of_others in (True, False))
    if not sourced or not own:
        whose = "claims that a document makes" if sourced else "claims of our own"
        return f"Of {count_phrase(len(claims), 'verdict')} on {whose} {_tally(claims)}."
    theirs, ours = _tally(sourced), _tally(own)
    many = count_phrase(len(sourced), "verdict")
    return f"Of {many} on claims that a document makes {theirs}; of {len(own)} on our own {ours}."


def _tally(claims: Sequence[ClaimVerdict]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    told = [f"{counts[word]} {text}" for word, text in VERDICTS if counts[word]]
    return enumeration([text.replace(" are ", " is ") if text.startswith("1 ") else text for text in told])


def ends(chart: Chart) -> list[str]:
    """A sentence about a chart's first panel if it has few series: along numbers the first and the last point of each,
    among names the lowest and the highest."""
    panel = chart.panels[0]
    if len(panel.series) > MOST_TOLD or chart.relative_to or chart.asked.cdf:
        return []
    unit = panel.label.rpartition(" in ")[2].replace("\n", " ")
    told = []
    for series in (each for each in panel.series if each.points):
        ordered = sorted(series.points, key=lambda point: point.value) if chart.bars else series.points
        first, last = (figure(point.value) for point in (ordered[0], ordered[-1]))
        name = ", ".join(filter(None, (label(series.overlay, chart.asked), series.condition)))
        told.append(f"{name} {first}" + (f" to {last} {unit}" if first != last else f" {unit}"))
    along = "" if chart.bars or len(chart.ticks) < 2 else f" from {chart.ticks[0][1]} to {chart.ticks[-1][1]}"
    return [f"{chart.title}{along}: {enumeration(told)}."] if told else []


def figure(value: float) -> str:
    """The value with three significant digits: `0.214`, `94`, `9598`."""
    return digits(value)


def latency(points: Sequence[LatencyPoint]) -> list[str]:
    """Sentences about the largest residual and its tolerance, and how many points lie within theirs."""
    judged = [(point, abs(point.residual_ms)) for point in points if point.residual_ms is not None]
    if not judged:
        return []
    worst, most = max(judged, key=lambda pair: pair[1])
    outside = [point for point, _ in judged if not point.within]
    where = f"{label(worst.overlay)}, {count_phrase(worst.hops, 'hop')}"
    digits = 4 if worst.tolerance_ms is not None and worst.tolerance_ms < 0.1 else 2
    sentence = (
        f"The RTT lies at most {most:.{digits}f} ms from the sum of the single segments "
        f"({where}; the tolerance there is {worst.tolerance_ms:.{digits}f} ms)."
    )
    if not outside:
        return [sentence, f"All {len(judged)} sums agree within the tolerance."]
    places = enumeration(f"{label(point.overlay)} at {count_phrase(point.hops, 'hop')}" for point in outside)
    return [sentence, f"{len(outside)} of {len(judged)} sums disagree by more than the tolerance: {places}."]


def throughput(points: Sequence[ThroughputPoint]) -> list[str]:
    """Sentences about TCP at the first and the last hop of each overlay, and about the share of UDP that arrived."""
    sentences = []
    for name in dict.fromkeys(point.measurement for point in points):
        own = [point for point in points if point.measurement == name]
        sentences.append(_range(name, own) if own[0].tool.prediction.kind == "expected" else _ends(name, own))
    return sentences


def _ends(name: str, points: Sequence[ThroughputPoint]) -> str:
    overlays = dict.fromkeys(point.overlay for point in points)
    series = [[point for point in points if point.overlay == overlay] for overlay in overlays]
    told = [_first_and_last(own[0], own[-1]) for own in series]
    above = any(point.share is not None and point.share > 1 for point in points)
    spread = any(point.is_spread for own in series for point in (own[0], own[-1]))
    of_interval = f"{INTERVAL}{OVERLAPPING if len(series) > 1 else ''}." if spread else ""
    return f"{measurement(name)} reached {enumeration(told)}.{of_interval}{ABOVE_THE_CEILING if above else ''}"


def _first_and_last(first: ThroughputPoint, last: ThroughputPoint) -> str:
    both = list(dict.fromkeys((first, last)))
    rates = enumeration(f"{_rate(point)} Mbit/s at {count_phrase(point.hops, 'hop')}" for point in both)
    shares = enumeration(f"{100 * point.share:.1f} %" for point in both if point.share is not None)
    where = "without an overlay" if first.overlay == PLAIN else f"over {first.overlay}"
    return f"{rates} {where}" + (f" ({shares} of the ceiling)" if shares else "")


def _rate(point: ThroughputPoint) -> str:
    """`94.9`, or `5.9 (4.1 to 7.2)` where the samples differ by more than a twentieth."""
    among = f" ({point.low_mbit:.1f} to {point.high_mbit:.1f})" if point.is_spread else ""
    return f"{point.median_mbit:.1f}{among}"


def _range(name: str, points: Sequence[ThroughputPoint]) -> str:
    shares = [100 * point.share for point in points if point.share is not None]
    if not shares:
        rates = [point.median_mbit for point in points]
        return f"{measurement(name)} reached {_from_to(rates)} Mbit/s."
    furthest = count_phrase(max(point.hops for point in points), "hop")
    return f"Of the {measurement(name)} that the plan lets through, {_from_to(shares)} % arrived over up to {furthest}."


def _from_to(values: Sequence[float]) -> str:
    return span(f"{min(values):.1f}", f"{max(values):.1f}")


def middles(what: str, numbers: Sequence[int], results: ReportResults) -> str:
    """A sentence on how to read a figure's points; a single sample, or course of events, has no interval."""
    if set(numbers) == {1}:
        return f"{what} are {_single(results)}."
    several = results.manifest is not None and results.manifest.experiment.replicates > 1
    of = " replicates" if several else ""
    return f"{what} are the median, whiskers its {_called(numbers)} ({repetitions(numbers)}{of})."


def _single(results: ReportResults) -> str:
    if results.plan is None or results.plan.time == "real":
        return "single samples; one has no interval"
    own = results.manifest.experiment.measurements if results.manifest else ()
    if chance.random_links(results.plan, own):
        return "of one course of events, in which chance decides: another course has others (--replicates)"
    return "exact, of one course of events"


def repetitions(numbers: Iterable[int]) -> str:
    """The number of samples of each point: `n = 5`, or `n = 4 to 5` when they differ."""
    known = sorted(set(numbers)) or [0]
    return f"n = {known[0]}" if len(known) == 1 else f"n = {known[0]} to {known[-1]}"


def interval(numbers: Iterable[int]) -> str:
    """The kind of interval that is shown, and what it covers of the median where there are few samples."""
    several = [number for number in numbers if number > 1]
    fewest = min(several, default=0)
    covered = coverage(fewest) if fewest else None
    if covered is None:
        return "the 95 % bootstrap interval of the median."
    of = f"with n = {fewest} it covers {100 * covered:g} %"
    if all(coverage(number) is not None for number in several):
        return f"the range of the samples; {of}."
    return f"the 95 % bootstrap interval of the median, of {MOST_IN_RANGE} samples and fewer their range; {of}."


def _called(numbers: Sequence[int]) -> str:
    """`95 % interval`, or `range, 93.75 %` where there are so few samples that the interval is their range."""
    covered = [coverage(number) for number in numbers if number > 1]
    known = {each for each in covered if each is not None}
    if len(known) == 1 and None not in covered:
        return f"range, {100 * known.pop():g} %"
    return "95 % interval" + (f", of {MOST_IN_RANGE} samples and fewer their range" if known else "")


def duration(started: str | None, ended: str | None) -> str | None:
    """`4 min 41 s` between two ISO 8601 times; None when either is missing or invalid."""
    try:
        seconds = round((datetime.fromisoformat(ended or "") - datetime.fromisoformat(started or "")).total_seconds())
    except (ValueError, TypeError):
        return None
    minutes, rest = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def moment(text: str) -> str:
    """`2026-11-21 10:00 UTC` for an ISO 8601 time; any other text is unchanged."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{time:%Y-%m-%d %H:%M} {time.tzname() or ''}".rstrip()


_LOOSE = re.compile(r"-\d|\d[ %]")


def tight(text: str) -> str:
    """The text with true minus signs, and with no-break spaces between numbers and their units."""
    if not _LOOSE.search(text):  # fast for most cells of a large table
        return text
    text = re.sub(r"(?<![\w.-])-(?=\d)", "−", re.sub(r"(?<=\d)%", " %", text))
    return re.sub(r"(?<=\d) (?=(%|ms|Mbit/s|hops?|samples?)\b|%)", "\N{NO-BREAK SPACE}", text)


def latency_caption(data: ReportResults, chart: Chart, points: Sequence[LatencyPoint]) -> list[str]:
    """The caption of a latency by hops with the sum of its segments."""
    caption = [middles("Markers", [point.n for point in points], data)]
    if any(point.segments_ms for point in points):
        caption.append("Bars stack the medians of the single segments, measured one by one over the same network.")
    if any(point.residual_ms is not None for point in points):
        caption.append(
            "Below: how far the RTT lies from the top of its bar; whiskers join the intervals of path and "
            "segments, shaded boxes are the tolerance."
        )
    if any(point.segments_ms and point.residual_ms is None for point in points):
        caption.append("Where a path is its own only segment there is nothing to compare.")
    if any(point.excluded for point in points):
        caption.append("Grey crosses are samples taken while the machine was too busy.")
    if any(point.doubtful for point in points):
        caption.append("Ringed points rest on samples that were all taken while the machine was too busy.")
    if any(point.published_ms is not None for point in points):
        caption.append(f"Open diamonds are the published values{_sources(data, chart)}.")
    return [*caption, *_elsewhere(chart), *_outside(chart), *_trends(data, chart), *_made_with(data)]


def chart_caption(data: ReportResults, chart: Chart) -> list[str]:
    """The caption of any other figure of medians."""
    points = [point for panel in chart.panels for series in panel.series for point in series.points]
    first = [point for series in chart.panels[0].series for point in series.points]
    caption = [
        middles("Bars" if chart.bars and not chart.scattered else "Markers", [point.n for point in points], data)
    ]
    if (better := chart.tool.value.better) is not None:
        caption.append(f"{better.capitalize()} is better.")
    if chart.relative_to:
        caption.append(f"Each value is a share of that of {chart.relative_to}.")
    if chart.scattered:
        caption.append("Each marker is one path; the numbers below name them.")
    caption += _elsewhere(chart)
    if any(point.predicted is not None for point in first):
        caption.append(f"Lines without markers: {chart.tool.prediction.sentence}.")
    if chart.beyond is not None:
        caption.append(f"The plan predicts {figure(chart.beyond)} or more, far above what is drawn.")
    if chart.marks:
        caption.append("Dotted vertical lines: the largest datagram that an overlay carries in one packet.")
    if any(point.excluded for point in first):
        caption.append("Grey crosses are samples taken while the machine was too busy.")
    if any(point.doubtful for point in points):
        caption.append("Ringed points rest on samples that were all taken while the machine was too busy.")
    if any(point.published is not None for point in first):
        caption.append(f"Open diamonds are the published values{_sources(data, chart)}.")
    return [*caption, *_outside(chart), *_trends(data, chart), *_made_with(data)]


def distribution_caption(data: ReportResults, chart: Chart) -> list[str]:
    """The caption of a distribution: how to read it, and how many values each line has."""
    numbers = sorted({point.n for panel in chart.panels for series in panel.series for point in series.points})
    what = "samples" if chart.asked.cdf == "samples" else "moments that the tool reported, of all samples together"
    told = f"Each line is the share of {what} up to each value (n = {_ends_of(numbers)})."
    return [*([told] if numbers else []), *_outside(chart), *_made_with(data)]


def _ends_of(numbers: Sequence[int]) -> str:
    """`5`, or `4 to 5`."""
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _outside(chart: Chart) -> list[str]:
    """A sentence about points that the figure's own axes leave out."""
    if not chart.outside:
        return []
    verb = "lies" if chart.outside == 1 else "lie"
    return [f"{count_phrase(chart.outside, 'point')} {verb} outside the axes."]


def heatmap_caption(data: ReportResults, chart: Chart) -> list[str]:
    """The caption of a heat map."""
    points = [point for panel in chart.panels for series in panel.series for point in series.points]
    return [
        middles("Places", [point.n for point in points], data),
        *_trends(data, chart),
        *_made_with(data),
    ]


def _elsewhere(chart: Chart) -> list[str]:
    """A sentence about paths that a figure by hops leaves out because they begin at another host."""
    if not chart.elsewhere:
        return []
    verb = "begins" if chart.elsewhere == 1 else "begin"
    return [f"{count_phrase(chart.elsewhere, 'further path')} {verb} at another host: see the numbers below."]


def _sources(data: ReportResults, chart: Chart) -> str:
    """The sources of the measurement's published values, in brackets."""
    sources = dict.fromkeys(entry.source for entry in data.published if entry.measurement in chart.measurements)
    return f" ({'; '.join(filter(None, sources))})" if any(sources) else ""


def _trends(data: ReportResults, chart: Chart) -> list[str]:
    """The published trends, as the experiment words them; they have no values that could be drawn."""
    told = [e for e in data.published if e.measurement in chart.measurements and e.trend]
    return [f"Published: {e.trend.rstrip('.')}{f' ({e.source})' if e.source else ''}." for e in told]


def _made_with(data: ReportResults) -> list[str]:
    """Sentences about the provider, the lab's certificate, and the command that makes the figure again; or about the
    several runs that are drawn together."""
    if data.several:
        return [f"Experiments: {enumeration(data.several)}."]
    told = [f"Provider: {data.provider}, in {clock(data.plan)}."] if data.plan else []
    told += [f"Tuned kernels: {words}." for words in data.plan.tuning_in_words] if data.plan else []
    verdict = data.manifest.certificate.get("verdict") if data.manifest else None
    if verdict:
        told.append(f"The lab's certificate (certificate.json): {verdict}.")
    if data.name:
        told.append(f"Made by {command(data)}.")
    return told
