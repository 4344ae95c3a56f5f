"""The tests within a case, as its output names them. Pure.

Such lines name them:

    ok 3 - name # SKIP no such option                    TAP, as kselftests and tdc.py write it
    TEST: ping with a vlan                      [FAIL]   lib.sh of Linux's net and net/forwarding
    FAILED test_bgp.py::test_convergence - no route      pytest with -rpfEsxX
    FAIL sae_pwe_h2e 2.1 2026-04-07 00:00:09.8           run-tests.py of hostap
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from minigts.suites.suite import CasePart, Verdict

_TAP = re.compile(r"^\s*(?:# )?(not )?ok (\d+)[ \t]+(?:- )?([^#\n]*?)[ \t]*(?:# *([^\n]*))?$", re.MULTILINE)
_NOT_COUNTED = re.compile(r"(?:skip|todo|xfail|ignore)", re.IGNORECASE)
_LIB_SH = re.compile(r"^TEST: (.+?)[ \t]+\[ *(OK|FAIL|SKIP|XFAIL) *\](?:\n[ \t]+([^\n]+))?", re.MULTILINE)
_PYTEST = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) \S*?::(\S+)(?: - ([^\n]*))?$", re.MULTILINE)
_PYTEST_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+?): ([^\n]*)$", re.MULTILINE)
_HWSIM_BEGIN = re.compile(r"START \w+ \d+/\d+")
_HWSIM_END = re.compile(r"(PASS|FAIL|SKIP) (\w+) [\d.]+ \d{4}-\d\d-\d\d .*")
_HWSIM_WHY = re.compile(r"(?:Skip test case|Exception during test execution): (.+)")
_WORDS: Mapping[str, Verdict] = {
    **dict.fromkeys(("OK", "PASS", "PASSED", "XPASS"), "passed"),
    **dict.fromkeys(("FAIL", "FAILED", "ERROR"), "failed"),
    **dict.fromkeys(("SKIP", "XFAIL"), "skipped"),
}
MOST_NAMED = 3


def tap_parts(output: str) -> list[CasePart]:
    """What TAP says. A test that is skipped, or whose failure its authors do not count, is skipped."""
    found = []
    for no, _, name, remark in _TAP.findall(output):
        verdict: Verdict = "failed" if no else "passed"
        found.append(CasePart(name, "skipped" if _NOT_COUNTED.match(remark) else verdict, remark))
    return found


def lib_sh_parts(output: str) -> list[CasePart]:
    """What the lines say that lib.sh of Linux's `net` writes; the reason is in the line below."""
    return [
        CasePart(name, _WORDS[word], reason if _WORDS[word] != "passed" else "")
        for name, word, reason in _LIB_SH.findall(output)
    ]


def pytest_parts(output: str) -> list[CasePart]:
    """What pytest's summary says with -rpfEsxX. A test whose teardown failed, too, is there once, as failed; those that
    were skipped have the names of their lines."""
    found: dict[str, CasePart] = {}
    for word, name, reason in _PYTEST.findall(output):
        if name not in found or _WORDS[word] == "failed":
            found[name] = CasePart(name, _WORDS[word], reason)
    skipped = [
        CasePart(where, "skipped", reason)
        for count, where, reason in _PYTEST_SKIPPED.findall(output)
        for _ in range(int(count))
    ]
    return [*found.values(), *skipped]


def hwsim_parts(output: str) -> Iterator[CasePart]:
    """What the lines say that hostap's run-tests.py writes; the reason is in a line between beginning and end."""
    why = ""
    for line in output.splitlines():
        if _HWSIM_BEGIN.fullmatch(line):
            why = ""
        elif reason := _HWSIM_WHY.fullmatch(line):
            why = reason[1]
        elif end := _HWSIM_END.fullmatch(line):
            yield CasePart(end[2], _WORDS[end[1]], why if end[1] != "PASS" else "")


def last_line(output: str, otherwise: str) -> str:
    """The last line with something on it; `otherwise` if there is none."""
    return next((line for line in reversed(output.splitlines()) if line.strip()), otherwise)


def counts(parts: Sequence[CasePart]) -> dict[Verdict, int]:
    """How many have each verdict."""
    return dict(Counter(each.verdict for each in parts))


def summary(parts: Sequence[CasePart], verdict: Verdict) -> str:
    """`2 of 40 failed: ping (no route); arp`; empty if none has the verdict."""
    found = [f"{each.name} ({each.reason})" if each.reason else each.name for each in parts if each.verdict == verdict]
    if not found:
        return ""
    more = "; …" if len(found) > MOST_NAMED else ""
    return f"{len(found)} of {len(parts)} {verdict}: {'; '.join(found[:MOST_NAMED])}{more}"
