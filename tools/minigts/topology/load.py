"""A topology file to its plan, or to every problem in it at once.

A file is checked in three steps whose findings are reported together: the text (`tree`), each value (`model`), the
whole (`checks`). Whatever the file holds, the outcome is a plan or an `InputError`.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from minigts.errors import InputError, Problem
from minigts.topology.build import build
from minigts.topology.checks import check
from minigts.topology.draft import draft
from minigts.topology.model import Topology, did_you_mean
from minigts.topology.plan import Plan
from minigts.topology.tree import Data, Finding, Location, Tree, path_of, read_tree
from minigts.topology.units import shown

LARGEST_BYTES = 256_000
"""A full mesh of a hundred hosts fits; the pure-Python YAML parser takes some two seconds for as much."""

MOST_PROBLEMS = 100


def load(path: str | Path, *, known_overlays: Collection[str] | None = None) -> Plan:
    """The plan of the topology file `path`. `known_overlays` are the names `overlay:` may have; None allows any.

    Raises InputError with every problem, each with its line.
    """
    return parse(read_text(path), str(path), known_overlays=known_overlays)


def read_text(path: str | Path) -> str:
    """The text of an input file. Raises InputError: not there, not a file, too large, not text."""
    data = _read_bytes(Path(path))
    if b"\0" in data:
        raise _refused(path, "binary data, not a topology", data[: data.index(b"\0")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, "not UTF-8 text", data[: error.start]) from None


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():  # a device or a pipe may never end
            raise _refused(path, _not_a_file(path))
        with path.open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _refused(path, f"cannot be read: {reason}") from None
    if len(data) > LARGEST_BYTES:
        raise _refused(path, f"larger than {LARGEST_BYTES // 1000} kB, which no topology needs")
    return data


def _refused(path: str | Path, message: str, before: bytes | None = None) -> InputError:
    """The one problem of a file that is not read on; `before` is what precedes it, when it has a place."""
    return InputError([Problem(str(path), 0 if before is None else before.count(b"\n") + 1, message)])


def _not_a_file(path: Path) -> str:
    if path.is_dir():
        return "is a directory, not a file"
    return "is not a regular file" if path.exists() else "no such file"


def parse(text: str, file: str, *, known_overlays: Collection[str] | None = None) -> Plan:
    """As `load`, from text; `file` is the name that messages carry. Pure."""
    tree = read_tree(text, file)
    if tree.data is None:
        raise InputError([Problem(file, 0, "nothing in it; a topology starts with `name:` and `hosts:`")])
    drafted = draft(tree.data)
    topology, findings = _validate(tree.data)
    findings += check(tree.data, drafted, known_overlays)
    problems = [problem(file, tree, finding) for finding in findings]
    problems = sorted({*tree.problems, *problems})
    if topology is None or problems:
        raise InputError(_bounded(problems, file))
    return build(topology, drafted)


def problem(file: str, tree: Tree, finding: Finding) -> Problem:
    """A finding with its line."""
    where, message = finding
    path = path_of(where)
    return Problem(file, max(1, tree.line(where)), f"{path}: {message}" if path else message)


def _bounded(problems: list[Problem], file: str) -> list[Problem]:
    """Enough problems to mend the file by; rubbish has one in every line."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    left = len(problems) - MOST_PROBLEMS
    last = problems[MOST_PROBLEMS - 1].line
    return [*problems[:MOST_PROBLEMS], Problem(file, last, f"… and {left} more problems from here on")]


def _validate(data: Data) -> tuple[Topology | None, list[Finding]]:
    try:
        return Topology.model_validate(data), []
    except ValidationError as error:
        return None, findings_of(error, Topology)


def findings_of(error: ValidationError, root: type[BaseModel]) -> list[Finding]:
    """What a document of the model `root` has wrong, in the language's words, each with its place."""
    return [(_where(detail), _message(detail, root)) for detail in error.errors(include_url=False)]


def _where(detail: ErrorDetails) -> Location:
    # A missing key has no line: it is reported where its mapping starts.
    return detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]


def _message(detail: ErrorDetails, root: type[BaseModel]) -> str:
    """pydantic's words in those of the language."""
    last = detail["loc"][-1] if detail["loc"] else ""
    match detail["type"]:
        case "value_error":
            return str(detail["ctx"]["error"])
        case "missing":
            return f"{str(last)!r} is missing"
        case "extra_forbidden":
            known = [each.alias or name for name, each in _model_at(detail["loc"][:-1], root).model_fields.items()]
            return f"unknown key{did_you_mean(str(last), known) or '; keys here are ' + ', '.join(known)}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"{_found(detail)} where a mapping is wanted, as in `key: value`"
        case "tuple_type" | "list_type":
            return f"{_found(detail)} where a list is wanted, as in `- …`"
        case _:
            return detail["msg"]


def _found(detail: ErrorDetails) -> str:
    return shown(detail["input"])


def _model_at(location: Location, root: type[BaseModel]) -> type[BaseModel]:
    """The model of the mapping at `location`; indices and host names stay within a list's or mapping's model."""
    model = root
    for part in location:
        field = model.model_fields.get(str(part))
        model = next(_models_in(field.annotation), model) if field else model
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)
