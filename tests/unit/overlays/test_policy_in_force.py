"""A policy that is in force stays in the lab's record: what hosts are told again, what ends it, and what shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_lab import Answering, fake_lab
from minigts import overlays
from minigts.cli.app import app
from minigts.errors import CommandFailed, HostFailed, MinigtsError
from minigts.lab import Lab
from minigts.lab.keep import kept_record
from minigts.overlays import policy
from minigts.topology.read.load import parse

PLAN = parse("name: three\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms}}\n", "three.yaml")
HOSTS = ("ams", "bra", "lju")
CLOSED = """\
name: closed
default: deny
groups: {web: [ams], store: [bra]}
rules:
  - allow: {from: web, to: store, protocol: icmp}
"""
TOLD: list[tuple[str, str]] = []
"""What hosts were told, in order: the host, with a phase's name or its rules for nftables."""
REACHED: dict[str, str] = {}
"""The addresses for which each host was last told to wait."""
ADDRESSES: dict[str, str] = {}


class Telling(Answering):
    """It notes phases and rules, and answers as hosts do whose phases succeed."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        stdout = ""
        if argv[0] == "nft" and stdin:
            TOLD.append((host, stdin.decode()))
        elif argv[0] == "env":
            TOLD.append((host, argv[-1]))
            if argv[-1] == "start":
                stdout = f"ADDRESS={ADDRESSES[host]}\nMTU=1480\nENTER=7\n"
            if argv[-1] == "reach":
                REACHED[host] = next(word for word in argv if word.startswith("PEERS=")).removeprefix("PEERS=")
            if argv[-1] == "verify":
                raise CommandFailed(host, argv, 1, "", "no answer")
        return 0, stdout


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = fake_lab(PLAN, tmp_path / "state", monkeypatch, Telling)
    ADDRESSES.update({name: f"172.31.0.{index}" for index, name in enumerate(HOSTS, 1)})
    overlays.join(made, "calico", quiet)
    policy.apply(made, policy.parse(CLOSED, "closed.yaml", HOSTS))
    TOLD.clear()
    return made


def quiet(_text: str) -> None:
    pass


def rules(host: str, file: str = CLOSED) -> str:
    ends = {name: overlays.Endpoint(name, ADDRESSES[name], 1480, ()) for name in HOSTS}
    return policy.ruleset(policy.parse(file, "closed.yaml", HOSTS), ends, host)


def restarted(lab: Lab, *names: str) -> None:
    record = lab.read_record()
    lab.write(record.model_copy(update={"unjoined": record.unjoined | {*names}}), record)


def status(lab: Lab) -> dict[str, object]:
    (facts,) = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert isinstance(facts, dict)
    return facts


def test_a_restarted_host_enforces_it_before_its_container_starts_and_after(lab: Lab) -> None:
    restarted(lab, "bra")
    overlays.rejoin(lab, "bra", quiet)
    of_bra = [what for host, what in TOLD if host == "bra"]
    assert of_bra[:5] == ["install", rules("bra"), "join", "start", rules("bra")]
    assert [(host, what) for host, what in TOLD if host != "bra" and "table" in what] == []


def test_no_end_waits_for_one_that_it_may_not_ping(lab: Lab) -> None:
    restarted(lab, "bra")
    overlays.rejoin(lab, "bra", quiet)
    assert {"ams": ADDRESSES["bra"], "bra": "", "lju": ""} == REACHED


def test_a_container_with_another_address_is_known_to_every_host(lab: Lab) -> None:
    restarted(lab, "ams")
    ADDRESSES["ams"] = "172.31.9.9"
    overlays.rejoin(lab, "ams", quiet)
    told = dict(told_rules())
    assert told == {host: rules(host) for host in HOSTS}
    assert "172.31.9.9" in told["bra"]


def told_rules() -> list[tuple[str, str]]:
    return [(host, what) for host, what in TOLD if "table" in what]


def test_a_kept_lab_that_comes_up_again_has_it(lab: Lab) -> None:
    record = lab.read_record()
    lab.write(kept_record(lab.plan, record).model_copy(update={"state": "up"}), record)
    overlays.join(lab, "calico", quiet)
    assert sorted(told_rules()) == [(host, rules(host)) for host in HOSTS]
    assert {name: " ".join(ADDRESSES[peer] for peer in HOSTS if peer != name) for name in HOSTS} == REACHED


def test_status_says_so_until_it_is_removed(lab: Lab) -> None:
    assert status(lab)["policy"] == "closed"
    assert "policy closed is in force" in CliRunner().invoke(app, ["status"]).stdout
    assert CliRunner().invoke(app, ["policy", "remove"]).exit_code == 0
    assert status(lab)["policy"] is None
    TOLD.clear()
    restarted(lab, "bra")
    overlays.rejoin(lab, "bra", quiet)
    assert told_rules() == []


def test_another_overlay_ends_it_and_says_so(lab: Lab) -> None:
    said: list[str] = []
    overlays.join(lab, "romana", said.append)
    assert "policy closed has ended with overlay calico" in said
    overlays.join(lab, "calico", quiet)
    assert (told_rules(), status(lab)["policy"]) == ([], None)


def test_leaving_ends_it_unless_the_overlay_comes_back(lab: Lab) -> None:
    overlays.leave(lab, quiet, to_join_again=True)
    assert status(lab)["policy"] is None
    overlays.join(lab, "calico", quiet)
    assert (len(told_rules()), status(lab)["policy"]) == (3, "closed")
    overlays.leave(lab, quiet)
    assert list(lab.rundir.glob(policy.FILE)) == []


def test_a_host_that_is_gone_is_in_no_rule_and_a_new_one_in_no_group(lab: Lab) -> None:
    """As `add host` and `remove host` have it, which leave the overlay and join it again."""
    overlays.leave(lab, quiet, to_join_again=True)
    text = "name: three\nchain: {hosts: [ams, lju, new], link: {rtt: 10ms}}\n"
    after = parse(text, "three.yaml")
    record = lab.read_record()
    lab.write(record.model_copy(update={"plan_sha256": lab.write_plan(after)}), record)
    lab.provider.up(after, quiet)
    ADDRESSES["new"] = "172.31.0.4"
    overlays.join(lab.reopened, "calico", quiet)
    told = dict(told_rules())
    assert set(told) == {"ams", "lju", "new"}
    assert all(what.rstrip().endswith("counter drop\n  }\n}") for what in told.values())
    assert ADDRESSES["bra"] not in "".join(told.values())


def test_a_host_that_is_off_is_started_first(lab: Lab) -> None:
    """Nothing is changed: neither the record nor a host."""
    record = lab.read_record()
    lab.write(record.model_copy(update={"off": frozenset({"bra"})}), record)
    other = policy.parse(CLOSED.replace("closed", "other"), "other.yaml", HOSTS)
    with pytest.raises(HostFailed, match="bra is off: minigts start bra"):
        policy.apply(lab, other)
    assert (told_rules(), status(lab)["policy"]) == ([], "closed")
    policy.remove(lab)
    assert {host for host, _ in told_rules()} == {"ams", "lju"}


def test_a_paused_host_would_keep_its_rules(lab: Lab) -> None:
    record = lab.read_record()
    lab.write(record.model_copy(update={"paused": frozenset({"bra"})}), record)
    with pytest.raises(HostFailed, match="bra is paused, and would keep its rules: minigts resume bra"):
        policy.remove(lab)
    assert (told_rules(), status(lab)["policy"]) == ([], "closed")


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "{}",
        '{"overlay": "calico", "policy": {"name": "x", "groups": {}, "rules": [{"deny": {"from": "a", "to": "b"}}]}}',
    ],
)
def test_a_damaged_record_is_named(lab: Lab, wrong: str) -> None:
    lab.put(policy.FILE, wrong)
    restarted(lab, "bra")
    with pytest.raises(MinigtsError, match=r"its policy.json is damaged .*minigts down three"):
        overlays.rejoin(lab, "bra", quiet)


def test_a_data_path_that_cannot_be_verified_names_the_policy(lab: Lab) -> None:
    with pytest.raises(CommandFailed) as caught:
        overlays.verify(lab, quiet)
    assert caught.value.__notes__ == ["policy closed is in force, and may deny it: minigts policy remove"]


@pytest.mark.parametrize(
    ("source", "target", "rule", "expected"),
    [
        ("ams", "bra", "allow: {from: web, to: store}", True),
        ("bra", "ams", "allow: {from: web, to: store}", False),
        ("ams", "bra", "allow: {from: web, to: store, protocol: tcp}", False),
        ("ams", "bra", "deny: {from: any, to: store}", False),
        ("ams", "bra", "allow: {from: any, to: any, protocol: icmp}", True),
    ],
)
def test_who_may_ping_whom_is_what_the_rules_say(source: str, target: str, rule: str, expected: bool) -> None:
    text = CLOSED.replace("allow: {from: web, to: store, protocol: icmp}", rule)
    assert policy.lets_ping(policy.parse(text, "closed.yaml", HOSTS), source, target, HOSTS) == expected


@pytest.mark.parametrize(
    ("protocol", "port", "expected"),
    [("tcp", 5201, True), ("tcp", 5202, False), ("tcp", None, False), ("udp", 5201, False), ("icmp", None, False)],
)
def test_a_rule_for_ports_is_about_these(protocol: str, port: int | None, expected: bool) -> None:
    text = CLOSED.replace("protocol: icmp", "protocol: tcp, ports: [5201]")
    closed = policy.parse(text, "closed.yaml", HOSTS)
    assert policy.lets(closed, "ams", "bra", HOSTS, protocol, port) == expected
