"""The first figure, in real time, while the parts of labs in virtual time are built."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigts import api, paths
from minigts.experiments import prepare
from minigts.machine.progress import Progress
from minigts.providers.uml.build import build_all, image, kernel_build
from minigts.session import campaign, first_figure
from minigts.session.first_figure import Piece

MULTIHOP = paths.project_root() / "experiments" / "multihop.yaml"
PING = {"name": "latency", "tool": "ping", "paths": ["first-to-each"], "options": {"count": 5}}
LONG = {"name": "tcp", "tool": "iperf3-tcp", "paths": ["first-to-each"], "options": {"duration": "40s"}}
ONE = {
    "name": "one",
    "title": "One",
    "seed": 1,
    "topology": "chain.yaml",
    "overlays": ["swarm", "none"],
    "repetitions": 2,
    "measurements": [PING, LONG],
    "claims": [{"latency": "as-declared"}],
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where no part is built."""
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MINIGTS_SHARED_CACHE", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chain.yaml").write_text("name: chain\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n")
    return tmp_path


def piece_of(experiment: dict[str, Any] | Path, *only: str, **options: Any) -> Piece | None:
    file = experiment
    if isinstance(experiment, dict):
        file = Path(f"{experiment['name']}.yaml")
        file.write_text(json.dumps(experiment))
    assert isinstance(file, Path)
    prepared = prepare.prepare_all([file], **({"paper": False, "quick": False, "only": only} | options))
    return first_figure.piece([file], prepared, "uml", only)


def test_of_the_readme_s_experiment_it_is_of_the_plain_hosts_and_takes_half_a_minute() -> None:
    found = piece_of(MULTIHOP)
    assert found is not None
    assert (found.overlay, found.measurements[0]) == ("none", "latency")
    assert found.seconds <= first_figure.LONGEST_S


def test_the_first_measurement_is_taken_whatever_it_takes_and_what_is_too_long_is_not() -> None:
    short, long = piece_of(ONE), piece_of({**ONE, "name": "long", "measurements": [LONG, PING]})
    assert short is not None
    assert long is not None
    assert (short.overlay, short.measurements) == ("swarm", ("latency",))
    assert long.measurements == ("tcp",)
    assert long.seconds > first_figure.LONGEST_S


def test_it_is_of_what_the_user_wants() -> None:
    found = piece_of(MULTIHOP, "swarm", "udp")
    assert found is not None
    assert (found.overlay, found.measurements) == ("swarm", ("udp",))


@pytest.mark.parametrize(
    ("experiment", "options"),
    [
        (ONE, {"time": "real"}),
        ({**ONE, "vary": {"chain.hosts": [2, 3]}}, {}),
        ({**ONE, "overlays": ["none"], "claims": [], "time": "virtual", "topology": "slow.yaml"}, {}),
    ],
    ids=["in real time already", "several labs", "a lab that is not possible in real time"],
)
def test_there_is_none_where_it_would_say_nothing(experiment: dict[str, Any], options: dict[str, Any]) -> None:
    Path("slow.yaml").write_text(
        "name: slow\nchain: {hosts: 2, link: {rtt: 10ms}}\ndefaults: {host: {processor: {frame: 10us}}}\n"
    )
    assert piece_of(experiment, **options) is None


def test_there_is_none_where_all_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "present", lambda: image.Image(Path()))
    monkeypatch.setattr(build_all, "uncompiled_products", lambda: ())
    assert kernel_build.present() is None
    assert piece_of(ONE) is None


def test_one_that_fails_ends_nothing_and_says_so() -> None:
    said: list[str] = []
    wanted = Piece(Path("there-is-none.yaml"), "uml", "none", ("latency",), 1.0)
    assert first_figure.measure(wanted, Path("results"), said.append) is None
    assert said[0] == "the hosts' image is there: a first figure meanwhile, in real time: latency over none"
    assert "there-is-none.yaml" in said[1]
    assert said[-1] == "the first figure failed (minigts run ended with 2); the build goes on"


def test_who_interrupts_the_build_has_the_figure_and_is_told_of_real_time(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    """`measure` and the build are not the point here: tests/live/test_first_minute.py has both."""

    def ensure(_say: Progress, meanwhile: Callable[[], object]) -> None:
        meanwhile()
        raise KeyboardInterrupt

    (place / "shown").mkdir()
    monkeypatch.setattr(campaign, "require_room", lambda *_: ())
    monkeypatch.setattr(build_all, "ensure", ensure)
    monkeypatch.setattr(first_figure, "measure", lambda *_: place / "shown")
    said: list[str] = []
    (place / "one.yaml").write_text(json.dumps(ONE))
    with pytest.raises(KeyboardInterrupt) as caught:
        api.run_experiment("one.yaml", say=said.append)
    assert f"the first figure, in real time on Debian's kernel: {place / 'shown'}" in said
    (note,) = caught.value.__notes__
    assert "minigts up TOPOLOGY --time real" in note
    assert not list((place / "results").glob("one-*"))
