"""What phases print where a stranger is root: only declared variables, of a declared form, go to other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from fake_lab import Answering, fake_lab
from minigts import overlays
from minigts.errors import HostFailed, InputError
from minigts.lab import Lab
from minigts.overlays import catalogue, containers, phases
from minigts.topology.read.load import parse

PLAN = parse("name: two\nchain: {hosts: [ams, bra], link: {rtt: 10ms}}\n", "two.yaml")
END = "ADDRESS=172.31.0.1\nMTU=1450\nENTER=7\n"
TOKEN = f"SWMTKN-1-{'0' * 50}-{'a' * 25}"
JOINED = {"swarm": f"TOKEN={TOKEN}\n", "wireguard": f"SECRET={'A' * 43}=\n"}
FOLDERS = sorted(path.parent for path in catalogue.scripts().glob("*/overlay.yaml"))


class Hosts(Answering):
    """They answer phases as `said` has it, by host and phase, and otherwise as they should."""

    overlay = ""
    said: ClassVar[dict[tuple[str, str], str]] = {}
    ran: ClassVar[list[tuple[str, Sequence[str]]]] = []

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        if "phase.sh" not in "".join(argv):
            return 0, ""
        self.ran.append((host, tuple(argv)))
        usual = {"start": END, "join": JOINED.get(self.overlay, "") if host == "ams" else ""}
        return 0, self.said.get((host, argv[-1]), usual.get(argv[-1], ""))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(Hosts, "said", {})
    monkeypatch.setattr(Hosts, "ran", [])
    return fake_lab(PLAN, tmp_path / "state", monkeypatch, Hosts)


HOSTILE = [
    (
        "vxlan",
        "join",
        "BASH_ENV=$(id >/root/pwned)\n",
        "ams: phase join has printed .*'BASH_ENV' is none of its",
    ),
    ("vxlan", "join", "PATH=/tmp/x\n", "'PATH' is none of its variables: it has none"),
    ("vxlan", "join", "ADDRESS=10.0.0.1\n", "'ADDRESS' is none of its variables"),
    ("swarm", "join", f"TOKEN={TOKEN}\nLD_PRELOAD=/x.so\n", "'LD_PRELOAD' is none of its variables: TOKEN"),
    ("swarm", "join", f'TOKEN={TOKEN}", "x": "\n', "TOKEN=… is not of the form SWMTKN"),
    ("wireguard", "join", "SECRET=$(id)\n", "SECRET=… is not of the form"),
    ("vxlan", "start", "ADDRESS=-f\nMTU=1450\n", "ams: phase start has printed .*ADDRESS='-f' is not of the form"),
    ("vxlan", "start", "ADDRESS=10.0.0.1 10.0.0.2\nMTU=1450\n", "is not of the form"),
    ("vxlan", "start", "ADDRESS=10.0.0.1\nMTU=1450\nENTER=1 --all\n", "ENTER='1 --all' is not of the form"),
    ("vxlan", "start", "ADDRESS=10.0.0.1\nMTU=1e9\n", "MTU='1e9' is not of the form"),
    ("vxlan", "start", "ADDRESS=10.0.0.1\nMTU=1450\nHOST_JSON=/x\n", "'HOST_JSON' is none of its variables"),
    ("vxlan", "start", "ADDRESS=\x1b[2J\nMTU=1450\n", r"ADDRESS='\\\\x1b\[2J' is not of the form"),
]


@pytest.mark.parametrize(("overlay", "phase", "said", "message"), HOSTILE)
def test_what_the_leader_may_not_print_ends_the_phase_by_its_name(
    overlay: str, phase: str, said: str, message: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hosts, "overlay", overlay)
    Hosts.said["ams", phase] = said
    with pytest.raises(HostFailed, match=message) as caught:
        overlays.join(lab, overlay, lambda _: None)
    assert str(caught.value).isprintable()
    assert [host for host, argv in Hosts.ran if argv[-1] == phase] == ["ams"]
    assert not any(word in " ".join(argv) for _, argv in Hosts.ran for word in ("BASH_ENV", "LD_PRELOAD", "PATH="))


@pytest.mark.parametrize("overlay", ["vxlan", *JOINED])
def test_what_a_phase_may_print_goes_to_the_other_hosts(
    overlay: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hosts, "overlay", overlay)
    Hosts.said["ams", "install"] = "PATH=/tmp/x\n"  # of a phase that prints nothing for others nothing is taken
    ends = overlays.join(lab, overlay, lambda _: None)
    assert {end.address for end in ends.values()} == {"172.31.0.1"}
    (joined,) = (argv for host, argv in Hosts.ran if host == "bra" and argv[-1] == "join")
    assert list(joined[1:-2]) == JOINED.get(overlay, "").split()


def test_an_end_in_the_labs_record_is_of_the_same_form(lab: Lab) -> None:
    overlays.join(lab, "vxlan", lambda _: None)
    file = lab.rundir / phases.FILE
    damaged = json.loads(file.read_text())
    damaged["ends"]["ams"]["BASH_ENV"] = "$(id)"
    file.write_text(json.dumps(damaged))
    with pytest.raises(Exception, match=r"overlay\.json"):
        phases.joined_overlay(lab)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_variable_that_a_folders_scripts_print_is_declared(folder: Path) -> None:
    text = "".join(path.read_text() for path in folder.rglob("*.sh") if "build" not in path.parts)
    printed = set(re.findall(r"""\becho ["']?([A-Z][A-Z0-9_]*)=""", text))
    declared = {
        key for one in catalogue.read_folder(folder) for phase in catalogue.PRINTED for key in one.phase_outputs(phase)
    }
    assert printed <= declared | containers.HAS.keys()


@pytest.mark.parametrize(
    ("prints", "message"),
    [
        ("{join: {BASH_ENV: x}}", "3: prints.join.BASH_ENV: a phase may not print"),
        ("{join: {path: x}}", "a phase may not print"),
        ("{verify: {ENCAPSULATION: x}}", "a phase may not print"),
        ("{join: {TOKEN: '['}}", "is no pattern: unterminated character set"),
        ("{jion: {TOKEN: x}}", "did you mean"),
    ],
)
def test_a_declaration_of_what_is_printed_is_checked(prints: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    text = f"description: x\ndata_path: {{encapsulation: none}}\nprints: {prints}\n"
    (tmp_path / "own" / "overlay.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        catalogue.read_folder(tmp_path / "own")
