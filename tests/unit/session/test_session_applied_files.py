"""`up` of an edited file, without kernels: what is set under traffic, what a provider cannot do, and crashes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path, PurePosixPath

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts import overlays
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab, edit
from minigts.lab.record import NEXT_PLAN
from minigts.providers import registry
from minigts.topology.difference import difference, plan_with_settings
from minigts.topology.edit import add_host, add_link
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse
from minigts.topology.read.model import Defaults
from minigts.topology.renumber import renumber_plan

TEXT = """name: square
time: real
hosts: {ams: , bra: , lon: , mil: }
links:
  - {ends: [ams, bra], delay: 5ms}
  - {ends: [bra, lon], delay: 5ms}
  - {ends: [lon, mil], delay: 5ms}
  - {ends: [mil, ams], delay: 6ms}
"""
SLOWER = TEXT.replace("[ams, bra], delay: 5ms", "[ams, bra], delay: 50ms, rate: 10mbit")
runner = CliRunner()


def quiet(_text: str) -> None:
    pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    tc_hosts.use(monkeypatch, tmp_path)
    made = labs.up(parse(TEXT, "square.yaml"), tc_hosts.TcHosts.name, None, quiet)
    overlays.join(made, "none", quiet)
    return made


def up(text: str, *options: str, code: int = 0) -> str:
    Path("square.yaml").write_text(text)
    done = runner.invoke(app, ["up", "square.yaml", "--provider", tc_hosts.TcHosts.name, *options])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def everything(lab: Lab) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file()}


def delay_ms(lab: Lab, host: str, port: str) -> float:
    return float(tc_hosts.NETWORKS[lab.rundir].netem[host, port]["delay"]["delay"]) * 1000


def applied(lab: Lab, text: str) -> Lab:
    plan = parse(text, "square.yaml")
    made = difference(lab.plan, renumber_plan(plan, lab.plan))
    assert not made.refused
    return edit.declare(lab, plan_with_settings(made), quiet, altered=False)


def test_a_dry_run_says_what_would_be_started_or_changed_and_changes_nothing(lab: Lab) -> None:
    before, times = everything(lab), tc_hosts.NETWORKS[lab.rundir].set
    said = up(SLOWER, "--dry-run")
    assert "~ link ams-bra delay 5 ms -> 50 ms" in said
    assert "~ link ams-bra rate none -> 10 Mbit/s" in said
    assert "lab square is up as the file says" in up(TEXT, "--dry-run")
    assert "lab other is not up: 4 hosts and 4 links would be started" in up(TEXT, "--dry-run", "--lab", "other")
    assert (everything(lab), tc_hosts.NETWORKS[lab.rundir].set) == (before, times)


def test_links_are_set_and_the_record_and_plan_are_the_files(lab: Lab) -> None:
    now = applied(lab, SLOWER)
    assert now.plan == parse(SLOWER, "square.yaml") == lab.reopened.plan
    record = lab.read_record()
    assert (record.unsettled, record.altered, record.changed) == (frozenset(), False, {})
    assert delay_ms(lab, "bra", "eth1") == pytest.approx(50, abs=0.2)
    assert delay_ms(lab, "bra", "eth2") == pytest.approx(5, abs=0.2)
    assert tc_hosts.NETWORKS[lab.rundir].tbf["ams", "eth1"][0] == pytest.approx(10e6)


def test_the_file_has_the_last_word_on_links_that_it_changes_and_on_no_other(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"loss_percent": 2.0})
    labs.update_settings(lab, "bra-lon", {"delay_ms": 7.0})
    labs.set_links_up(lab, "lon", "mil", up=False)
    assert "link ams-bra is set by the file again: no longer loss 2 %" in up(SLOWER, "--dry-run")
    applied(lab, SLOWER)
    record = lab.read_record()
    assert set(record.changed) == {"bra-lon"}
    assert record.cut == {"lon-mil"}
    assert delay_ms(lab, "lon", "eth1") == pytest.approx(7, abs=0.2)


def test_what_cannot_be_is_refused_with_every_reason_and_nothing_changes(lab: Lab) -> None:
    before = everything(lab)
    text = SLOWER.replace("lon: ,", "lon: {memory: 1GB}, par: ,") + "  - {ends: [par, ams]}\nseed: 3\n"
    said = up(text, code=2)
    assert "host lon: memory: a host gets its memory as it boots" in said
    assert "seed: the random numbers of all links follow from it" in said
    assert "provider tc-hosts cannot add or remove hosts or links; uml can" in said
    assert "minigts down square" in said
    assert everything(lab) == before
    assert "! provider tc-hosts cannot add or remove" in up(text, "--dry-run")


def test_another_share_is_refused_before_anything_changes(lab: Lab) -> None:
    before = everything(lab)
    assert "a share is set as a lab comes up" in up(SLOWER, "--processors", "1", code=2)
    assert everything(lab) == before


class FilingHosts(tc_hosts.EditedHosts):
    """What is put on a host lies in the host's folder, which outlives a restart."""

    name = "filing-hosts"

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        super().put(host, source, target)
        place = self.rundir / "hosts" / host / str(target).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)


def test_a_new_host_gets_its_files_and_one_that_is_started_again_keeps_those_on_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tc_hosts.use(monkeypatch, tmp_path)
    monkeypatch.setitem(registry._PROVIDERS, FilingHosts.name, FilingHosts)
    (tmp_path / "words.txt").write_text("as brought\n")
    text = "name: copied\ntime: real\ndefaults: {host: {files: [{source: words.txt, target: /srv/}]}}\n"

    def plan_of(hosts: str) -> Plan:
        Path("copied.yaml").write_text(f"{text}chain: {{hosts: [{hosts}]}}\n")
        return load(Path("copied.yaml"))

    lab = labs.up(plan_of("ams, bra"), FilingHosts.name, None, quiet)
    (lab.rundir / "hosts" / "bra" / "srv" / "words.txt").write_text("edited on bra\n")
    started = edit.alter(lab, renumber_plan(plan_of("ams, bra, par"), lab.plan), quiet)
    assert started == {"bra", "par"}, "bra has a port more"
    held = {path.parents[1].name: path.read_text() for path in lab.rundir.glob("hosts/*/srv/words.txt")}
    assert held == {"ams": "as brought\n", "bra": "edited on bra\n", "par": "as brought\n"}


def test_while_a_host_does_not_answer_nothing_changes(lab: Lab) -> None:
    network = tc_hosts.NETWORKS[lab.rundir]
    answering = tuple(host for host in network.plan.hosts if host.name != "mil")
    network.plan = network.plan.model_copy(update={"hosts": answering})
    before, times = everything(lab), network.set
    assert "mil does not answer, so nothing was changed: minigts restart mil" in up(SLOWER, code=2)
    assert (everything(lab), network.set) == (before, times)


class FullHosts(tc_hosts.EditedHosts):
    """A machine without memory for one more host."""

    name = "full-hosts"

    def require_room_for(self, plan: Plan) -> None:
        if len(plan.hosts) > 4:
            raise EnvironmentLacks("there is memory for 4 hosts")


@pytest.mark.parametrize("why", ["there is memory for 4 hosts", "mil does not answer, so nothing was changed"])
def test_a_host_that_cannot_be_added_by_hand_changes_nothing(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tc_hosts.use(monkeypatch, tmp_path)
    monkeypatch.setitem(registry._PROVIDERS, FullHosts.name, FullHosts)
    lab = labs.up(parse(TEXT, "square.yaml"), FullHosts.name, None, quiet)
    overlays.join(lab, "none", quiet)
    if "mil" in why:
        network = tc_hosts.NETWORKS[lab.rundir]
        answering = tuple(host for host in network.plan.hosts if host.name != "mil")
        network.plan = network.plan.model_copy(update={"hosts": answering})
        monkeypatch.setattr(FullHosts, "require_room_for", tc_hosts.EditedHosts.require_room_for)
    before = everything(lab)
    done = runner.invoke(app, ["add", "host", "par", "ams"])
    assert why in " ".join(done.output.split())
    assert everything(lab) == before


class Interrupted(Exception):
    """Stands for SIGKILL: nothing catches it."""


@pytest.mark.parametrize("where", ["take_next_plan", "links"])
def test_a_crash_while_links_are_set_leaves_a_true_record_and_up_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def crash(*_words: object, **_more: object) -> None:
        raise Interrupted

    with monkeypatch.context() as broken, pytest.raises(Interrupted):
        broken.setattr(*((Lab, where) if where == "take_next_plan" else (edit.links, "set_what_differs")), crash)
        applied(lab, SLOWER)
    assert lab.reopened.plan == parse(SLOWER, "square.yaml")
    assert lab.read_record().unsettled >= {"ams", "bra"}
    with pytest.raises(InputError, match="interrupted"):
        applied(lab.reopened, TEXT)
    labs.up(parse(SLOWER, "square.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert lab.read_record().unsettled == frozenset()
    assert delay_ms(lab, "bra", "eth1") == pytest.approx(50, abs=0.2)
    again = applied(lab.reopened, TEXT)
    assert again.reopened.plan == parse(TEXT, "square.yaml")
    assert hashlib.sha256((lab.rundir / "plan.json").read_bytes()).hexdigest() == lab.read_record().plan_sha256
    assert not (lab.rundir / NEXT_PLAN).exists()


def test_a_paused_host_is_no_reason_to_make_the_lab_anew(lab: Lab) -> None:
    record = lab.read_record()
    lab.write(record.model_copy(update={"paused": frozenset({"mil"})}), record)
    network = tc_hosts.NETWORKS[lab.rundir]
    again = labs.up(parse(TEXT, "square.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert tc_hosts.NETWORKS[lab.rundir] is network
    assert (again.read_record().created, again.read_record().paused) == (record.created, {"mil"})


def test_what_is_added_by_hand_has_the_defaults_of_the_labs_file(lab: Lab) -> None:
    up(f"{TEXT}defaults: {{host: {{memory: 512MB}}, link: {{loss: 1%}}}}\n", "--lab", "second")
    second = labs.open_lab("second")
    usual = edit.defaults_of(second.reopened)
    more = add_host(second.plan, "par", "ams", {"rtt": "2ms"}, usual)
    assert [way.loss_percent for way in more.directions(more.links[-1])] == [1, 1]
    assert add_host(second.plan, "par", "ams", {"memory": "1GB", "loss": "0%"}, usual).host("par").memory_mb == 1024
    usual = Defaults.model_validate({"host": {"memory": "256MB", "cpus": "2"}, "link": {"rate": "5mbit"}})
    more = add_host(lab.plan, "par", "ams", {}, usual)
    assert (more.host("par").memory_mb, more.host("par").cpus, more.links[-1].rate_mbit) == (256, 1, 5)
    assert add_link(lab.plan, "ams", "lon", {}, usual).links[-1].rate_mbit == 5
    assert edit.defaults_of(lab) == Defaults()
