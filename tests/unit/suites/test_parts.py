"""The tests within a case, as its output names them."""

from __future__ import annotations

import pytest

from minigts.suites import parts
from minigts.suites.suite import CasePart

TAP = """TAP version 13
1..6
ok 1 - mptcp_join: subflow # time=120ms
not ok 2 e90e - Add a qdisc
\tCommands executed in this test case:
ok 3 5f6a - Show a class # skipped - no such device
not ok 4 slow # XFAIL the machine is slow
# ok 5 within
ok 6 - mptcp_join: fastclose # IGNORE Flaky
"""
LIB_SH = """TEST: ping                                                          [ OK ]
TEST: ping with a vlan                                              [FAIL]
\tPackets were not received
TEST: team                                                          [SKIP]
\tteamd not installed
TEST: burst                                                         [XFAIL]
"""
PYTEST = """bgp_a/test_a.py::test_convergence
bgp_a/test_a.py::test_convergence PASSED                          [ 33%]
=========================== short test summary info ============================
PASSED bgp_a/test_a.py::test_convergence
SKIPPED [2] bgp_a/test_a.py:315: Memory leak test disabled
XFAIL bgp_a/test_a.py::test_slow - a known fault
FAILED bgp_a/test_a.py::test_routes - AssertionError: r1: no route
ERROR bgp_a/test_a.py::test_convergence
"""


def test_tap_names_parts_and_those_that_do_not_count() -> None:
    assert parts.tap_parts(TAP) == [
        CasePart("mptcp_join: subflow", "passed", "time=120ms"),
        CasePart("e90e - Add a qdisc", "failed", ""),
        CasePart("5f6a - Show a class", "skipped", "skipped - no such device"),
        CasePart("slow", "skipped", "XFAIL the machine is slow"),
        CasePart("within", "passed", ""),
        CasePart("mptcp_join: fastclose", "skipped", "IGNORE Flaky"),
    ]


def test_lib_sh_names_parts_with_the_reason_below() -> None:
    assert parts.lib_sh_parts(LIB_SH) == [
        CasePart("ping", "passed", ""),
        CasePart("ping with a vlan", "failed", "Packets were not received"),
        CasePart("team", "skipped", "teamd not installed"),
        CasePart("burst", "skipped", ""),
    ]


def test_pytest_names_each_function_once() -> None:
    assert parts.pytest_parts(PYTEST) == [
        CasePart("test_convergence", "failed", ""),
        CasePart("test_slow", "skipped", "a known fault"),
        CasePart("test_routes", "failed", "AssertionError: r1: no route"),
        CasePart("bgp_a/test_a.py:315", "skipped", "Memory leak test disabled"),
        CasePart("bgp_a/test_a.py:315", "skipped", "Memory leak test disabled"),
    ]


@pytest.mark.parametrize("text", ["", "ok\n", "it is ok 3 times\n", "TEST: ping\n", "PASSED\n"])
def test_other_text_names_none(text: str) -> None:
    assert (parts.tap_parts(text), parts.lib_sh_parts(text), parts.pytest_parts(text)) == ([], [], [])


def test_parts_are_counted_and_the_first_of_a_verdict_are_named() -> None:
    found = parts.tap_parts(TAP)
    assert parts.counts(found) == {"passed": 2, "failed": 1, "skipped": 3}
    assert parts.summary(found, "failed") == "1 of 6 failed: e90e - Add a qdisc"
    assert parts.summary(found, "error") == ""
    many = [CasePart(str(number), "failed", "") for number in range(5)]
    assert parts.summary(many, "failed") == "5 of 5 failed: 0; 1; 2; …"
