"""The program that asks Services for pages says which requests were lost one after another."""

from __future__ import annotations

import pytest
from host_programs import loaded

REQUESTS = loaded("requests")


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([], []),
        ([1.0], [[1.0, 1.0]]),
        ([10.0, 10.2, 10.4, 11.0, 20.0, 20.2], [[10.0, 10.4], [11.0, 11.0], [20.0, 20.2]]),
    ],
)
def test_requests_that_are_lost_one_after_another_are_one_span(
    moments: list[float], expected: list[list[float]]
) -> None:
    assert REQUESTS.spans(moments, 0.2) == expected
