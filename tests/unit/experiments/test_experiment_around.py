"""What a run does around a sample: settings, sessions, counters, links, data paths that change, several experiments."""

from __future__ import annotations

import csv
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_lab import Replay, begin, chain, endpoints, recorded, recorder_of, require_known

from minigts.errors import CommandFailed, HostFailed, InputError
from minigts.experiment_language.model import MEASUREMENTS, Experiment, Links
from minigts.experiments import outputs as sample_outputs
from minigts.experiments import run
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix
from minigts.experiments.run import RunOutcome, run_together
from minigts.experiments.sample_steps import WATCHED_EVERY_S, WATCHING, Surroundings, procedure
from minigts.lab.queues import End, Queue
from minigts.overlays import Endpoint
from minigts.providers.base import CommandResult
from minigts.report import render
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Laid, RawSample, Side
from minigts.topology.outage import SILENT, Outage
from minigts.topology.schedule import Moment

PROJECT = Path(__file__).parents[3]
PLAN = chain(4)
HEAD = """\
name: {name}
title: A small one
topology: topologies/chain6.yaml
overlays: [none, swarm]
seed: 7
repetitions: 1
measurements:
"""
COUNTERS = """\
@ 10.00
stat cpu 100 0 0 900 0 0 0 0 0 0
@ 11.00
stat cpu 105 0 0 995 0 0 0 0 0 0
measured
@ 12.00
stat cpu 185 0 0 1015 0 0 0 0 0 0
measured
"""
FEATURES = (
    "device eth0\ntcp-segmentation-offload: off\ngeneric-segmentation-offload: off\ntx-udp-segmentation: off [fixed]\n"
)


def experiment(measurements: str, name: str = "small", overlays: str = "[none]") -> Experiment:
    return parse(HEAD.format(name=name).replace("[none, swarm]", overlays) + measurements, "small.yaml")


class Stage:
    """A lab that notes what is done to it; `seen` are what its data path turns out to be, one look after the other."""

    recording = staticmethod(recorder_of())

    def __init__(self, seen: Sequence[str] = (), refuse: str = "") -> None:
        self.calls: list[str] = []
        self._seen, self._refuse = list(seen), refuse

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        self.calls.append(f"join {overlay}")
        if overlay == self._refuse:
            raise CommandFailed("ams", ["join.sh"], 1, "", "no such module")
        return endpoints(PLAN, overlay)

    def verify(self, overlay: str) -> str:
        return self._seen.pop(0) if self._seen else "vxlan"

    def overlay_record(self, overlay: str) -> Laid:
        return Laid()

    def leave(self, overlay: str) -> None:
        self.calls.append(f"leave {overlay}")

    def second(self, host: str) -> Endpoint:
        raise InputError(f"there is no second container on {host}")

    def set_links(self, links: Links) -> None:
        self.calls.append("links " + json.dumps(links.model_dump(exclude_defaults=True)))

    def links_kept(self) -> AbstractContextManager[None]:
        return nullcontext()

    def play(self, moments: Sequence[Moment]) -> Iterable[tuple[float, Mapping[str, float]]]:
        return ()

    def queues(
        self, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
    ) -> Iterable[tuple[float, Mapping[End, Queue]]]:
        return ()

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None:
        self.calls.append(f"link {name} {'up' if up else 'down'}")

    def processor_seconds(self) -> Mapping[str, float]:
        return {}


class Hosts(Replay):
    """Answers to what is run around the tools, too; the tools' own output comes from recordings."""

    def __init__(self) -> None:
        super().__init__()
        self.around: list[tuple[str, tuple[str, ...]]] = []

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **_ignored: object
    ) -> CommandResult:
        require_known(host)
        words = " ".join(argv)
        answers = {
            "ethtool -K": FEATURES,
            "/proc/stat": COUNTERS,
            "iperf3 -s": "",
            "ss -H": "",
            "rm -f": "",
            "mkfifo": "",
            "minigts-watching.measured": "",
            "stress-ng": STRESS,
            "sleep 31": "",
        }
        for mark, answer in answers.items():
            if mark in words:
                self.around.append((host, tuple(argv)))
                return CommandResult(host, tuple(argv), 0, answer, "", 0.1)
        return super().run(host, argv, timeout_s=timeout_s, check=check)


STRESS = recorded("stress-ng.txt")


def go(tmp_path: Path, stage: Stage, *experiments: Experiment) -> tuple[list[Path], Hosts, tuple[RunOutcome, ...]]:
    directories, hosts = [tmp_path / each.name for each in experiments], Hosts()
    for directory, each in zip(directories, experiments, strict=True):
        begin(directory, each, PLAN)
    return directories, hosts, run_together(directories, hosts, stage, lambda _: None)  # type: ignore[arg-type]


TCP = "  - {name: tcp, tool: iperf3-tcp, paths: [{from: ams, to: bra}], options: {duration: 5s}}\n"


def rows(directory: Path) -> list[dict[str, str]]:
    with (directory / "samples.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_each_value_of_what_varies_is_a_sample_with_its_own_column(tmp_path: Path) -> None:
    udp = (
        "  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: bra}], options: {rate: 5mbit},\n"
        "     vary: {datagram: [1000B, 2packets], offload: ['on', 'off']}}\n"
    )
    [directory], hosts, [outcome] = go(tmp_path, Stage(), experiment(udp))
    assert (outcome.done, outcome.failed) == (4, ())
    sizes = {argv[argv.index("-l") + 1] for _, argv in hosts.measured}
    assert sizes == {"1000", str(2 * 1480 - 8)}
    found = {(row["datagram"], row["offload"]) for row in rows(directory)}
    assert found == {(size, state) for size in ("1000B", "2packets") for state in ("on", "off")}
    assert "source eth0: tcp-segmentation-offload off" in rows(directory)[0]["note"]
    assert "tx-udp-segmentation off (fixed)" in (directory / "samples.csv").read_text()


FAKE_IP = """#!/bin/sh
echo "10.0.0.2 dev eth1 src 10.0.0.1"
"""
FAKE_ETHTOOL = """#!/bin/sh
case $1 in
-k) cat features ;;
-K)
  case $3 in
  tx) name=tx-checksumming ;;
  tso) name=tcp-segmentation-offload ;;
  gso) name=generic-segmentation-offload ;;
  *) exit 1 ;;
  esac
  sed -i "s/^\\( *$name:\\) .*/\\1 $4/" features
  ;;
esac
"""
BY_ITSELF = (
    "Features for eth1:\n"
    "rx-checksumming: on\n"
    "tx-checksumming: {tx}\n"
    "\ttx-checksum-ip-generic: {tx}\n"
    "tcp-segmentation-offload: {tso}\n"
    "generic-segmentation-offload: {gso}\n"
    "tx-udp-segmentation: off [fixed]\n"
)


@pytest.mark.parametrize("wanted", ["on", "off"])
@pytest.mark.parametrize(("tx", "tso", "gso"), [("off", "off", "off"), ("on", "on", "on"), ("on", "off", "on")])
def test_offloads_are_what_they_were_when_the_sample_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, tx: str, tso: str, gso: str
) -> None:
    tcp = TCP.replace("duration: 5s", f"duration: 1s, offload: '{wanted}'")
    _, hosts, _ = go(tmp_path / "results", Stage(), experiment(tcp))
    assert [host for host, _ in hosts.around] == ["ams", "bra", "ams", "bra"]
    own = [argv for host, argv in hosts.around if host == "ams"]
    for name, text in (("ip", FAKE_IP), ("ethtool", FAKE_ETHTOOL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = BY_ITSELF.format(tx=tx, tso=tso, gso=gso)
    (tmp_path / "features").write_text(before)
    seen = []
    for argv in own:
        assert argv[-1].startswith("/run/")
        kept = str(tmp_path / "kept")
        subprocess.run([*argv[argv.index("sh") : -1], kept], cwd=tmp_path, check=False, capture_output=True, timeout=60)
        seen.append((tmp_path / "features").read_text())
    assert f"tcp-segmentation-offload: {wanted}" in seen[0]
    assert seen[1] == before
    assert not (tmp_path / "kept").exists()


def test_sessions_run_from_as_many_hosts_and_count_together(tmp_path: Path) -> None:
    udp = (
        "  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: bra}], options: {rate: 5mbit},\n"
        "     vary: {sessions: [1, 3]}}\n"
    )
    [directory], hosts, _ = go(tmp_path, Stage(), experiment(udp))
    single, triple = sorted(rows(directory), key=lambda row: row["sessions"])
    assert float(triple["value"]) == pytest.approx(3 * float(single["value"]))
    assert triple["jitter_ms"] == single["jitter_ms"]
    assert {host for host, _ in hosts.measured} == {"ams", "lon", "mil"}
    ports = [argv[argv.index("-p") + 1] for host, argv in hosts.measured if host != "ams"]
    assert sorted(ports) == ["5302", "5303"]


IN_CONTAINER = re.compile(r"local -a programs=\((.*?)\)", re.DOTALL)


def test_a_containers_shell_asks_for_no_program_that_the_container_has_not(tmp_path: Path) -> None:
    """Whether the server of the sample before has ended was once asked with the container's `ss`, which it has not."""
    held = IN_CONTAINER.search((PROJECT / "provision/image/customize.sh").read_text())
    assert held is not None
    for program in held[1].split():
        (tmp_path / Path(program).name).symlink_to("/bin/sh" if program == "/bin/sh" else "/bin/true")
    udp = "  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: bra}], options: {sessions: 2, offload: 'off'}}\n"
    sessions = experiment(udp, overlays="[swarm]")
    around = Surroundings(PLAN, endpoints(PLAN, "swarm"), Stage().second, 0.004)
    todo = procedure(sessions.measurement("udp").under(""), matrix(sessions, PLAN)[0], around)
    inside = [call for call in (*todo.before, *todo.after) if call.argv[:2] == ("in", "swarm")]
    assert "servers" in {call.name for call in inside}
    path = {"PATH": str(tmp_path)}
    ended = [subprocess.run(call.argv[2:], check=False, env=path, capture_output=True, timeout=60) for call in inside]
    assert b"not found" not in b"".join(each.stderr for each in ended)


def test_a_server_is_started_on_its_port_when_the_one_before_has_ended(tmp_path: Path) -> None:
    sessions = experiment("  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: bra}], options: {sessions: 1}}\n")
    plain = {host.name: Endpoint(host.name, host.address, 1500, ()) for host in PLAN.hosts}
    around = Surroundings(PLAN, plain, Stage().second, 0.004)
    todo = procedure(sessions.measurement("udp").under(""), matrix(sessions, PLAN)[0], around)
    assert [call.name for call in todo.before] == ["ports", "servers", "servers listen"]
    with socket.create_server(("127.0.0.1", 0)) as before:
        port = str(before.getsockname()[1])
        waits = subprocess.Popen([*todo.before[0].argv[:-1], port])
        subprocess.run([*todo.before[2].argv[:-1], port], check=True, timeout=60)
        with pytest.raises(subprocess.TimeoutExpired):
            waits.wait(timeout=0.3)
    assert waits.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("measurement", "limit_s"),
    [
        ("tool: iperf3-tcp, options: {duration: 5s}", 3 * 5.3805 + 15),
        ("tool: iperf3-tcp, options: {duration: 5s}, watch: [cpu]", 3 * 7.3805 + 15),
        ("tool: command, options: {run: x, find: x, unit: ms, label: x, duration: 1s, timeout: 1min}", 60 + 10),
    ],
    ids=["by its length", "with what is watched around", "after its own timeout"],
)
def test_a_client_has_three_times_its_time_and_15_s_until_it_is_given_up(measurement: str, limit_s: float) -> None:
    """TCP takes 0.25 s to start and six round trips of 21.75 ms beside its 5 s; counters are watched 1 s longer at each
    end. A program with a timeout of its own is not ended from outside before that."""
    asked = experiment(f"  - {{name: x, paths: [{{from: ams, to: bra}}], {measurement}}}\n")
    ends = endpoints(PLAN, "none")
    around = Surroundings(PLAN, ends, lambda host: ends[host], 0.004)
    todo = procedure(asked.measurement("x").under(""), matrix(asked, PLAN)[0], around)
    assert todo.client.limit_s == pytest.approx(limit_s)


def test_counters_of_both_hosts_are_sampled_beside(tmp_path: Path) -> None:
    [directory], _, _ = go(tmp_path, Stage(), experiment(TCP.replace("}}", "}, watch: [cpu]}")))
    row = rows(directory)[0]
    assert (row["cpu_source_percent"], row["cpu_target_inside_percent"]) == ("80", "80")


def test_processor_time_is_counted_for_each_byte_that_arrived() -> None:
    """Two hosts that took 0.6 and 0.4 s while 2,502,720 bytes arrived; the first one alone, as where it
    asks itself; two that a beginning was omitted for."""
    outputs = {"a": (1.0, 1.2, 1.6), "b": (5.0, 5.4, 5.4)}
    sides = [
        Side(name=name, host=host, stdout="".join(f"@ {at}\n{line.format(s, 100 * s)}\n" for at, s in enumerate(used)))
        for name, line in (("cpu", "stat cpu {1:.0f} 0 0 0 0 0 0 0 0 0"), ("cpu outside", "process {0}"))
        for host, used in outputs.items()
    ]
    raw = RawSample(
        sample="x", host="a", argv=(), code=0, stdout=recorded("iperf3.18-udp.json"), stderr="", started="", seconds=1,
        attempt=1, around=tuple(sides),
    )  # fmt: skip
    udp = MEASUREMENTS["iperf3-udp"].model_validate({"name": "x", "tool": "iperf3-udp", "paths": ["first-to-each"]})
    assert sample_outputs.read(udp, raw).extra["cpu_ns_per_byte"] == pytest.approx(1.0e9 / 2502720)
    within = raw.model_copy(update={"around": tuple(side for side in sides if side.host == "a")})
    assert sample_outputs.read(udp, within).extra["cpu_ns_per_byte"] == pytest.approx(0.6e9 / 2502720)
    omitting = raw.model_copy(update={"stdout": recorded("iperf3.18-udp-omit.json")})
    found = sample_outputs.read(udp, omitting).extra
    assert "cpu_ns_per_byte" not in found
    assert found["cpu_source_percent"] == pytest.approx(30)


def asked(overlay: str, ends: Mapping[str, Endpoint]) -> str:
    """The address that a container of `overlay` is asked at when it is asked at its own."""
    own = TCP.replace(
        "paths: [{from: ams, to: bra}]", "paths: [{from: ams, to: bra}], ends: {from: container, to: own}"
    )
    one = experiment(own, overlays=f"[{overlay}]")
    todo = procedure(
        one.measurement("tcp").under(""), matrix(one, PLAN)[0], Surroundings(PLAN, ends, Stage().second, None)
    )
    return todo.client.argv[todo.client.argv.index("-c") + 1]


def test_a_container_is_asked_at_its_own_address() -> None:
    ends = endpoints(PLAN, "bridge")
    assert asked("bridge", ends) == ends["bra"].address
    assert asked("bridge", {**ends, "bra": replace(ends["bra"], own="172.29.1.2")}) == "172.29.1.2"
    with pytest.raises(InputError, match="overlay bridge has no container with an address of its own"):
        asked("bridge", {**ends, "bra": replace(ends["bra"], prefix=())})


def test_counters_that_say_when_the_client_ran_are_a_series(tmp_path: Path) -> None:
    [directory], hosts, _ = go(tmp_path, Stage(), experiment(TCP.replace("}}", "}, watch: [cpu]}")))
    with (directory / "series.csv").open(newline="") as stream:
        series = [(row["column"], row["at_s"], row["value"]) for row in csv.DictReader(stream)]
    assert series[:2] == [("cpu_source_inside_percent", "-0.5", "5"), ("cpu_source_inside_percent", "0.5", "80")]
    assert {column for column, _, _ in series} == {
        f"cpu_{end}{where}_percent" for end in ("source", "target") for where in ("", "_inside")
    }
    assert rows(directory)[0]["cpu_percent"] == "80"
    marks = [argv[2] for _, argv in hosts.around if "measured" in argv[2] and "sleep" in argv[2]]
    assert marks[:2] == ["sleep 1; : >/run/minigts-watching.measured"] * 2
    assert marks[2:] == ["rm -f /run/minigts-watching.measured; sleep 1"] * 2


def test_without_counters_there_is_no_series(tmp_path: Path) -> None:
    [directory], _, _ = go(tmp_path, Stage(), experiment(TCP))
    assert not (directory / "series.csv").exists()


def test_the_watcher_waits_between_its_looks_and_ends_with_its_file(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    tcp = experiment(TCP.replace("}}", "}, watch: [cpu]}"))
    around = Surroundings(PLAN, endpoints(PLAN, "none"), Stage().second, 0.004)
    todo = procedure(tcp.measurement("tcp").under(""), matrix(tcp, PLAN)[0], around)
    for call in (todo.before[0], todo.beside[0]):
        words = [word.replace(WATCHING, str(clock)) for word in call.argv]
        watcher = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watcher.stdout is not None
        begun_s, said = time.monotonic(), ""
        if call.name == "cpu":
            while said.count("@ ") < 3:
                said += watcher.stdout.readline()
            clock.unlink()
        assert watcher.stderr is not None
        said, complaints, lasted_s = (
            said + watcher.stdout.read(),
            watcher.stderr.read(),
            time.monotonic() - begun_s,
        )
        assert watcher.wait(timeout=60) == 0
    assert complaints == ""
    assert 3 <= said.count("@ ") <= 2 + lasted_s / WATCHED_EVERY_S
    assert said.count("stat cpu ") == said.count("@ ")


def test_stress_takes_a_share_of_the_time_on_both_hosts(tmp_path: Path) -> None:
    [directory], hosts, _ = go(tmp_path, Stage(), experiment(TCP.replace("}}", "}, vary: {stress: [0%, 40%]}}")))
    stressed = [(host, argv[2]) for host, argv in hosts.around]
    assert sorted(host for host, _ in stressed) == ["ams", "bra"]
    assert all("--timeout 2s" in script for _, script in stressed)
    assert {row["stress_s"] for row in rows(directory)} == {"", "1.02"}


def test_links_are_set_for_a_measurement_and_put_back(tmp_path: Path) -> None:
    stage = Stage()
    go(tmp_path, stage, experiment(TCP.replace("}}", "}, links: {queue: 30kB, gro: 'on'}}")))
    assert stage.calls == ["join none", 'links {"gro": "on", "queue": "30kB"}', "links {}", "leave none"]


def test_hosts_rest_before_each_sample_and_that_counts_in_what_a_run_takes(tmp_path: Path) -> None:
    rested, plain = experiment(TCP.replace("}}", "}, rest: 31s}")), experiment(TCP)
    _, hosts, [outcome] = go(tmp_path, Stage(), rested)
    assert [argv for _, argv in hosts.around if argv[0] == "sleep"] == [("sleep", "31")] * outcome.done
    samples = matrix(rested, PLAN)
    assert run.total_s(rested, PLAN, samples) == run.total_s(plain, PLAN, samples) + 31 * len(samples)


def test_what_was_measured_over_a_data_path_that_changed_is_taken_again(tmp_path: Path) -> None:
    stage = Stage(seen=["vxlan", "udp"])
    [directory], hosts, [outcome] = go(tmp_path, stage, experiment(TCP))
    assert stage.calls == ["join none", "leave none", "join none", "leave none"]
    assert (len(hosts.measured), outcome.done, outcome.failed) == (2, 1, ())
    sample = matrix(experiment(TCP), PLAN)[0].id
    assert [raw.error for raw in store.earlier(directory, sample)] == ["the data path changed meanwhile: udp"]


def test_a_sample_that_fails_is_reason_to_look_at_the_data_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing came through any more, so nothing was taken that a proof could be asked for."""
    monkeypatch.setattr(run, "AFTER_A_FAILURE_S", 0.0)
    tcp = TCP.replace("}}", "}, ends: {from: second, to: container}}")
    stage = Stage(seen=["vxlan", "does not reach its peer"])
    go(tmp_path, stage, experiment(tcp))
    assert stage.calls == ["join none", "leave none", "join none", "leave none"]


def test_an_overlay_that_cannot_be_joined_is_skipped_with_its_reason(tmp_path: Path) -> None:
    stage = Stage(refuse="swarm")
    [directory], _, [outcome] = go(tmp_path, stage, experiment(TCP, overlays="[swarm, none]"))
    assert (outcome.done, outcome.failed) == (1, ())
    assert "no such module" in outcome.skipped["swarm"]
    assert manifests.read(directory).skipped == outcome.skipped
    assert stage.calls == ["join swarm", "leave swarm", "join none", "leave none"]
    assert "swarm was skipped: " in render(directory).read_text()


def test_what_cannot_be_measured_is_a_failed_sample_that_says_why(tmp_path: Path) -> None:
    tcp = TCP.replace("}}", "}, ends: {from: second, to: container}}")
    [directory], hosts, [outcome] = go(tmp_path, Stage(), experiment(tcp))
    assert (len(hosts.measured), len(outcome.failed)) == (0, 1)
    assert "no second container on ams" in (directory / "samples.csv").read_text()


def test_experiments_of_one_lab_share_each_overlay(tmp_path: Path) -> None:
    stage = Stage()
    first, second = experiment(TCP, "first", "[none, swarm]"), experiment(TCP, "second", "[swarm, none]")
    directories, hosts, outcomes = go(tmp_path, stage, first, second)
    assert stage.calls == ["join none", "leave none", "join swarm", "leave swarm"]
    assert [outcome.done for outcome in outcomes] == [2, 2]
    assert len(hosts.measured) == 4
    assert all(manifests.read(directory).ended for directory in directories)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("vary: {datagrams: [1000B]}", "no option 'datagrams'"),
        ("vary: {rate: [fast]}", "is not a rate"),
        ("vary: {rate: []}", "an empty list; at least one entry"),
        ("links: {queue: 30}", "lacks its unit: write a queue as in 100kB"),
        ("over: [none], ends: {from: outside}", "'outside' is unknown"),
    ],
)
def test_a_wrong_word_in_the_language_is_said_with_its_line(said: str, message: str) -> None:
    udp = f"  - {{name: udp, tool: iperf3-udp, paths: [{{from: ams, to: bra}}], {said}}}\n"
    with pytest.raises(InputError) as caught:
        experiment(udp)
    assert message in str(caught.value)
    assert "small.yaml:8" in str(caught.value)


ECHOES = (
    "  - {name: echoes, tool: netperf-rr, paths: [{from: ams, to: mil}], options: {duration: 1s},\n"
    "     cut: {link: lon-bra, at: 100ms, for: 200ms}}\n"
)


class Sleeping(Hosts):
    """Its commands that wait do so, and the client takes as long as it says."""

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **ignored: object
    ) -> CommandResult:
        if argv[0] == "sleep":
            time.sleep(float(argv[1]))
            return CommandResult(host, tuple(argv), 0, "", "", float(argv[1]))
        return super().run(host, argv, timeout_s=timeout_s, check=check, **ignored)


def test_a_link_is_cut_while_a_sample_is_taken_and_whole_again_afterwards(tmp_path: Path) -> None:
    directory, stage, hosts = tmp_path / "small", Stage(), Sleeping()
    begin(directory, experiment(ECHOES), PLAN)
    [outcome] = run_together([directory], hosts, stage, lambda _: None)  # type: ignore[arg-type]
    assert (outcome.done, outcome.failed) == (1, ())
    assert stage.calls == ["join none", "link lon-bra down", "link lon-bra up", "leave none"]
    raw = store.good(directory, "none.echoes.ams-mil.r1")
    assert raw is not None
    [cut] = [side for side in raw.around if side.name == "cut"]
    assert re.fullmatch(r"lon-bra was down from \d\S+ to \d\S+\n", cut.stdout)


def test_a_link_is_whole_again_when_the_wait_is_broken_off(tmp_path: Path) -> None:
    class Broken(Sleeping):
        def run(self, host: str, argv: Sequence[str], *, timeout_s: float, **ignored: object) -> CommandResult:  # type: ignore[override]
            if argv == ("sleep", "0.2"):
                raise HostFailed("ams does not answer")
            return super().run(host, argv, timeout_s=timeout_s, **ignored)  # type: ignore[arg-type]

    stage = Stage()
    begin(tmp_path / "small", experiment(ECHOES), PLAN)
    with pytest.raises(HostFailed):
        run_together([tmp_path / "small"], Broken(), stage, lambda _: None)  # type: ignore[arg-type]
    assert [call for call in stage.calls if call.startswith("link ")] == ["link lon-bra down", "link lon-bra up"]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ("link: ams-mil, at: 1s, for: 1s", r"echoes: cut.link: no link 'ams-mil'; links are ams-bra, bra-lon, lon-mil"),
        (
            "link: ams-bra, at: 1s, for: 1s",
            r"echoes: cut: .* restored after 2 s, when a sample of 1\.\d s has",
        ),
    ],
)
def test_a_cut_that_cannot_be_is_one_error(cut: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        matrix(experiment(ECHOES.replace("link: lon-bra, at: 100ms, for: 200ms", cut)), PLAN)


CROSSED = (
    "  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: mil}], options: {rate: 5mbit, duration: 3s},\n"
    "     cross: [{from: bra, to: lon}, {from: mil, to: lon}]}\n"
)


def test_tcp_goes_across_while_a_sample_is_taken(tmp_path: Path) -> None:
    [directory], hosts, [outcome] = go(tmp_path, Stage(), experiment(CROSSED))
    assert (outcome.done, outcome.failed) == (1, ())
    across = [(host, argv) for host, argv in hosts.measured if host != "ams"]
    assert sorted((host, argv[argv.index("-p") + 1]) for host, argv in across) == [("bra", "5401"), ("mil", "5402")]
    assert {argv[argv.index("-c") + 1] for _, argv in across} == {PLAN.host("lon").address}
    assert all(float(argv[argv.index("-t") + 1]) > 3 for _, argv in across)
    one = json.loads(recorded("iperf3.18-tcp.json"))["end"]["sum_received"]["bits_per_second"] / 1e6
    assert float(rows(directory)[0]["cross_mbit"]) == pytest.approx(2 * one)


def test_a_sample_whose_cross_traffic_was_not_there_has_failed(tmp_path: Path) -> None:
    class Refusing(Hosts):
        def run(self, host: str, argv: Sequence[str], **how: object) -> CommandResult:  # type: ignore[override]
            if host == "mil" and "iperf3" in argv:
                return CommandResult(host, tuple(argv), 1, recorded("iperf3.18-refused.json"), "", 0.1)
            return super().run(host, argv, **how)  # type: ignore[arg-type]

    directory, hosts = tmp_path / "small", Refusing()
    begin(directory, experiment(CROSSED), PLAN)
    [outcome] = run_together([directory], hosts, Stage(), lambda _: None)  # type: ignore[arg-type]
    assert outcome.failed == ("none.udp.ams-mil.r1",)


@pytest.mark.parametrize(
    ("across", "message"),
    [
        ("{from: bra, to: xyz}", r"udp: cross\[0\]: no host 'xyz'; hosts are ams, bra, lon"),
        ("{from: bra, to: bra}", r"udp: cross\[0\]: bra to itself crosses no link"),
    ],
)
def test_cross_traffic_that_cannot_be_is_one_error(across: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        matrix(experiment(CROSSED.replace("{from: bra, to: lon}, {from: mil, to: lon}", across)), PLAN)
    with pytest.raises(InputError, match="in routing mode neighbours they have none"):
        matrix(experiment(CROSSED), chain(4, routing="neighbours"))
