"""The results of a suite as a page of Markdown, and as lines for the screen. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from minigts.foreign import printable
from minigts.language.figures import digits, duration
from minigts.suites.comparison import CaseSummary, OutputDifference, first_difference
from minigts.suites.outcome import CaseOutcome
from minigts.suites.suite import Verdict
from minigts.suites.work import SuiteRun

LONGEST_LINE = 160
_VERDICTS: Sequence[Verdict] = ("passed", "failed", "skipped", "error")


def totals(cases: Sequence[CaseSummary]) -> str:
    """`452 cases: 449 passed, 3 failed; no verdict and no output changed in 10 times`"""
    counted = [
        (sum(not each.changes_verdict and each.chosen.verdict == verdict for each in cases), verdict)
        for verdict in _VERDICTS
    ]
    times = max((len(each.outcomes) for each in cases), default=0)
    found = ", ".join(f"{count} {verdict}" for count, verdict in counted if count) or "none"
    parts = sum((Counter(each.chosen.parts) for each in cases), Counter[Verdict]())
    if parts:
        found += " (within them " + ", ".join(f"{parts[each]} {each}" for each in _VERDICTS if parts[each]) + ")"
    if times < 2:
        return f"{len(cases)} cases: {found}"
    verdicts, outputs = (
        sum(changes) for changes in zip(*((each.changes_verdict, each.changes_output) for each in cases), strict=True)
    )
    return f"{len(cases)} cases: {found}; in {times} times {verdicts} changed their verdict, {outputs} their output"


def costs(cases: Sequence[CaseSummary]) -> str:
    """`processors: 210.5 s in cases, 95.1 s in starts of labs; the labs' clocks: 293.2 s`, each over all times."""
    every = [each for case in cases for each in case.outcomes]
    cases_s, starts_s, labs_s = (
        sum(getattr(each, name) for each in every) for name in ("processor_s", "start_processor_s", "lab_s")
    )
    return f"processors: {cases_s:.1f} s in cases, {starts_s:.1f} s in starts of labs; the labs' clocks: {labs_s:.1f} s"


def notable(cases: Sequence[CaseSummary], output: Callable[[CaseOutcome], str]) -> Iterator[str]:
    """A line or two for each case that did not pass, or that is not the same each time."""
    for case in cases:
        shown = case.chosen
        if shown.verdict != "passed" or case.changes_verdict:
            counted = ", ".join(f"{count} × {word}" for word, count in case.verdicts.items())
            yield f"{shown.name}: {counted if case.changes_verdict else shown.verdict}: {_cut(shown.reason)}"
        if (found := difference(case, output)) is not None:
            line, time = found
            yield f"{shown.name}: line {line.number} of its output differs between the first and the {time}. time:"
            yield f"    {_cut(line.one)}"
            yield f"    {_cut(line.other)}"


def difference(case: CaseSummary, output: Callable[[CaseOutcome], str]) -> tuple[OutputDifference, int] | None:
    """The first line in which the output of a later time differs from that of the first, and which time that was."""
    for each in case.outcomes[1:]:
        if each.output_sha256 != case.first.output_sha256:
            line = first_difference(output(case.first), output(each))
            if line is not None:
                return line, each.time
    return None


def page(run: SuiteRun, cases: Sequence[CaseSummary], output: Callable[[CaseOutcome], str]) -> str:
    """The whole as Markdown: totals, what is notable, and a row for each case."""
    settings = run.settings
    tolerance = settings.options.tolerance_us
    kernel = ", ".join(f"{part} {digest[:12]}" for part, digest in run.parts.items())
    loads = ", ".join(map(str, run.loads))
    head = [
        f"# {settings.suite}",
        "",
        f"{totals(cases)}; {costs(cases)}.",
        "",
        f"- directory: `{printable(settings.directory)}`",
        *([f"- hosts have `{printable(settings.installed)}` in place of Debian's"] if settings.installed else []),
        f"- in {settings.plan.time} time, {run.times} times beside each of these loads: {loads} busy programs",
        f"- tolerance: {'the suite’s own' if tolerance is None else f'{tolerance} µs'}",
        f"- minigts {run.minigts} {run.commit}; {kernel}",
        "",
    ]
    told = [f"    {printable(line)}" for line in notable(cases, output)]
    rows = [_row(case) for case in cases]
    names = ("test", "case", "verdict", "lab's time", "real time", "processors", "fingerprint")
    table = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return "\n".join([*head, *told, *([""] if told else []), *table, *rows, ""])


def _row(case: CaseSummary) -> str:
    shown = case.chosen
    verdict = ", ".join(f"{count} × {word}" for word, count in case.verdicts.items())
    changes = [word for word, found in (("verdict", case.changes_verdict), ("output", case.changes_output)) if found]
    told = verdict if len(case.outcomes) > 1 else shown.verdict
    if shown.parts:
        told += f" ({', '.join(f'{shown.parts[each]} {each}' for each in _VERDICTS if each in shown.parts)})"
    if changes:
        told += f" (changes: {', '.join(changes)})"
    fingerprint = "changes" if case.changes_course else shown.fingerprint[:12]
    times = (f"{digits(shown.lab_s, 6)} s", duration(shown.real_s), f"{shown.processor_s:.2f} s")
    cells = (shown.test, shown.case, told, *times, fingerprint)
    return f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
