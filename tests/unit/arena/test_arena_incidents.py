"""What seeds draw, tickets, scores, transcripts and pages: all that needs no lab. bench/arena.py proves each incident
in a lab, and tests/live/test_arena.py a sample."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.arena import families, page, tickets, tournament, transcript
from minigts.arena.boards import BOARDS, plan_of, policy_of
from minigts.arena.expectations import Complaint, What
from minigts.arena.families import FAMILIES, PROVEN, draw
from minigts.arena.kinds import BY_NAME, FURTHER, places_of
from minigts.arena.oddities import ODDITIES
from minigts.arena.policy_kinds import ONLY, POLICY_KINDS
from minigts.arena.scores import ArenaAnswer, NamedFault, score
from minigts.arena.transcript import PlayedCall, PlayedEnd, PlayedTicket, Transcript
from minigts.errors import InputError
from minigts.lessons.break_kinds import KINDS

SEEDS = range(1, PROVEN + 1)


def test_there_are_360_incidents_in_twelve_families() -> None:
    assert len(FAMILIES) * PROVEN == 360
    assert len({name for family in FAMILIES for name in families.names_of(family)}) == 360


@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_incidents_differ_and_have_all_its_kinds(family: str) -> None:
    drawn = [draw(family, seed) for seed in SEEDS]
    assert drawn == [draw(family, seed) for seed in SEEDS]
    faulty = [
        (each.board, *((fault.kind.name, fault.place.host, *fault.place.variables.values()) for fault in each.faults))
        for each in drawn
        if each.faults
    ]
    assert len(set(faulty)) == len(faulty) == (10 if family == "odd" else PROVEN)
    if family not in ("several", "odd"):
        kinds = {kind for names in FAMILIES[family].kinds.values() for kind in names}
        assert {fault.kind.name for each in drawn for fault in each.faults} == kinds


def test_what_a_seed_has_drawn_stays_so_in_later_versions() -> None:
    found = [draw(family, 1) for family in FAMILIES]
    assert [
        (each.board, *(f"{fault.kind.name}@{fault.place.host}" for fault in (*each.faults, *each.oddities)))
        for each in found
    ] == FIRST


FIRST = [
    ("row", "wrong-mask@lju"),
    ("ring", "no-forwarding@sto"),
    ("ring", "full-disk@osl"),
    ("row", "lossy@ams"),
    ("star", "fragments-lost@bud"),
    ("star-dns", "wrong-resolver@bud"),
    ("ring-ospf", "wrong-area@rig"),
    ("three-swarm", "container-mtu@lyo"),
    ("four-calico", "policy-order@lyo"),
    ("star-kubernetes", "flannel-filtered@brn"),
    ("row", "no-name@lju", "no-route@ams"),
    ("row", "spare-address@bra", "spare-name@mil"),
]


def test_several_are_on_different_hosts_and_odd_is_by_turns() -> None:
    for seed in SEEDS:
        several = draw("several", seed).faults
        assert len({fault.place.host for fault in several}) == len(several) in (2, 3)
    odd = [draw("odd", seed) for seed in SEEDS]
    assert Counter((len(each.faults), len(each.oddities)) for each in odd) == {(0, 0): 10, (0, 2): 10, (1, 2): 10}


def test_names_of_kinds_are_of_one_fault_each_and_have_places() -> None:
    assert len(BY_NAME) == len(KINDS) + len(FURTHER)
    for family in FAMILIES.values():
        for board, kinds in family.kinds.items():
            assert BY_NAME.keys() >= {*kinds}
            assert BOARDS[board].topology
    assert len({each.name for each in ODDITIES}) == len(ODDITIES) == 10


def test_a_kind_that_breaks_a_whole_host_has_a_place_for_each() -> None:
    plan = plan_of("row", "row")
    assert [place.host for place in places_of(BY_NAME["clock"], plan)] == ["ams", "bra", "lju", "mil"]
    assert len(list(places_of(BY_NAME["mtu"], plan))) == 6


def test_a_wrong_next_hop_is_drawn_only_where_it_is_felt() -> None:
    plan = plan_of("ring", "ring")
    drawn = {
        (place.host, place.watcher, place.variables["there"])
        for place in places_of(BY_NAME["wrong-next-hop"], plan)
        if place.host == "sto"
    }
    own = {host.name: host.address for host in plan.hosts}
    assert ("sto", "osl", own["tal"]) not in drawn  # either way round takes 36 ms
    assert ("sto", "hel", own["rig"]) in drawn


def test_each_kind_of_a_policy_has_hosts_of_the_boards_that_have_one() -> None:
    for board in FAMILIES["policies"].kinds:
        hosts = {host.name for host in plan_of(board, board).hosts}
        for kind in POLICY_KINDS:
            assert {place.host for place in places_of(kind, plan_of(board, board))} == {*ONLY.get(kind.name, hosts)}
        assert policy_of(board) is not None
    assert policy_of("row") is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("route/7", "did you mean 'routes'"),
        ("routes", "write routes/1 to routes/9999"),
        ("routes/0", "names no incident"),
        ("routes/-1", "names no incident"),
        ("routes/10000", "names no incident"),
        ("routes/seven", "names no incident"),
    ],
)
def test_a_name_that_is_none_is_refused(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        families.parse(name)


COMPLAINTS = (
    Complaint(what="reach", source="ams", target="mil"),
    Complaint(what="slow", source="bra", target="mil", figure=101.2),
)


WHATS = [word for each in get_args(What) for word in get_args(each)]


def test_a_ticket_is_a_users_and_the_same_each_time() -> None:
    plan = plan_of("row", "row")
    said = [tickets.ticket(plan, COMPLAINTS, f"routes/{seed}") for seed in SEEDS]
    assert said == [tickets.ticket(plan, COMPLAINTS, f"routes/{seed}") for seed in SEEDS]
    assert all("mil" in each and each.endswith("mend it.") for each in said)
    assert all("{" not in each for each in said)
    assert len(set(said)) > 10


def test_a_ticket_about_nothing_names_two_hosts() -> None:
    said = {tickets.ticket(plan_of("row", "row"), (), f"odd/{seed}") for seed in SEEDS}
    assert len(said) > 10


@given(st.sampled_from(WHATS), st.booleans())
def test_each_complaint_has_words(what: str, inside: bool) -> None:
    found = Complaint.model_validate({"what": what, "source": "ams", "target": "bra", "inside": inside})
    assert "ams" in tickets.ticket(plan_of("row", "row"), (found,), "routes/1")


ROUTES_1 = draw("routes", 1)
RIGHT = ArenaAnswer(faults=tuple(NamedFault(what=each.kind.name, where=each.place.host) for each in ROUTES_1.faults))
OTHER_HOST = next(host.name for host in ROUTES_1.plan.hosts if host.name != ROUTES_1.faults[0].place.host)


def test_who_does_nothing_has_no_points_where_something_is_wrong() -> None:
    found = score(
        ROUTES_1.faults, ArenaAnswer(), lasting=ROUTES_1.faults, before=COMPLAINTS, now=COMPLAINTS, calls=0, lab_s=0
    )
    assert (found.points, found.solved, found.left, found.broken) == (0, False, 2, 0)


def test_the_reference_has_all_points() -> None:
    found = score(ROUTES_1.faults, RIGHT, lasting=[], before=COMPLAINTS, now=[], calls=3, lab_s=1.5)
    assert (found.points, found.solved, found.calls, found.lab_s) == (1, True, 3, 1.5)


def test_what_else_is_broken_counts_and_a_complaint_that_stays_does_too() -> None:
    new = Complaint(what="service", source="lju", target="ams")
    found = score(ROUTES_1.faults, RIGHT, lasting=[], before=COMPLAINTS, now=[COMPLAINTS[0], new], calls=3, lab_s=1.5)
    assert (found.points, found.solved, found.left, found.broken) == (1, False, 1, 1)


def test_half_an_answer_is_half_the_points_and_a_guess_too_many_costs() -> None:
    wrong = ArenaAnswer(faults=(NamedFault(what=RIGHT.faults[0].what, where=OTHER_HOST),))
    found = score(ROUTES_1.faults, wrong, lasting=ROUTES_1.faults, before=COMPLAINTS, now=COMPLAINTS, calls=1, lab_s=1)
    assert (found.detected, found.located, found.named, found.mended, found.points) == (1, 0, 1, 0, 0.5)
    many = ArenaAnswer(faults=(*RIGHT.faults, *wrong.faults))
    found = score(ROUTES_1.faults, many, lasting=[], before=COMPLAINTS, now=[], calls=1, lab_s=1)
    assert (found.located, found.named, found.points, found.solved) == (0.5, 0.5, 0.75, False)


def test_where_nothing_is_wrong_nothing_is_the_answer() -> None:
    assert score((), ArenaAnswer(), lasting=(), before=(), now=(), calls=0, lab_s=0).solved
    blamed = score((), RIGHT, lasting=(), before=(), now=(), calls=0, lab_s=0)
    assert (blamed.detected, blamed.located, blamed.named, blamed.mended) == (0, 0, 0, 1)
    harm = score((), ArenaAnswer(), lasting=(), before=(), now=COMPLAINTS, calls=0, lab_s=0)
    assert (harm.mended, harm.broken, harm.solved) == (0, 2, False)


def whole(agent: str = "scripted", answer: str = "64 bytes") -> Transcript:
    judged = score(ROUTES_1.faults, RIGHT, lasting=[], before=COMPLAINTS, now=[], calls=1, lab_s=1.5)
    call = PlayedCall(
        number=1, tool="ping", arguments={"source": "ams", "count": 2}, answer=answer, at_s=0.0, took_s=1.5
    )
    ticket = PlayedTicket(incident="routes/1", agent=agent, ticket="mil is gone", minigts="1.0.0")
    return Transcript(ticket, (call,), PlayedEnd(answer=RIGHT, score=judged))


def test_a_transcript_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(whole().text)
    assert transcript.read(tmp_path / "a.jsonl") == Transcript(whole().ticket, [*whole().calls], whole().end)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: "", "is no transcript"),
        (lambda text: text.splitlines()[0], "is no transcript"),
        (lambda text: text.replace('"kind":"call"', '"kind":"gall"'), "a.jsonl:2: is no line of a transcript"),
        (lambda text: text.replace('"points":1.0', '"points":NaN'), "a.jsonl:3"),
        (lambda text: text[:-30], "a.jsonl:3"),
        (lambda text: text.splitlines()[0] + "\n" + (text.splitlines()[1] + "\n") * 300, "at most 200 calls"),
    ],
)
def test_a_damaged_transcript_is_refused_with_its_line(tmp_path: Path, damage: object, why: str) -> None:
    (tmp_path / "a.jsonl").write_text(damage(whole().text))  # type: ignore[operator]
    with pytest.raises(InputError, match=why):
        transcript.read(tmp_path / "a.jsonl")


def test_replays_are_compared_byte_for_byte_but_for_the_version() -> None:
    before = whole()
    newer = Transcript(before.ticket.model_copy(update={"minigts": "2.0.0"}), before.calls, before.end)
    assert tournament.first_difference(before, newer) is None
    found = tournament.first_difference(before, whole(answer="65 bytes"))
    assert found is not None and found.line == 2 and "65 bytes" in found.now


def test_the_page_has_a_row_for_each_family_and_incident() -> None:
    text = page.page([whole(), whole("no`t|hing")])
    assert "| routes | 1 | 1 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 0 | 1 | 1.5 |" in text
    assert "| `routes/1` | `scripted` | yes | 1.00 | 1 | 1 | 1 | 1 | 0 | 0 | 1 | 1.5 |" in text
    assert "## `nothing`" in text
