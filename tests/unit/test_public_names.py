"""Names are nouns and verbs of the field: no public function is a participle or begins with a preposition, and no
public class has the name of another one in rooms that import each other.

`names_allowed.txt` has the names of before, which may only become fewer: a name that is gone, or is another one now,
has to leave the list, too. `python tests/unit/test_public_names.py` writes the list of today, for whoever takes names
out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tools" / "minigts"
LIST = Path(__file__).with_name("names_allowed.txt")
IRREGULAR = frozenset(
    [
        "begun",
        "bound",
        "broken",
        "built",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "lent",
        "made",
        "met",
        "said",
        "seen",
        "sent",
        "shown",
        "spent",
        "sworn",
        "taken",
        "told",
        "written",
    ]
)
NO_PARTICIPLES = frozenset(["embed", "feed", "need", "seed", "shed", "speed"])
PREPOSITIONS = frozenset(
    [
        "above",
        "after",
        "against",
        "among",
        "as",
        "at",
        "before",
        "behind",
        "below",
        "beside",
        "between",
        "by",
        "for",
        "from",
        "in",
        "into",
        "of",
        "off",
        "on",
        "over",
        "per",
        "through",
        "to",
        "under",
        "until",
        "with",
        "within",
        "without",
    ]
)


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES)


def is_odd(name: str) -> bool:
    """Whether a function's name begins with a preposition, or is a participle, alone or with a preposition: `taken`,
    `laid_over`, and not `declared_bytes`, which is a noun."""
    first, *rest = name.split("_")
    return first in PREPOSITIONS or (is_participle(first) and (not rest or rest[0] in PREPOSITIONS))


def definitions() -> Iterator[tuple[str, str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Each public function and class of a module, and each public method of its classes, with the module's name and its
    own name in it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                yield module, node.name, node
                for inner in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name[0] != "_":
                        yield module, f"{node.name}.{inner.name}", inner


def describes(node: ast.AST) -> bool:
    """Whether it is a property, whose name is that of a state, or makes an object of another (`of_plan`)."""
    decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
    return any("property" in each or each == "classmethod" for each in decorators)


def odd_names() -> set[str]:
    found, classes = set[str](), defaultdict[str, list[str]](list)
    for module, name, node in definitions():
        if isinstance(node, ast.ClassDef):
            classes[name].append(module)
        elif is_odd(node.name) and not describes(node):
            found.add(f"{module}.{name}")
    return found | {f"class {name}: {', '.join(modules)}" for name, modules in classes.items() if len(modules) > 1}


def test_a_new_name_is_a_noun_or_a_verb_and_a_class_has_its_own() -> None:
    assert sorted(odd_names() - {*LIST.read_text(encoding="utf-8").splitlines()}) == []


def test_what_is_gone_has_left_the_list() -> None:
    listed = LIST.read_text(encoding="utf-8").splitlines()
    assert listed == sorted({*listed})
    assert sorted({*listed} - odd_names()) == []


def words_of(name: str) -> set[str]:
    """Its words, of a plural the singular."""
    return {word.removesuffix("s") for word in re.split(r"[_\W]+", name) if len(word) > 2}


def unnamed_tests() -> list[str]:
    """The files of tests of a room whose names have no word of the room, or of a module or folder in it, and so none of
    a verb."""
    found = []
    for room in sorted(each for each in PACKAGE.iterdir() if each.is_dir()):
        inside = (part for file in room.rglob("*.py") for part in file.relative_to(PACKAGE).with_suffix("").parts)
        known = set().union(*map(words_of, inside))
        tests = sorted((Path(__file__).parent / room.name).glob("test_*.py"))
        found += [f"{room.name}/{test.name}" for test in tests if not known & words_of(test.stem.removeprefix("test_"))]
    return found


def test_a_file_of_tests_is_named_after_a_module_or_a_verb_of_its_room() -> None:
    assert unnamed_tests() == []


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("taken", True),
        ("laid_over", True),
        ("of_lab", True),
        ("to_json", True),
        ("declared_bytes", False),
        ("seed", False),
    ],
)
def test_which_names_are_odd(name: str, odd: bool) -> None:
    assert is_odd(name) is odd


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in sorted(odd_names())))
