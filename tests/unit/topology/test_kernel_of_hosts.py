"""The kernel of a lab and of a host in a topology: the plan, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.topology.read.load import load_file, parse

HOSTS = "name: two\n{}hosts: {{a: {}, b: {{}}}}\nlinks:\n- {{ends: [a, b], delay: 1ms}}\n"


def kernels(text: str) -> dict[str, str]:
    return {each.name: each.kernel for each in parse(text, "t.yaml").machines}


@pytest.mark.parametrize(
    ("top", "of_a", "wanted"),
    [
        ("", "{}", {"a": "", "b": ""}),
        ("kernel: mine\n", "{}", {"a": "mine", "b": "mine"}),
        ("", "{kernel: 7.2.13}", {"a": "7.2.13", "b": ""}),
        ("kernel: mine\n", "{kernel: standard}", {"a": "", "b": "mine"}),
        ("kernel: mine\ndefaults: {host: {kernel: other}}\n", "{kernel: own}", {"a": "own", "b": "other"}),
    ],
)
def test_the_nearest_word_names_a_host_s_kernel(top: str, of_a: str, wanted: dict[str, str]) -> None:
    assert kernels(HOSTS.format(top, of_a)) == wanted


def test_switches_have_the_lab_s_kernel() -> None:
    text = (
        "name: s\nkernel: mine\nhosts: {a: {kernel: own}}\nswitches: {s1: {}}\nlinks: [{ends: [a, s1], delay: 1ms}]\n"
    )

    assert kernels(text) == {"a": "own", "s1": "mine"}


def test_the_standard_kernel_is_no_part_of_a_plan() -> None:
    """Plans without a kernel by name keep their bytes."""
    plain, said = (parse(HOSTS.format(top, "{}"), "t.yaml") for top in ("", "kernel: standard\n"))

    assert "kernel" not in plain.model_dump_json().replace("kernels", "")
    assert plain == said


def test_every_unknown_kernel_is_refused_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "name: two\nkernel: one\nhosts:\n  a:\n    kernel: two\n  b: {}\nlinks:\n- {ends: [a, b], delay: 1ms}\n"
    )

    with pytest.raises(InputError) as refused:
        load_file(file, wrong_kernel=lambda name: f"no kernel {name}")

    assert [(each.line, each.message) for each in refused.value.problems] == [
        (2, "kernel: no kernel one"),
        (5, "hosts.a.kernel: no kernel two"),
    ]


def test_a_kernel_in_place_of_the_file_s(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(HOSTS.format("kernel: one\n", "{kernel: own}"))

    plan = load_file(file, values={"kernel": "two"}).plan

    assert {each.name: each.kernel for each in plan.machines} == {"a": "own", "b": "two"}


def test_a_host_that_is_added_later_has_the_lab_s_kernel(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(HOSTS.format("kernel: one\n", "{}"))

    assert load_file(file).defaults == {"host": {"kernel": "one"}}


@pytest.mark.parametrize("written", ["a/b", "-x", "x" * 41, "[a]"])
def test_what_is_no_name_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="kernel"):
        parse(HOSTS.format(f"kernel: {written}\n", "{}"), "t.yaml")
