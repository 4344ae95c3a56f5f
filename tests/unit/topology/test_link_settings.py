"""The one list of link settings: what it says hangs together, and it takes words and nested settings, too."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from typer.testing import CliRunner

from minigts.api.labs import Link
from minigts.cli.app import app
from minigts.dataplane.wire import Wire
from minigts.language.quantities import Either, FileName, Words
from minigts.topology import link_settings
from minigts.topology.link_setting import Setting
from minigts.topology.link_settings import BY_FIELD, LINK_SETTINGS, SETTABLE, Amounts, Shaping
from minigts.topology.read.links import LinkSettings
from minigts.topology.read.per_direction import BothWays, key_annotations

DISCIPLINE = Setting(
    word="queue.discipline",
    kind=Words("a queue discipline", ("fifo", "fq_codel")),
    about="Who goes first.",
    page="",
    at_sender=True,
    field="queue_discipline",
    default="fifo",
)
QUEUE = SETTABLE["queue"]


class _Nested(BaseModel):
    model_config = ConfigDict(extra="forbid")
    queue: Annotated[Any, *key_annotations([QUEUE, DISCIPLINE])] = None


def read(value: object) -> Any:
    return _Nested.model_validate({"queue": value}).queue


def test_words_and_fields_are_told_apart() -> None:
    words = [each.word for each in LINK_SETTINGS if not each.of_other_unit]
    assert len({*words}) == len(words)
    assert len(LINK_SETTINGS) == len(BY_FIELD)
    assert {each.head for each in LINK_SETTINGS} <= LinkSettings.model_fields.keys()
    assert Amounts.model_fields.keys() == {"trace", *(each.field for each in LINK_SETTINGS if each.settable)}


def test_every_number_of_a_wire_but_its_seed_trace_and_carrier_follows_from_a_setting() -> None:
    numbers = [number.name for each in LINK_SETTINGS for number in each.wire]
    assert sorted([*numbers, "seed", "trace", "trace_runs", "no_carrier"]) == sorted(each.name for each in fields(Wire))


@pytest.mark.parametrize("setting", LINK_SETTINGS, ids=lambda setting: setting.word)
def test_the_bounds_of_what_is_written_are_within_those_of_a_plan(setting: Setting) -> None:
    if isinstance(setting.kind, Words | FileName):
        return
    kind = setting.kind.kinds[0] if isinstance(setting.kind, Either) else setting.kind
    for written in (kind.least, kind.most, kind.example):
        amount = setting.parse(written)
        for model in (Shaping, Amounts):
            assert getattr(model.model_validate({setting.field: amount}), setting.field) == amount
        assert setting.value_words(amount).endswith(setting.unit)


@pytest.mark.parametrize("field", Amounts.model_fields)
def test_what_is_recorded_has_the_bounds_of_a_plan(field: str) -> None:
    assert getattr(Amounts(), field) is None
    with pytest.raises(ValidationError):
        Amounts(**{field: -1})


def test_python_takes_them_as_keywords() -> None:
    named = inspect.signature(Link.change).parameters
    assert [*named] == ["self", *(word.replace(".", "_") for word in SETTABLE), "rtt"]


def test_the_help_of_set_names_them() -> None:
    said = " ".join(CliRunner().invoke(app, ["set", "--help"], env={"COLUMNS": "400"}).stdout.split())
    *most, last = SETTABLE
    assert f"{', '.join(most)} or {last}, with units as in" in said


def read_jitter(value: object) -> Any:
    return LinkSettings.model_validate({"jitter": value}).jitter  # type: ignore[attr-defined]


def alike(**values: object) -> dict[str, object]:
    return {field: BothWays(value, value) for field, value in values.items()}


NO_TABLE = alike(jitter_table=None)
"""Of a jitter that says how it is spread: no table of a less specific place goes with it."""


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("2ms", alike(jitter_ms=2, jitter_distribution="uniform") | NO_TABLE),
        ({"range": "2ms"}, alike(jitter_ms=2, jitter_distribution="uniform") | NO_TABLE),
        ({"sd": "2ms"}, alike(jitter_ms=3.464102, jitter_distribution="uniform") | NO_TABLE),
        ({"sd": "2ms", "distribution": "normal"}, alike(jitter_ms=2, jitter_distribution="normal") | NO_TABLE),
        ({"distribution": "normal"}, alike(jitter_distribution="normal") | NO_TABLE),
        (
            {"to": "2ms", "from": "0ms"},
            {"jitter_ms": BothWays(2, 0), "jitter_distribution": BothWays("uniform", "uniform")} | NO_TABLE,
        ),
        ({"table": "d.txt"}, alike(jitter_table="d.txt", jitter_distribution="table", jitter_ms=None)),
        ({"table": "d.txt", "sd": "2ms"}, alike(jitter_table="d.txt", jitter_distribution="table", jitter_ms=2)),
        (
            {"table": {"to": "d.txt", "from": "e.dist"}, "distribution": "table", "sd": "2ms"},
            alike(jitter_distribution="table", jitter_ms=2) | {"jitter_table": BothWays("d.txt", "e.dist")},
        ),
        (
            {"sd": {"to": "1ms", "from": "2ms"}, "distribution": {"to": "uniform", "from": "pareto"}},
            {"jitter_ms": BothWays(1.732051, 2), "jitter_distribution": BothWays("uniform", "pareto")} | NO_TABLE,
        ),
        (
            {"range": "1ms", "correlation": "25%", "order": "free"},
            alike(jitter_ms=1, jitter_distribution="uniform", jitter_correlation_percent=25, jitter_order="free")
            | NO_TABLE,
        ),
        ({"order": "free"}, alike(jitter_order="free")),
    ],
)
def test_a_jitter_is_a_range_or_a_standard_deviation(value: object, found: dict[str, object]) -> None:
    assert read_jitter(value) == found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"sd": "2ms", "range": "2ms"}, "both range and sd are given: range is for an even spread"),
        (
            {"range": "2ms", "distribution": "normal"},
            "a range with the distribution normal, which has none",
        ),
        ({"sd": "2"}, "sd: '2' lacks its unit"),
        ({"sd": "2ms", "distribution": "gamma"}, "'gamma' is not a distribution: write uniform, normal, pareto, "),
        (
            {"range": "2ms", "table": "d.txt"},
            "both range and table are given: range is for an even spread, a table has",
        ),
        ({"distribution": "normal", "table": "d.txt"}, "both the distribution normal and a table are given"),
        ({"sd": "2ms", "distribution": "table"}, "a distribution `table` without one: name its file, as in table: "),
        ({"table": ""}, "'' is no path of measured delays, or a table for netem: write it as in delays.txt"),
        ({"table": "a\nb"}, "is no path of measured delays"),
        ({"sd": "2ms", "order": "keep"}, "'keep' is not an order: write kept or free"),
        ({"sd": "2ms", "corelation": "1%"}, "no key 'corelation'; did you mean 'correlation'?"),
        ({}, "the mapping is empty; its keys are range"),
    ],
)
def test_a_wrong_jitter_is_said(value: object, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read_jitter(value)
    assert message in str(refused.value)


def test_a_word_is_read_as_it_is() -> None:
    assert DISCIPLINE.parse("fq_codel") == "fq_codel"
    assert DISCIPLINE.value_words("fq_codel") == DISCIPLINE.plan_words("fq_codel") == "fq_codel"
    with pytest.raises(ValueError, match="'fq' is not a queue discipline: write fifo or fq_codel"):
        DISCIPLINE.parse("fq")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("100kB", {"queue_bytes": BothWays(100_000, 100_000)}),
        ({"to": "100kB", "from": "20kB"}, {"queue_bytes": BothWays(100_000, 20_000)}),
        ({"discipline": "fq_codel"}, {"queue_discipline": BothWays("fq_codel", "fq_codel")}),
        (
            {"size": {"to": "100kB", "from": "20kB"}, "discipline": {"to": "fifo", "from": "fq_codel"}},
            {"queue_bytes": BothWays(100_000, 20_000), "queue_discipline": BothWays("fifo", "fq_codel")},
        ),
        (
            {"to": {"size": "100kB", "discipline": "fq_codel"}, "from": "20kB"},
            {"queue_bytes": BothWays(100_000, 20_000), "queue_discipline": BothWays("fq_codel", None)},
        ),
    ],
)
def test_nested_settings_stand_beside_the_own_value_of_their_key(value: object, found: dict[str, object]) -> None:
    assert read(value) == found


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ({"discipline": "fq"}, ["discipline: 'fq' is not a queue discipline: write fifo or fq_codel"]),
        (
            {"size": "100", "kind": "fifo"},
            ["size: '100' lacks its unit", "kind: no key 'kind'; keys are size, discipline"],
        ),
        ({"discipline": {"to": "fifo"}}, ["discipline: 'from' is missing"]),
        ({"size": {"to": "1kB", "from": "2"}}, ["size.from: '2' lacks its unit"]),
        (
            {"to": {"size": "1", "kind": "x"}},
            ["to.size: '1' lacks its unit", "to.kind: no key 'kind'", "'from' is missing: two directions are written"],
        ),
        ({"to": {}, "from": "1kB"}, ["to: the mapping is empty; its keys are size, discipline"]),
        ({}, ["the mapping is empty; its keys are size, discipline"]),
    ],
)
def test_what_is_wrong_below_a_key_is_said_at_its_place(value: object, messages: list[str]) -> None:
    with pytest.raises(ValidationError) as refused:
        read(value)
    assert all(message in str(refused.value) for message in messages)


def test_the_schema_knows_the_nested_settings() -> None:
    (plain, nested) = (key_annotations(settings)[1].json_schema or {} for settings in ([QUEUE], [QUEUE, DISCIPLINE]))
    *as_before, mapping, by_way = nested["anyOf"]
    assert by_way["required"] == ["to", "from"]
    assert as_before == plain["anyOf"]
    assert mapping["properties"]["discipline"]["anyOf"][0] == {"type": "string", "enum": ["fifo", "fq_codel"]}


def test_what_is_of_one_time_is_refused_in_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    of_virtual = tuple(replace(each, only="virtual") if each.word == "slot" else each for each in LINK_SETTINGS)
    monkeypatch.setattr(link_settings, "LINK_SETTINGS", of_virtual)
    ways = (Shaping(slot_ms=1), Shaping(), Shaping(slot_ms=2))
    message = "slot exists only in virtual time, and this lab runs in real time"
    assert [*link_settings.untimely(ways, "real")] == [message, message]
    assert [*link_settings.untimely(ways, "virtual")] == []
