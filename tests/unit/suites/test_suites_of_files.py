"""Suites whose tests are files: Linux's tests of traffic control, iproute2's, FRR's topotests, hostap's of Wi-Fi."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.suites import frr, hwsim, iproute2
from minigts.suites.frr import Frr
from minigts.suites.hwsim import Hwsim
from minigts.suites.iproute2 import Iproute2
from minigts.suites.suite import SuiteOptions, read_file
from minigts.suites.tc_testing import TcTesting

OPTIONS = SuiteOptions()


def lay(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    return place


@pytest.fixture
def tc_testing(tmp_path: Path) -> Path:
    return lay(tmp_path, "tdc.py", "tc-tests/qdiscs/fq.json", "tc-tests/actions/gact.json", "plugin-lib/nsPlugin.py")


@pytest.fixture
def testsuite(tmp_path: Path) -> Path:
    names = (
        "lib/generic.sh",
        "tests/ip/rule/dsfield.t",
        "tests/ss/ssfilter.t",
        "tests/ss/ss1.dump",
        "iproute2/x/Makefile",
    )
    return lay(tmp_path, *names)


@pytest.fixture
def topotests(tmp_path: Path) -> Path:
    names = (
        *("conftest.py", "lib/topogen.py", "munet/base.py", "lib/test/test_json.py", "example_test/test_example.py"),
        *("bgp_a/test_bgp_a.py", "bgp_a/r1/bgpd.conf", "bgp_b/test_b1.py", "bgp_b/__pycache__/test_b1.pyc"),
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nnorecursedirs = .git example_test lib\n")
    return lay(tmp_path, *names)


@pytest.fixture
def hostap(tmp_path: Path) -> Path:
    names = (
        *("run-tests.py", "hostapd.py", "test_sae.py", "test_dfs.py", "test_he.py", "auth_serv/ca.pem"),
        *("tnc/libhostap_imc.so", "vm/regdb/regulatory.db", "logs/1/log0"),
    )
    lay(tmp_path, *hwsim.PROGRAMS, "hostapd/main.o", "wpaspy/wpaspy.py", *(f"tests/hwsim/{name}" for name in names))
    (tmp_path / "tests/hwsim/test_sae.py").write_text("import hostapd\ndef f():\n    from test_dfs import wait\n")
    (tmp_path / "tests/hwsim/test_dfs.py").write_text("import test_sae\nimport test_of_another\n")
    return tmp_path


def test_each_file_of_tdc_is_a_test_and_has_no_descriptions_of_others(tc_testing: Path) -> None:
    gact, fq = TcTesting().tests(tc_testing, OPTIONS)
    assert (gact.name, fq.name) == ("actions/gact", "qdiscs/fq")
    assert fq.cases[0].argv == ("python3", "tdc.py", "-f", "tc-tests/qdiscs/fq.json")
    assert sorted(TcTesting().files(tc_testing, fq)) == ["plugin-lib/nsPlugin.py", "tc-tests/qdiscs/fq.json", "tdc.py"]


@pytest.mark.parametrize(
    ("code", "output", "verdict", "reason"),
    [
        (0, "ok 1 a1 - x\n", "passed", ""),
        (0, "ok 1 a1 - x # skipped - no dev\n", "skipped", "1 of 1 skipped: a1 - x (skipped - no dev)"),
        (4, "No tests found\n", "skipped", "No tests found"),
        (1, "ok 1 a1 - x\nnot ok 2 b2 - y\n", "failed", "1 of 2 failed: b2 - y"),
        (1, "The following test case IDs are not unique:\n{'a'}\n", "failed", "{'a'}"),
    ],
)
def test_tdcs_end(code: int, output: str, verdict: str, reason: str) -> None:
    assert TcTesting().verdict(code, output) == (verdict, reason)


def test_each_script_of_iproute2_is_a_test_with_all_beside_it(testsuite: Path) -> None:
    rule, ss = Iproute2().tests(testsuite, OPTIONS)
    assert (rule.name, ss.name) == ("ip/rule/dsfield", "ss/ssfilter")
    assert ss.cases[0].own_namespace
    assert ss.cases[0].argv[-1] == "tests/ss/ssfilter.t"
    files = sorted(Iproute2().files(testsuite, ss))
    assert files == ["lib/generic.sh", "tests/ip/rule/dsfield.t", "tests/ss/ss1.dump", "tests/ss/ssfilter.t"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo fine", 0),
        ("echo no such option >&2; exit 127", iproute2.SKIPPED),
        ('echo "line 3: failed:" >>"$ERRF"', iproute2.FAILED),
        ("exit 3", 0),
    ],
)
def test_a_script_fails_by_its_file_of_errors(script: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "a.t").write_text(script + "\n")
    run = iproute2.RUN.replace("/run/", f"{tmp_path}/")
    done = subprocess.run(
        ["sh", "-c", run, "sh", "a.t"], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    if code == iproute2.FAILED:
        assert Iproute2().verdict(code, done.stdout) == ("failed", "line 3: failed:")


def test_topotests_are_the_files_of_pytest_outside_of_what_is_left_out(topotests: Path) -> None:
    a, b = Frr().tests(topotests, OPTIONS)
    assert (a.name, b.name) == ("bgp_a/test_bgp_a", "bgp_b/test_b1")
    assert a.cases[0].argv[-2:] == ("sh", "bgp_a/test_bgp_a.py")
    assert sorted(Frr().files(topotests, b)) == [
        *("bgp_b/test_b1.py", "conftest.py", "lib/test/test_json.py", "lib/topogen.py", "munet/base.py", "pytest.ini")
    ]


def test_links_below_the_directory_are_followed_and_others_refused(topotests: Path) -> None:
    """Topotests share files of routers by links, and folders, too."""
    away = topotests.with_name("away")
    away.mkdir()
    (away / "secret").write_text("")
    (topotests / "bgp_b" / "r1").symlink_to("../bgp_a/r1")
    (topotests / "bgp_b" / "other.conf").symlink_to("r1/bgpd.conf")
    (topotests / "bgp_a" / "again").symlink_to("..")
    (topotests / "bgp_b" / "folder").symlink_to(away)
    (topotests / "bgp_b" / "file").symlink_to(away / "secret")
    test = next(each for each in Frr().tests(topotests, OPTIONS) if each.name == "bgp_b/test_b1")
    files = Frr().files(topotests, test)
    conf = topotests / "bgp_a" / "r1" / "bgpd.conf"
    assert {"bgp_b/r1/bgpd.conf", "bgp_b/other.conf", "bgp_b/file", "bgp_b/test_b1.py"} == {
        name for name in files if name.startswith("bgp_b/")
    }
    assert files["bgp_b/r1/bgpd.conf"].resolve() == conf == files["bgp_b/other.conf"]
    assert read_file(files["bgp_b/r1/bgpd.conf"]) == b""
    with pytest.raises(InputError, match="cannot be read"):
        read_file(files["bgp_b/file"])
    of_a = next(each for each in Frr().tests(topotests, OPTIONS) if each.name == "bgp_a/test_bgp_a")
    assert "bgp_a/again/bgp_b/test_b1.py" in Frr().files(topotests, of_a)


def test_exabgp_gets_the_long_forms_of_its_options() -> None:
    script = frr.RUN.split("/run/suite/exabgp <<'END'\n")[1].split("END\n")[0].replace("/usr/sbin/exabgp", "echo")
    words = ["-e", "/etc/exabgp/exabgp.env", "a b"]
    done = subprocess.run(["sh", "-c", script, "sh", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "--env /etc/exabgp/exabgp.env a b\n"


@pytest.mark.parametrize(
    ("code", "output", "verdict", "reason"),
    [
        (0, "PASSED a/t.py::test_x\nSKIPPED [1] a/t.py:3: off\n", "passed", ""),
        (0, "SKIPPED [1] a/t.py:3: no exabgp\n", "skipped", "1 of 1 skipped: a/t.py:3 (no exabgp)"),
        (5, "no tests ran\n", "skipped", "there is no test"),
        (1, "PASSED a/t.py::test_y\nFAILED a/t.py::test_x - no x\n", "failed", "1 of 2 failed: test_x (no x)"),
        (3, "INTERNALERROR> Traceback:\nINTERNALERROR> OSError: no x\n\nend\n", "failed", "OSError: no x"),
        (4, "ERROR: no such option\n", "failed", "ERROR: no such option"),
    ],
)
def test_pytests_end(code: int, output: str, verdict: str, reason: str) -> None:
    assert Frr().verdict(code, output) == (verdict, reason)


def test_each_module_of_hwsim_is_a_test_with_the_modules_that_it_imports(hostap: Path) -> None:
    dfs, he, sae = Hwsim().tests(hostap, OPTIONS)
    assert (dfs.name, he.name, sae.name) == ("dfs", "he", "sae")
    assert (sae.directory, sae.cases[0].argv[-2:]) == ("tests/hwsim", ("sh", "sae"))
    shared = {
        *hwsim.PROGRAMS,
        "wpaspy/wpaspy.py",
        *("tests/hwsim/run-tests.py", "tests/hwsim/hostapd.py", "tests/hwsim/auth_serv/ca.pem"),
        *("tests/hwsim/tnc/libhostap_imc.so", "tests/hwsim/vm/regdb/regulatory.db"),
    }
    assert {*Hwsim().files(hostap, he)} == {*shared, "tests/hwsim/test_he.py"}
    assert {*Hwsim().files(hostap, sae)} == {*shared, "tests/hwsim/test_sae.py", "tests/hwsim/test_dfs.py"}


SAE = "START sae 1/2\nTest: SAE\n{}PASS sae 0.69 2026-12-01 01:02:03.5\nSTART sae_pk 2/2\n{} 1 2026-12-01 01:02:04\n"
FAILING = "Exception during test execution: No reply\nTraceback:\n  FAIL sae 1\nFAIL sae_pk"


@pytest.mark.parametrize(
    ("code", "output", "verdict", "reason"),
    [
        (0, SAE.format("", "Skip test case: no SAE-PK\nSKIP sae_pk"), "passed", ""),
        (0, "START a 1/1\nSkip test case: off\nSKIP a 0.1 2026-12-01 01:02:03\n", "skipped", "1 of 1 skipped: a (off)"),
        (1, SAE.format("Skip test case: of another\n", FAILING), "failed", "1 of 2 failed: sae_pk (No reply)"),
        (1, "no mac80211_hwsim\n", "failed", "no mac80211_hwsim"),
        (0, "wlan0: No response from wpa_supplicant\n", "failed", "wlan0: No response from wpa_supplicant"),
        (
            0,
            f"PASS a 0.1 2026-12-01 01:02:03\n{hwsim.ENDED_EARLY}\npassed all 1 test case(s)\n",
            *("failed", "ended early, after a: a radio could not be reset"),
        ),
    ],
)
def test_the_end_of_hwsims_runner(code: int, output: str, verdict: str, reason: str) -> None:
    assert Hwsim().verdict(code, output) == (verdict, reason)


def test_hwsims_parts_are_its_functions() -> None:
    assert Hwsim().parts(SAE.format("", FAILING)) == [("sae", "passed", ""), ("sae_pk", "failed", "No reply")]


def test_another_directory_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no tdc\.py with tests in tc-tests"):
        TcTesting().tests(tmp_path, OPTIONS)
    with pytest.raises(InputError, match=r"has no lib/generic\.sh and no tests"):
        Iproute2().tests(tmp_path, OPTIONS)
    with pytest.raises(InputError, match=r"pytest\.ini: cannot be read: .*; FRR's has one"):
        Frr().tests(tmp_path, OPTIONS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    with pytest.raises(InputError, match=r"has no folders with test_\*\.py"):
        Frr().tests(tmp_path, OPTIONS)
    with pytest.raises(InputError, match=r"has no tests/hwsim/test_\*\.py"):
        Hwsim().tests(tmp_path, OPTIONS)
    lay(tmp_path, "tests/hwsim/test_sae.py", *hwsim.PROGRAMS[1:])
    with pytest.raises(InputError, match="has no wpa_supplicant/wpa_supplicant: compile it there"):
        Hwsim().tests(tmp_path, OPTIONS)
