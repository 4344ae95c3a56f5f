"""Expressions of somebody else's come to an end, in time and in memory, and what they find is what Python finds."""

from __future__ import annotations

import time

import pytest

from minigts.machine import searching
from minigts.tools.base import ParseError
from minigts.tools.command import CommandOptions, parse


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("total=(\\S+)", "a\ntotal=0.035\n", "0.035"),
        ("(?P<value>[0-9]+) (ms|s)", "7 ms", "7"),
        ("^[0-9]+$", "a\n12\n", "12"),
        ("(?<=x)[0-9]", "x5", "5"),
        ("z", "abc", None),
    ],
)
def test_a_pattern_finds_what_it_would_in_python(pattern: str, text: str, found: str | None) -> None:
    assert searching.search("pattern", pattern, text) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [("a.b", '{"a": {"b": 1.5}}', "1.5"), ("a", '{"a": "x"}', "x"), ("a", "{}", None), ("a", '{"a": 7}', "7.0")],
)
def test_a_path_leads_where_it_would_in_python(path: str, text: str, found: str | None) -> None:
    assert searching.search("path", path, text) == found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x"])
def test_a_pattern_without_end_is_ended_and_the_next_is_tried(pattern: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(searching.TookTooLong):
        searching.search("pattern", pattern, "a" * 40 + "!", limit_s=1.0)
    assert time.monotonic() - began_s < 60
    assert searching.search("pattern", "b", "abc") == "b"


@pytest.mark.nightly
def test_a_path_that_names_more_than_memory_holds_fails_and_the_next_is_tried() -> None:
    """Each step doubles what is shown: 2^40 copies of the document."""
    with pytest.raises((searching.Failed, searching.TookTooLong)):
        searching.search("path", "|".join(["[@,@]"] * 40), "[1]", limit_s=15.0)
    assert searching.search("path", "@", "7") == "7.0"


def test_a_stranger_s_experiment_does_not_hang_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "LIMIT_S", 1.0)
    monkeypatch.setattr(searching.search, "__defaults__", (1.0,))
    options = CommandOptions.model_validate({"run": "x", "find": "(a+)+$", "unit": "ms", "label": "time"})
    with pytest.raises(ParseError, match="it did not end in time"):
        parse(options, "a" * 40 + "!")
