"""YAML text to plain data, with the line of every value kept.

Built on the parser's events and not on its loader: no type is guessed (`no` and `on` are good host names), nothing
recurses, and what could explode (aliases, depth) is refused as soon as it is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from minigts.errors import InputError, Problem
from minigts.foreign import UNPRINTABLE
from minigts.language.problems import Finding, Location, path_of, quote
from minigts.language.source import Language

Data: TypeAlias = "str | list[Data] | dict[str, Data] | None"

DEEPEST = 12
MOST_REPEATED = 50_000
"""How many values, keys and ends of lists and mappings all aliases of a file may stand for together."""
_MERGE = "<<"
_ENDING = (ScalarEvent, AliasEvent, SequenceEndEvent, MappingEndEvent)
_NOTHING = ("", "~", "null", "Null", "NULL")


@dataclass
class Tree:
    """A document. Scalars are strings, an empty one is None; `lines` has the line of every location, from 1."""

    data: Data = None
    lines: dict[Location, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    """Notes on what a file in another language has and a lab ignores."""

    def line(self, location: Location) -> int:
        """The line of `location`, or of the nearest element around it that has one."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 0)

    def problem(self, file: str, finding: Finding) -> Problem:
        """A finding with its line."""
        where, message = finding
        path = path_of(where)
        return Problem(file, max(1, self.line(where)), f"{path}: {message}" if path else message)


@dataclass
class _Open:
    """A list or mapping that has not ended yet. `key` is the mapping's key that waits for its value."""

    location: Location
    data: list[Data] | dict[str, Data]
    key: str | None = None


def read_tree(text: str, file: str, language: Language) -> Tree:
    """`text` as data with lines. Duplicate keys and unprintable characters are in `problems`.

    Raises InputError for what ends the reading: broken YAML, an alias, a tag, deep nesting, a second document, no
    content. Where the language has aliases, each is read as what its anchor marks, up to MOST_REPEATED values in all,
    and a key `<<` as the keys of the mappings there that are not given beside it.
    """
    tree = Tree()
    documents = 0
    stack: list[_Open] = []
    events = _events(text, file)
    for event in events if language.instead_of_aliases else _repeated(events, file):
        if isinstance(event, DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _stop(event, file, f"a second document starts here; one file holds one {language.name}")
        elif isinstance(event, NodeEvent):
            _refuse(event, file, len(stack), language)
            _take(event, tree, stack, file)
        elif isinstance(event, SequenceEndEvent | MappingEndEvent):
            stack.pop()
    if tree.data is None and not tree.problems:
        raise InputError([Problem(file, 0, f"nothing in it; {language.one} starts with {language.opening}")])
    return tree if language.instead_of_aliases else _merged(tree, file)


class _Anchors:
    """What the anchors of a document mark, as events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._marked: dict[str, list[Event]] = {}
        self._unfinished: list[tuple[str, list[Event], int]] = []
        """The anchors whose values have begun: their events so far, and the depth at which they end."""
        self._depth = self._repeated = 0

    def instead_of(self, event: Event) -> list[Event]:
        """The events that an alias stands for; any other event as it is."""
        given = self._of_alias(event) if isinstance(event, AliasEvent) else [event]
        if not isinstance(event, AliasEvent) and isinstance(event, NodeEvent) and event.anchor:
            self._marked.pop(event.anchor, None)
            self._unfinished.append((event.anchor, [], self._depth))
        for _, seen, _ in self._unfinished:
            seen.extend(given)
        self._depth += isinstance(event, SequenceStartEvent | MappingStartEvent)
        self._depth -= isinstance(event, SequenceEndEvent | MappingEndEvent)
        while isinstance(event, _ENDING) and self._unfinished and self._unfinished[-1][2] == self._depth:
            anchor, seen, _ = self._unfinished.pop()
            self._marked[anchor] = seen
        return given

    def _of_alias(self, alias: AliasEvent) -> list[Event]:
        if alias.anchor not in self._marked:
            raise _stop(alias, self._file, f"alias {quote(alias.anchor)}: no value before it has this anchor")
        given = self._marked[alias.anchor]
        self._repeated += len(given)
        if self._repeated > MOST_REPEATED:
            raise _stop(alias, self._file, f"aliases repeat more than {MOST_REPEATED} values")
        return given


def _repeated(events: Iterable[Event], file: str) -> Iterator[Event]:
    """The events, with those that an anchor marks in place of each alias."""
    anchors = _Anchors(file)
    for event in events:
        yield from anchors.instead_of(event)


def _merged(tree: Tree, file: str) -> Tree:
    """The document without keys `<<`. A key of its own wins, then one of the first mapping that has it."""
    made = Tree(lines={(): tree.line(())}, problems=[*tree.problems], notes=tree.notes)

    def walk(data: Data, before: Location, after: Location) -> Data:
        made.lines[after] = tree.line(before)
        if isinstance(data, list):
            return [walk(each, (*before, index), (*after, index)) for index, each in enumerate(data)]
        if not isinstance(data, dict):
            return data
        found: dict[str, Data] = {}
        for mapping, where in _mappings(data, before):
            for key, each in mapping.items():
                if key != _MERGE and key not in found:
                    found[key] = walk(each, (*where, key), (*after, key))
        return found

    def _mappings(data: dict[str, Data], where: Location) -> Iterator[tuple[dict[str, Data], Location]]:
        yield data, where
        given = data.get(_MERGE)
        place: Location = (*where, _MERGE)
        several = enumerate(given) if isinstance(given, list) else ((None, given),) if _MERGE in data else ()
        for index, each in several:
            at: Location = place if index is None else (*place, index)
            if isinstance(each, dict):
                yield from _mappings(each, at)
            else:
                made.problems.append(tree.problem(file, (at, f"{quote(each)} where a mapping to merge is wanted")))

    made.data = walk(tree.data, (), ())
    return made


def _events(text: str, file: str) -> Iterator[Event]:
    line = 1
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            line = event.start_mark.line + 1
            yield event
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        raise InputError([Problem(file, mark.line + 1 if mark else line, f"not YAML: {reason}")]) from None
    except ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise InputError([Problem(file, line, f"not YAML: unacceptable character #x{error.character:04x}")]) from None
    except (YAMLError, ValueError, OverflowError, LookupError, AttributeError, TypeError, AssertionError):
        # For some invalid text, such as "\\UFFFFFFFF", the scanner raises Python's errors and not its own.
        message = "not YAML: an escape or a value that cannot be read, here or soon after"
        raise InputError([Problem(file, line, message)]) from None


def _stop(event: Event, file: str, message: str) -> InputError:
    return InputError([Problem(file, event.start_mark.line + 1, message)])


def _refuse(event: NodeEvent, file: str, depth: int, language: Language) -> None:
    if isinstance(event, AliasEvent):
        hint = f"aliases are not part of the language; {language.instead_of_aliases}"
        raise _stop(event, file, f"alias {quote(event.anchor)}: {hint}")
    tag = getattr(event, "tag", None)
    if tag not in (None, "!"):
        raise _stop(event, file, f"tag {quote(tag)}: tags are not part of the language")
    if depth >= DEEPEST:
        raise _stop(event, file, f"nested deeper than {DEEPEST} levels, which no {language.name} needs")


def _take(event: NodeEvent, tree: Tree, stack: list[_Open], file: str) -> None:
    """Put one scalar, or the start of a list or mapping, where it belongs."""
    line = event.start_mark.line + 1
    inside = stack[-1] if stack else None
    if inside and isinstance(inside.data, dict) and inside.key is None:
        _take_key(event, tree, inside, file)
        return
    value: Data
    if isinstance(event, ScalarEvent):
        value = None if event.style is None and event.value in _NOTHING else _shown_at_least(event.value)
    else:
        value = [] if isinstance(event, SequenceStartEvent) else {}
    location: Location = ()
    if inside is None:
        tree.data = value
    elif isinstance(inside.data, dict) and inside.key is not None:
        location = (*inside.location, inside.key)
        inside.data[inside.key] = value
        inside.key = None
        line = tree.lines[location]  # a value counts as written where its key is
    elif isinstance(inside.data, list):
        location = (*inside.location, len(inside.data))
        inside.data.append(value)
    tree.lines[location] = line
    _require_printable(event, location, tree, file)
    if isinstance(value, list | dict):
        stack.append(_Open(location, value))


def _take_key(event: NodeEvent, tree: Tree, inside: _Open, file: str) -> None:
    if not isinstance(event, ScalarEvent):
        kind = "mapping" if isinstance(event, MappingStartEvent) else "list"
        raise _stop(event, file, f"a {kind} cannot be a key; write `key: value`")
    key = _shown_at_least(str(event.value))
    location = (*inside.location, key)
    line = event.start_mark.line + 1
    if isinstance(inside.data, dict) and key in inside.data:
        first = tree.lines[location]
        message = f"{path_of(location)}: given twice, first on line {first}"
        tree.problems.append(Problem(file, line, message))
    tree.lines[location] = line
    inside.key = key
    _require_printable(event, location, tree, file)


def _shown_at_least(text: str) -> str:
    """The text with replacements for unprintable characters, which are refused already, so that other checks can read
    it."""
    return UNPRINTABLE.sub("\ufffd", text)


def _require_printable(event: NodeEvent, location: Location, tree: Tree, file: str) -> None:
    """Refuse unprintable characters, since any text may end on a terminal, in a manifest, in a page."""
    if isinstance(event, ScalarEvent) and (found := UNPRINTABLE.search(event.value)):
        line, where = event.start_mark.line + 1, path_of(location) or quote(event.value)
        message = f"{where}: the character {found[0]!a} cannot be shown: write text that can"
        tree.problems.append(Problem(file, line, message))
