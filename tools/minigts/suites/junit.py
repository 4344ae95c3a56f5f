"""The results of a suite as JUnit's XML, which CI systems read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from minigts.foreign import printable
from minigts.suites.comparison import CaseSummary
from minigts.suites.outcome import CaseOutcome

MOST_OUTPUT = 20_000
"""The most characters of a case's output, from its end."""


def text_of(suite: str, cases: Sequence[CaseSummary], output: Callable[[CaseOutcome], str]) -> str:
    """A document with a `testcase` for each case. A case whose verdict changes between several times is a failure;
    `time` is by the lab's clock."""
    bad = [each for each in cases if each.chosen.verdict == "failed" or each.changes_verdict]
    counts = {
        "tests": len(cases),
        "failures": len(bad),
        "errors": sum(each.chosen.verdict == "error" and not each.changes_verdict for each in cases),
        "skipped": sum(each.chosen.verdict == "skipped" and not each.changes_verdict for each in cases),
    }
    root = Element("testsuites")
    group = SubElement(root, "testsuite", {"name": suite, **{name: str(count) for name, count in counts.items()}})
    for case in cases:
        _case(group, suite, case, output)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _case(group: Element, suite: str, case: CaseSummary, output: Callable[[CaseOutcome], str]) -> None:
    shown = case.chosen
    names = {"classname": f"{suite}.{shown.test}", "name": shown.case or shown.test, "time": f"{shown.lab_s:.6f}"}
    element = SubElement(group, "testcase", {name: printable(value) for name, value in names.items()})
    if case.changes_verdict:
        counted = ", ".join(f"{count} × {verdict}" for verdict, count in case.verdicts.items())
        _told(element, "failure", f"its verdict changes: {counted}: {shown.reason}", output(shown))
    elif shown.verdict == "skipped":
        _told(element, "skipped", shown.reason, "")
    elif shown.is_bad:
        _told(element, "failure" if shown.verdict == "failed" else "error", shown.reason, output(shown))


def _told(element: Element, kind: str, reason: str, output: str) -> None:
    told = SubElement(element, kind, {"message": printable(reason)})
    if output:
        told.text = printable(output[-MOST_OUTPUT:])
