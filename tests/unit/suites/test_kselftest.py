"""Linux's selftests as they are installed: which there are, their files, and how their end is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.suites.kselftest import Kselftest
from minigts.suites.suite import SuiteOptions


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("kselftest/ktap_helpers.sh", "net/lib.sh", "net/a.sh", "net/forwarding/b.sh", "tc-testing/tdc.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "kselftest-list.txt").write_text("net:a.sh\nnet/forwarding:b.sh\n\ntc-testing:tdc.sh\n")
    return tmp_path


def test_each_line_of_the_list_is_a_test_in_its_collections_folder(directory: Path) -> None:
    tests = Kselftest().tests(directory, SuiteOptions())
    assert [(test.name, test.directory, test.cases[0].argv) for test in tests] == [
        ("net/forwarding:b.sh", "net/forwarding", ("./b.sh",)),
        ("net:a.sh", "net", ("./a.sh",)),
        ("tc-testing:tdc.sh", "tc-testing", ("./tdc.sh",)),
    ]


def test_a_test_has_the_files_above_its_collection(directory: Path) -> None:
    below, net, other = (
        sorted(Kselftest().files(directory, test)) for test in Kselftest().tests(directory, SuiteOptions())
    )
    assert below == net == ["kselftest/ktap_helpers.sh", "net/a.sh", "net/forwarding/b.sh", "net/lib.sh"]
    assert other == ["kselftest/ktap_helpers.sh", "tc-testing/tdc.sh"]


@pytest.mark.parametrize("line", ["net", "net:../a.sh", "../net:a.sh", "net:a b"])
def test_a_line_of_another_kind_is_refused(line: str, directory: Path) -> None:
    (directory / "kselftest-list.txt").write_text(f"net:a.sh\n{line}\n")
    with pytest.raises(InputError, match=r"kselftest-list\.txt:2: .* is no COLLECTION:TEST"):
        Kselftest().tests(directory, SuiteOptions())


def test_a_folder_that_was_not_installed_says_how(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is made by `make -C tools/testing/selftests install`"):
        Kselftest().tests(tmp_path, SuiteOptions())


@pytest.mark.parametrize(
    ("code", "output", "verdict", "reason"),
    [
        (0, "ok 1 a\n", "passed", ""),
        (
            4,
            "TAP version 13\nSKIP: Could not run test without nettest\n",
            "skipped",
            "SKIP: Could not run test without nettest",
        ),
        (4, "", "skipped", "skipped, and said nothing"),
        (2, "not ok 1 a # XFAIL slow\n", "passed", ""),
        (4, "ok 1 a # SKIP no b\nok 2 c # SKIP no b\n", "skipped", "2 of 2 skipped: a (SKIP no b); c (SKIP no b)"),
        (1, "ok 1 a\nnot ok 2 b\n# Totals: pass:1 fail:1\n", "failed", "1 of 2 failed: b"),
        (1, "TEST: ping    [FAIL]\nlast\n", "failed", "1 of 1 failed: ping"),
        (1, "a: FAIL: b\nlast\n", "failed", "a: FAIL: b"),
        (139, "Segmentation fault\n\n", "failed", "Segmentation fault"),
        (1, "", "failed", "ended with code 1 and said nothing"),
    ],
)
def test_code_4_is_a_skip(code: int, output: str, verdict: str, reason: str) -> None:
    assert Kselftest().verdict(code, output) == (verdict, reason)
