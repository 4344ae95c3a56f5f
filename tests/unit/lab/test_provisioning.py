"""What a topology brings into hosts: where it is taken from, and what is done with it, on hosts that note it down."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from threading import Event

import pytest

from fake_provider import FakeProvider
from live.program import until
from minigts import lab as labs
from minigts.errors import CommandTimeout, HostFailed, InputError
from minigts.lab import Lab, provisioning
from minigts.providers import registry
from minigts.providers.base import CommandResult
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load
from minigts.topology.software import Software
from minigts.topology.time import Time


def plan_of(directory: Path, text: str) -> Plan:
    (directory / "lab.yaml").write_text(f"name: x\n{text}\n")
    return load(directory / "lab.yaml")


def software_of(directory: Path, text: str, host: str = "a") -> Software | None:
    return plan_of(directory, text).host(host).software


def test_each_key_comes_from_the_nearest_settings_that_have_it(tmp_path: Path) -> None:
    text = """
defaults: {host: {packages: [curl], run: [far], environment: {A: "1", B: "2"}}}
chain: {hosts: [a, b], host: {run: [near]}}
hosts: {c: {environment: {A: "3"}, run: []}}
links: [{ends: [b, c]}]
"""
    chained, written = software_of(tmp_path, text), software_of(tmp_path, text, "c")
    assert chained is not None and written is not None
    assert [each.text for each in chained.run] == ["near"]
    assert str(chained.run[0].place) == f"{tmp_path}/lab.yaml:4: chain.host.run[0]"
    assert str(chained.packages[0].place) == f"{tmp_path}/lab.yaml:3: defaults.host.packages[0]"
    assert written.assignments == ("A=3",)
    assert written.run == ()


def test_a_host_without_any_has_none_and_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    plan = plan_of(tmp_path, "hosts: {a: {files: [{source: f, target: /f}], run: [x]}, b: }\nlinks: [{ends: [a, b]}]")
    assert plan.host("b").software is None
    assert Plan.model_validate_json(plan_json(plan)) == plan
    assert hash(plan.hosts)


def test_where_it_is_written_makes_no_other_plan_and_what_a_file_holds_does(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    text = "pair: {hosts: [a, b], host: {run: [one], files: [{source: f, target: /srv/}]}}"
    first, moved = plan_of(tmp_path, text), plan_of(tmp_path, f"# a line more\n{text}")
    (tmp_path / "f").write_text("y")
    assert first == moved
    assert first != plan_of(tmp_path, text)


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place / "d" / "new").touch(),
        lambda place: (place / "d" / "file").chmod(0o700),
        lambda place: (place / "d" / "file").write_text("y"),
        lambda place: (place / "d" / "file").rename(place / "d" / "other"),
        lambda place: [(place / "d" / "link").unlink(), (place / "d" / "link").symlink_to("else")],
    ],
    ids=["a file more", "a mode", "a content", "a name", "a link"],
)
def test_a_directory_that_differs_in_anything_is_another(tmp_path: Path, change: Callable[[Path], object]) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_text("x")
    (tmp_path / "d" / "link").symlink_to("/nowhere")
    text = "pair: {host: {files: [{source: d, target: /srv/}]}}"
    before = software_of(tmp_path, text, "h1")
    assert before is not None and before.files[0].target == "/srv/d"
    assert software_of(tmp_path, text, "h1") == before
    change(tmp_path)
    assert software_of(tmp_path, text, "h1") != before


def pipe(place: Path) -> None:
    os.mkfifo(place / "f")


def large(place: Path) -> None:
    with (place / "f").open("wb") as file:
        file.truncate((100 << 20) + 1)


def leading_out(place: Path) -> None:
    (place.parent / "secret").write_text("x")
    (place / "f").symlink_to(place.parent / "secret")


def many(place: Path) -> None:
    (place / "f").mkdir()
    for number in range(10_001):
        (place / "f" / str(number)).touch()


def ring(place: Path) -> None:
    (place / "f").symlink_to("f")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (pipe, "is neither a file nor a directory"),
        (large, "has more than the 100 MB"),
        (leading_out, "leads out of the topology's directory"),
        (many, "holds more than 10000 files"),
        (ring, "is not there"),
    ],
)
def test_what_cannot_be_taken_is_a_problem_with_its_line(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    place = tmp_path / "here"
    place.mkdir()
    make(place)
    with pytest.raises(InputError, match=rf"lab.yaml:2: defaults.host.files\[0\].source: 'f' {reason}"):
        plan_of(place, "defaults: {host: {files: [{source: f, target: /f}]}}\npair: {}")


class Host(FakeProvider):
    """Whatever is run on it is noted down, and answered by `answers`."""

    ran: list[tuple[str, ...]]
    answers: dict[str, CommandResult | Exception]
    copied: list[tuple[str, str]]

    def __init__(self, rundir: Path) -> None:
        super().__init__(rundir)
        self.ran, self.answers, self.copied = [], {}, []

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        self.ran.append(tuple(argv))
        answer = self.answers.get(argv[-1], CommandResult(host, tuple(argv), 0, f"{argv[-1]} has been said\n", "", 0.0))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        self.copied.append((f"{host}:{target}", source.name))


@pytest.fixture
def lab_of(tmp_path: Path) -> Callable[[str], tuple[Lab, Host]]:
    """A lab that is up, and its hosts."""

    def make(text: str) -> tuple[Lab, Host]:
        rundir = tmp_path / "x"
        rundir.mkdir()
        lab, host = Lab(rundir), Host(rundir)
        vars(lab)["plan"], vars(lab)["provider"], vars(lab)["time"] = plan_of(tmp_path, text), host, "real"
        return lab, host

    return make


LabOf = Callable[[str], tuple[Lab, Host]]


def test_files_come_before_commands_and_output_is_kept(tmp_path: Path, lab_of: LabOf) -> None:
    (tmp_path / "f").write_text("x")
    lab, hosts = lab_of(
        'hosts: {a: {files: [{source: f, target: /srv/, mode: 755}], run: [one], environment: {A: "b c"}}, b: }\n'
        "links: [{ends: [a, b]}]"
    )
    said: list[str] = []
    provisioning.bring(lab, said.append)
    assert hosts.copied == [("a:/srv/f", "f")]
    assert hosts.ran[0] == ("chmod", "755", "/srv/f")
    words = ("/var/log/run-1.log", f"/run/minigts-{lab.name}-a.runs", "env", "A=b c", "sh", "-ec", "one")
    assert hosts.ran[1] == ("sh", "-euc", provisioning.RUN_LOGGED, "sh", *words)
    kept = (lab.rundir / "run" / "a-1.log").read_text()
    assert kept == f"# {tmp_path}/lab.yaml:2: hosts.a.run[0]\n# one\none has been said\n"
    assert said == ["copying files to a", "running the commands of a"]


@pytest.mark.parametrize(("time", "is_told"), [("virtual", False), ("real", True)])
def test_in_virtual_time_hosts_are_not_told_the_labs_name(
    tmp_path: Path, lab_of: LabOf, time: Time, is_told: bool
) -> None:
    """It has the id of the process that runs an experiment, so each run's hosts would be told other words. In real time
    hosts may share a file system with another lab's."""
    lab, hosts = lab_of("hosts: {a: {run: [one]}, b: }\nlinks: [{ends: [a, b], delay: 1ms}]")
    vars(lab)["time"] = time

    provisioning.bring(lab, lambda _: None)

    assert any("run-1.log" in word for argv in hosts.ran for word in argv)
    assert any(f"minigts-{lab.name}-" in word for argv in hosts.ran for word in argv) is is_told


def test_a_command_that_fails_is_named_with_its_line_and_its_last_words(tmp_path: Path, lab_of: LabOf) -> None:
    lab, hosts = lab_of("hosts: {a: {run: [one, two, three]}, b: }\nlinks: [{ends: [a, b]}]")
    hosts.answers["two"] = CommandResult("a", (), 3, "".join(f"line {n}\x1b\n" for n in range(20)), "", 0.0)
    with pytest.raises(HostFailed) as caught:
        provisioning.bring(lab, lambda _: None)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path}/lab.yaml:2: hosts.a.run[1]: on host a `two` ended with code 3"
    assert (len(lines), lines[-1]) == (13, "    line 19\\x1b")
    assert [argv[-1] for argv in hosts.ran] == ["one", "two"]


def test_the_first_that_fails_ends_the_commands_of_other_hosts(lab_of: LabOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits for what another host will never have; it is ended, and only the other is named."""
    lab, hosts = lab_of("hosts: {a: {run: [wait, never]}, b: {run: [fail]}}\nlinks: [{ends: [a, b]}]")
    waits, ended, run = Event(), Event(), hosts.run

    def answer(host: str, argv: Sequence[str], **settings: object) -> CommandResult:
        if argv[-1] == "wait":
            waits.set()
            return CommandResult(host, (), 143 if ended.wait(300) else 0, "", "", 0.0)
        if argv[-1] == "fail":
            assert waits.wait(300)
            return CommandResult(host, (), 1, "", "", 0.0)
        if host == "a" and provisioning.END in argv:
            ended.set()
        return run(host, argv, timeout_s=1)

    monkeypatch.setattr(hosts, "run", answer)
    with pytest.raises(HostFailed, match="on host b `fail` ended with code 1"):
        provisioning.bring(lab, lambda _: None)
    assert "never" not in [argv[-1] for argv in hosts.ran]


def test_what_a_command_has_said_is_told_when_another_host_ends_it(tmp_path: Path) -> None:
    """By the shell itself, as on a host."""
    log, running = str(tmp_path / "log"), str(tmp_path / "runs")
    command = "echo begun; until false; do sleep 0.1; done"
    argv = ["sh", "-euc", provisioning.RUN_LOGGED, "sh", log, running, "sh", "-ec", command]
    with subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE, text=True) as process:
        assert until(lambda: (tmp_path / "log").exists() and "begun" in (tmp_path / "log").read_text(), 60)
        subprocess.run(["sh", "-euc", provisioning.END, "sh", running], check=True)
        said, _ = process.communicate(timeout=60)
    assert (said.splitlines()[0], process.returncode) == ("begun", 143)


@pytest.mark.parametrize("written", ["1", "-1", "", "0x2", "2 3"])
def test_nothing_is_ended_on_a_word_that_is_no_group(tmp_path: Path, written: str) -> None:
    (tmp_path / "runs").write_text(f"{written}\n")
    harmless = provisioning.END.replace("kill", "echo kill")
    done = subprocess.run(["sh", "-euc", harmless, "sh", str(tmp_path / "runs")], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_command_that_does_not_end_is_told_how_it_could(lab_of: LabOf) -> None:
    lab, hosts = lab_of("hosts: {a: {run: [one]}, b: }\nlinks: [{ends: [a, b]}]")
    hosts.answers["one"] = CommandTimeout("a", ["sh"], 300, "", "")
    with pytest.raises(
        HostFailed, match=r"`one` was ended after 300 s: write & after a command that should keep running"
    ):
        provisioning.bring(lab, lambda _: None)


@pytest.mark.parametrize("change", [lambda file: file.write_text("y"), lambda file: file.unlink()])
def test_a_file_that_has_changed_since_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    (tmp_path / "f").write_text("x")
    plan = plan_of(tmp_path, "pair: {host: {files: [{source: f, target: /srv/}]}}")
    change(tmp_path / "f")
    with pytest.raises(InputError, match=r"lab.yaml:2: pair.host.files\[0\].source: .*/f (is not|cannot be read)"):
        labs.up(plan, registry.names()[0], None, lambda _: None)
    assert not (tmp_path / "state").exists()


def test_who_works_on_a_host_has_its_environment(lab_of: LabOf) -> None:
    lab, _ = lab_of('hosts: {a: {environment: {PATH: "/opt"}}, b: }\nlinks: [{ends: [a, b]}]')
    assert provisioning.environment_command(lab, "a", ["ls", "-l"]) == ("env", "PATH=/opt", "ls", "-l")
    assert provisioning.environment_command(lab, "b", ["ls"]) == ("ls",)
    assert provisioning.shell_argv(lab, "a")[-1] == "PATH=/opt"
    assert provisioning.shell_argv(lab, "b") == ("bash", "-l")
