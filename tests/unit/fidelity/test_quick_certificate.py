"""A certificate of a sample of the links: what it measures and says, when it is not enough, and how long one takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.fidelity import kept_certificate, measure, sample
from minigts.fidelity.current_certificate import current_certificate
from minigts.lab import Lab
from minigts.topology.read.load import parse

SEGMENTS = ", ".join(f"{{rtt: 2ms, rate: {number}mbit}}" for number in (30, 10, 50, 20, 40, 60, 70, 15, 25))
TEXT = f"name: long\ntime: real\nchain: {{hosts: 10, segments: [{SEGMENTS}]}}\n"
runner = CliRunner()


def quiet(_text: str) -> None:
    pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    tc_hosts.use(monkeypatch, tmp_path)
    (tmp_path / "long.yaml").write_text(TEXT)
    return labs.up(parse(TEXT, "long.yaml"), tc_hosts.TcHosts.name, None, quiet)


def test_a_sample_has_the_slowest_and_the_fastest_link_and_says_which_it_is(lab: Lab) -> None:
    made = measure.certify(lab, quiet, extent="quick")
    assert made.sample == tuple(link.name for link in sample.choose_links(lab.plan.links))
    rates = {link.name: link.rate_mbit for link in lab.plan.links}
    assert {10.0, 70.0} <= {rates[name] for name in made.sample}
    assert (len(made.sample), made.links) == (sample.SAMPLE, 9)
    measured = {row.subject for row in made.rows if row.quantity in ("RTT", "TCP")}
    assert {name for name in measured if name in rates} == set(made.sample)
    assert {row.subject for row in made.rows if row.quantity == "settings"} == {host.name for host in lab.plan.hosts}
    assert made.verdict.startswith("quick certificate, 5 of 9 links measured, all settings read back: ")


def test_a_setting_that_was_changed_on_a_link_outside_the_sample_is_found(lab: Lab) -> None:
    other = next(link for link in lab.plan.links if link not in sample.choose_links(lab.plan.links))
    host = lab.plan.host(other.ends[0])
    port = next(port.name for port in host.ports if port.link == other.name)
    del tc_hosts.NETWORKS[lab.rundir].tbf[host.name, port]
    made = measure.certify(lab, quiet, extent="quick")
    assert not next(row for row in made.rows if row.subject == host.name).ok


def test_where_all_links_are_asked_for_a_quick_one_does_not_do(lab: Lab) -> None:
    quick = current_certificate(lab, quiet, "quick")
    assert (quick.certificate.links, quick.said) == (9, "")
    assert kept_certificate.valid_certificate(lab) is None
    assert "not measured now" in current_certificate(lab, quiet, "quick").said
    full = current_certificate(lab, quiet)
    assert (full.certificate.sample, "was a quick one, of 5 links" in full.said) == ((), True)
    again = current_certificate(lab, quiet, "quick")
    assert (again.certificate.sample, "not measured now" in again.said) == ((), True)


def test_few_links_are_all_measured_and_the_certificate_is_a_whole_one() -> None:
    plan = parse("name: x\nchain: {hosts: 6, link: {rtt: 2ms}}\n", "x.yaml")
    assert sample.choose_links(plan.links) == plan.links


def test_up_says_beforehand_that_a_certificate_takes_long(lab: Lab) -> None:
    words = ["up", "long.yaml", "--provider", tc_hosts.TcHosts.name, "--lab"]
    short = runner.invoke(app, [*words, "long", "--certify", "quick"])
    assert (short.exit_code, "the certificate takes about" in short.stderr) == (0, False), short.stderr
    assert "quick certificate, 5 of 9 links measured" in short.stdout
    chain = "name: longer\ntime: real\nchain: {hosts: 40, link: {rtt: 2ms, rate: 50mbit}}\n"
    Path("long.yaml").write_text(chain)
    said = " ".join(runner.invoke(app, [*words, "longer"]).stderr.split())
    assert "the certificate takes about 30 s on an idle machine; --certify quick measures a sample of the links" in said


def test_a_fast_link_takes_no_longer_than_a_slow_one_where_a_train_measures_it() -> None:
    fast, slow = (
        sample.foreseen_s(
            parse(f"name: x\nchain: {{hosts: 61, link: {{rate: {rate}}}}}\n", "x.yaml", best="virtual"), "full"
        )
        for rate in ("10gbit", "100mbit")
    )
    assert fast < slow
