"""What faults a module can be given: each is still a program, and another one."""

from __future__ import annotations

import ast

import pytest

import faults

SOURCE = b'''"""Left alone."""
LIMIT = 3


def chosen(values: list[int], least: int = 0) -> int | None:
    """Left alone, too."""
    if not values or (least < 2) is True:
        return None
    print(f"{len(values)} of them", end="")
    if max(values) > LIMIT:
        raise ValueError("left alone")
    return sum(values) + least
'''


def test_each_fault_is_another_program_of_as_many_lines() -> None:
    made = [fault.into(SOURCE) for fault in faults.faults(SOURCE)]
    assert len(set(made)) == len(made) > 10
    original = ast.dump(ast.parse(SOURCE))
    assert all(ast.dump(ast.parse(text)) != original for text in made)
    assert {text.count(b"\n") for text in made} == {SOURCE.count(b"\n")}


@pytest.mark.parametrize(
    "fault",
    [
        "2: LIMIT = 3 \N{RIGHTWARDS ARROW} LIMIT = (3 + 1)",
        "5: def chosen(values: list[int], least: int = 0) -> int | None: "
        "\N{RIGHTWARDS ARROW} def chosen(values: list[int], least: int = (0 + 1)) -> int | None:",
        "7: if not values or (least < 2) is True: \N{RIGHTWARDS ARROW} if not values and (least < 2) is True:",
        "7: if not values or (least < 2) is True: \N{RIGHTWARDS ARROW} if not values or (least <= 2) is True:",
        "7: if not values or (least < 2) is True: \N{RIGHTWARDS ARROW} if (values) or (least < 2) is True:",
        "7: if not values or (least < 2) is True: \N{RIGHTWARDS ARROW} if not values or (least < 2) is not True:",
        '9: print(f"{len(values)} of them", end="") \N{RIGHTWARDS ARROW} print(f"{len(values)} of them")',
        '9: print(f"{len(values)} of them", end="") \N{RIGHTWARDS ARROW} None',
        "10: if max(values) > LIMIT: \N{RIGHTWARDS ARROW} if min(values) > LIMIT:",
        "12: return sum(values) + least \N{RIGHTWARDS ARROW} return sum(values) - least",
        "12: return sum(values) + least \N{RIGHTWARDS ARROW} return None",
    ],
)
def test_a_fault_is_said_with_its_line_before_and_after(fault: str) -> None:
    assert fault in [each.in_words(SOURCE) for each in faults.faults(SOURCE)]


def test_what_only_tells_people_something_is_left_alone() -> None:
    said = "\n".join(fault.into(SOURCE).decode() for fault in faults.faults(SOURCE))
    assert said.count("eft alone") == 3 * len(faults.faults(SOURCE))
