from __future__ import annotations

import pytest
from experiment_lab import recorded

from minigts.experiments import counters
from minigts.tools.base import ParseError


def test_processor_use_of_a_host_and_its_busiest_group() -> None:
    use = counters.processor_use(recorded("counters-uml.txt"))
    assert use.intervals >= 5
    assert 60 <= use.host_percent <= 110
    assert max(use.groups_percent, key=lambda name: use.groups_percent[name]).startswith("docker/")


def test_processor_use_of_outer_processes_is_their_seconds() -> None:
    use = counters.processor_use("@ 1.0\nprocess 5.00\n@ 1.5\nprocess 5.25\n@ 2.0\nprocess 5.5\n@ 2.")
    assert (use.host_percent, use.groups_percent) == (50.0, {})


WATCHED = """\
@ 10.00
process 1.00
@ 11.00
process 1.10
@ 12.00
process 1.20
measured
@ 13.00
process 2.10
measured
@ 14.00
process 3.00
measured
@ 15.00
process 3.20
@ 16.00
"""


def test_only_the_time_that_is_marked_counts_for_per_cents() -> None:
    assert counters.processor_use(WATCHED) == counters.ProcessorUse(pytest.approx(90.0), pytest.approx(2.2), {}, 2)


def test_use_over_time_begins_with_the_first_mark() -> None:
    assert counters.processor_over_time(WATCHED) == (
        (-1.5, pytest.approx(10.0)),
        (-0.5, pytest.approx(10.0)),
        (0.5, pytest.approx(90.0)),
        (1.5, pytest.approx(90.0)),
        (2.5, pytest.approx(20.0)),
    )


def test_counters_of_before_have_no_series() -> None:
    assert counters.processor_over_time(recorded("counters-uml.txt")) == ()


def test_offloads_are_read_back_with_what_is_fixed() -> None:
    features = counters.ethtool_features(recorded("ethtool-container.txt"))
    assert counters.device(recorded("ethtool-container.txt")) == "eth0"
    assert features["tcp-segmentation-offload"] == counters.Offload(on=False, fixed=False)
    assert features["large-receive-offload"] == counters.Offload(on=False, fixed=True)


def test_stress_says_for_how_long_it_really_ran() -> None:
    run = counters.stress_ng(recorded("stress-ng.txt"))
    assert (run.stressor, run.operations, run.seconds, run.user_s) == ("cpu", 1098, 1.02, 0.94)


@pytest.mark.parametrize(
    "text", ["", "@ 1.0\nstat cpu 1 2 3\n", "@ x\nprocess 1\n@ 2\nprocess 2\n", "Segmentation fault"]
)
def test_counters_that_say_nothing_are_one_error(text: str) -> None:
    for parser in (counters.processor_use, counters.stress_ng, counters.ethtool_features):
        with pytest.raises(ParseError):
            parser(text)
