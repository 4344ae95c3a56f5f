"""The fuzzer itself finds what it is there to find."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence

import pytest

import fuzzing
from fuzzing import Subject, fuzz


def number_of(_seed: bytes, _others: Sequence[bytes], chance: random.Random) -> bytes:
    return b"%d" % chance.randrange(10)


def raising(data: bytes) -> bool:
    if data == b"7":
        raise KeyError(data)
    return True


def waiting(data: bytes) -> bool:
    end = time.process_time() + 30
    while data == b"7" and time.process_time() < end:
        pass
    return True


def swallowing(data: bytes) -> bool:
    try:
        return waiting(data)
    except Exception:
        return True


def growing(data: bytes) -> bool:
    return bool(len(bytearray(200_000_000)) if data == b"7" else 1)


def ending(data: bytes) -> bool:
    if data == b"7":
        os._exit(3)
    return True


@pytest.mark.parametrize(
    ("take", "how"),
    [
        (raising, "KeyError"),
        (waiting, "more than"),
        (swallowing, "more than"),
        (growing, " MB"),
        (ending, "ended with 3"),
    ],
)
def test_what_a_mutant_does_wrong_is_found(
    take: Callable[[bytes], bool], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, "LONGEST_S", 0.2)
    monkeypatch.setattr(fuzzing, "LARGEST_MB", 100.0)
    subject = Subject("test", (b"",), number_of, take)
    first = next(number for number in range(200) if fuzzing.mutant(subject, number) == b"7")

    outcome = fuzz(subject, first, first + 1)

    assert [failure.number for failure in outcome.failures] == [first]
    assert how in outcome.failures[0].how


def test_a_process_that_ends_leaves_the_rest_to_be_taken() -> None:
    outcome = fuzz(Subject("test", (b"",), number_of, ending), 0, 60)
    assert outcome.failed > 1
    assert fuzz(Subject("test", (b"",), number_of, lambda _: False), 0, 60).mutants == 60
