"""An experiment's file, read with its line numbers: every problem at once, as `file:line: where: what`."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from minigts.errors import InputError, Problem
from minigts.experiments import model
from minigts.experiments.model import Experiment

LONGEST_BYTES = 100_000
"""An experiment is a page of text; whatever is longer is something else."""
DEEPEST = 20
"""Levels of nesting. The YAML library's time grows with the square of the depth."""


def load(path: Path) -> Experiment:
    """The experiment in `path`. Raises InputError with every problem found."""
    return parse(_text(path), str(path))


def parse(text: str, name: str) -> Experiment:
    """The experiment in `text`; `name` is the file's name in messages. Raises InputError."""
    document = _document(text, name)
    if not isinstance(document, CommentedMap):
        raise InputError([Problem(name, 0, "holds no experiment; it begins with `name:`")])
    try:
        return Experiment.model_validate(_plain(document))
    except ValidationError as error:
        entries = [entry for entry in error.errors() if entry["type"] != "too_short" or not entry["input"]]
        raise InputError([_problem(name, document, entry) for entry in entries]) from error


def topology_file(experiment: Experiment, path: Path) -> Path:
    """Where the experiment's topology lies: seen from the working directory, else from the project around `path`.

    Raises InputError when there is no such file.
    """
    places = [Path(experiment.topology), path.resolve().parent.parent / experiment.topology]
    for place in places:
        if place.is_file():
            return place
    looked = " or ".join(str(place) for place in places)
    line = _line_of_key(_text(path), str(path), "topology")
    raise InputError([Problem(str(path), line, f"topology: no file {looked}")])


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LONGEST_BYTES:
            raise InputError([Problem(str(path), 0, f"is longer than {LONGEST_BYTES // 1000} kB: no experiment")])
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError([Problem(str(path), 0, "is not text in UTF-8")]) from error
    except OSError as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error.strerror}")]) from error


def _document(text: str, name: str) -> object:
    """The YAML document with line marks. Raises InputError."""
    try:
        _refuse_traps(text, name)
        return YAML(typ="rt", pure=True).load(io.StringIO(text))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        what = (error.problem or "broken").splitlines()[0]
        raise InputError([Problem(name, line, f"is not YAML: {what}")]) from error
    except YAMLError as error:
        raise InputError([Problem(name, 0, f"is not YAML: {str(error).splitlines()[0]}")]) from error
    except (RecursionError, ValueError) as error:
        raise InputError([Problem(name, 0, "is not YAML that can be read")]) from error


def _refuse_traps(text: str, name: str) -> None:
    """Refuse aliases, which hide what is meant and can explode, and a depth that no experiment has."""
    depth = 0
    for event in YAML(typ="rt", pure=True).parse(io.StringIO(text)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if isinstance(event, AliasEvent):
            raise InputError([Problem(name, event.start_mark.line + 1, "YAML aliases are not allowed")])
        if depth > DEEPEST:
            raise InputError([Problem(name, event.start_mark.line + 1, f"is nested deeper than {DEEPEST} levels")])


def _line_of_key(text: str, name: str, key: str) -> int:
    document = _document(text, name)
    return _line(document, (key,)) if isinstance(document, CommentedMap) else 0


def _plain(value: Any) -> Any:
    """The same without ruamel's own types, which pydantic would take for foreign."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def _problem(name: str, document: CommentedMap, entry: ErrorDetails) -> Problem:
    where = _where(document, entry["loc"])
    message = _message(entry)
    return Problem(name, _line(document, entry["loc"]), f"{where}: {message}" if where else message)


def _message(entry: ErrorDetails) -> str:
    kind, key = entry["type"], str(entry["loc"][-1]) if entry["loc"] else ""
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(key, sorted(set(_keys())), n=1)
        return "unknown key" + (f"; did you mean {close[0]!r}?" if close else "")
    if kind == "missing":
        return "is missing"
    if kind == "union_tag_not_found":
        return "has no `tool:`"
    if kind == "union_tag_invalid":
        known = entry["ctx"]["expected_tags"].replace("'", "")
        return f"no tool {entry['ctx']['tag']!r}; tools are {known}"
    if kind == "literal_error":
        return f"{entry['input']!r} is unknown; it is {entry['ctx']['expected']}"
    return entry["msg"].removeprefix("Value error, ")


def _keys() -> Iterator[str]:
    """Every key that the language knows."""
    for value in vars(model).values():
        if isinstance(value, type) and issubclass(value, BaseModel):
            for name, field in value.model_fields.items():
                yield field.alias or name


def _steps(document: Any, loc: Sequence[int | str]) -> Iterator[tuple[Any, int | str, bool]]:
    """Each step of a pydantic location that the document has; a union's tag is a step that it has not."""
    here = document
    for index, step in enumerate(loc):
        if _has(here, step):
            yield here, step, True
            here = here[step]
        elif index == len(loc) - 1 and isinstance(here, CommentedMap):
            yield here, step, False


def _has(here: Any, step: int | str) -> TypeGuard[CommentedMap | CommentedSeq]:
    if isinstance(here, CommentedMap):
        return step in here
    return isinstance(here, CommentedSeq) and isinstance(step, int) and step < len(here)


def _where(document: Any, loc: Sequence[int | str]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for _, step, _ in _steps(document, loc))
    return text.removeprefix(".")


def _line(document: Any, loc: Sequence[int | str]) -> int:
    """The line, from 1, of the deepest step that the document has."""
    line = 1
    for here, step, present in _steps(document, loc):
        if present:
            mark = here.lc.key(step) if isinstance(here, CommentedMap) else here.lc.item(step)
            line = mark[0] + 1
    return line
