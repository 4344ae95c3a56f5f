"""A flap of a link that takes a static route of FRR's for good (FRR #18784): the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.conftest import quiet, state_directory
from live.test_bisected_kernels import Quiet
from minigts import paths
from minigts.report.read import ReportResults, read
from minigts.results.schema import SAMPLES
from minigts.session import campaign

pytestmark = [pytest.mark.uml, pytest.mark.virtual, pytest.mark.nightly]
FILE = paths.project_root() / "docs" / "examples" / "frr" / "flaps.yaml"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ReportResults]:
    """The experiment of the page, twice."""
    folders = [tmp_path_factory.mktemp(word) for word in ("first", "second")]
    with state_directory(tmp_path_factory.mktemp("state")):
        return [measured(folder) for folder in folders]


def measured(folder: Path) -> ReportResults:
    with campaign.open_campaign(campaign.CampaignRequest(files=(FILE,)), quiet) as opened:
        return read(opened.measure(folder, Quiet()).folder)


def test_flaps_below_ten_milliseconds_take_the_route(runs: list[ReportResults]) -> None:
    assert [[claim.verdict for claim in run.claims] for run in runs] == [["held"] * 3] * 2


def test_two_runs_have_the_same_samples_and_one_course(runs: list[ReportResults]) -> None:
    samples = [(run.directory / SAMPLES).read_bytes() for run in runs]
    assert samples[0] == samples[1]
    courses = [run.manifest.courses if run.manifest else () for run in runs]
    assert courses[0] == courses[1]
    assert len(courses[0]) == 1
