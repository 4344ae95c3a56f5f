"""Evaluate GTS's statements to blocks with values: only variables, loops and texts that mean the same each time.

The evaluation of any file ends: the number of statements and the size of texts and numbers are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from lark import Token, Tree

from minigts.errors import InputError, Problem
from minigts.formats import gts_syntax
from minigts.formats.gts_syntax import MOST_ERRORS
from minigts.language.problems import did_you_mean, quote

Value: TypeAlias = "str | Decimal | list[Value]"

MOST_STATEMENTS = 20_000
"""The most statements that are evaluated, those of loops each time. A full mesh of sixty hosts has as many."""
MOST_ENTRIES = 1000
LONGEST_TEXT = 4000
LARGEST = Decimal(10) ** 15
_DEEPEST = 60
_PLACES = re.compile(r"\\(?P<escape>.)|\$\{(?P<value>[^{}]{0,200})\}|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?P<escape>.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}


@dataclass
class Attribute:
    """An attribute of a block."""

    name: str
    value: Value
    line: int

    @property
    def text(self) -> str:
        """The value as text: `100`, `AMS`."""
        return groovy_text(self.value)


@dataclass
class Adjacency:
    """Two ports that are joined, each by its resource's and its own id."""

    ends: tuple[str, str]
    line: int


@dataclass
class Block:
    """`host {…}`, with what stands in it."""

    kind: str
    line: int
    attributes: dict[str, Attribute] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    adjacencies: list[Adjacency] = field(default_factory=list)


class _Wrong(Exception):
    """What is wrong with a value, and on which line."""

    def __init__(self, line: int, message: str) -> None:
        self.line, self.message = line, message
        super().__init__(message)


Scope: TypeAlias = dict[str, Value]


def evaluate(top: Tree[Token], file: str, problems: list[Problem]) -> Block:
    """The whole topology as one block, whose kind is its name. What is wrong in it goes to `problems`.

    Raises InputError for too many statements or problems.
    """
    words = [child for child in top.children if isinstance(child, Tree) and child.data == "word"]
    block = Block(_word(words[-1]), top.meta.line)
    if len(words) > 2 or (len(words) == 2 and _word(words[0]) != "type"):
        problems.append(
            Problem(file, top.meta.line, "a topology begins with its name, as in `Pair {` or `type Pair {`")
        )
    _Evaluation(file, problems).body(_body(top), block, {})
    return block


def groovy_text(value: Value) -> str:
    """A value as Groovy puts it into a text."""
    if isinstance(value, list):
        return f"[{', '.join(map(groovy_text, value))}]"
    return value if isinstance(value, str) else f"{value:f}"


class _Evaluation:
    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file, self._problems = file, problems
        self._left = MOST_STATEMENTS

    def body(self, body: Tree[Token], block: Block, scope: Scope) -> None:
        """Evaluate all between two braces. A variable is valid until the closing one."""
        own = dict(scope)
        for statement in body.children:
            assert isinstance(statement, Tree)
            self._left -= 1
            if self._left < 0:
                message = f"its loops come to more than {MOST_STATEMENTS} statements, which no topology needs"
                raise InputError([*self._problems, Problem(self._file, statement.meta.line, message)])
            try:
                self._statement(statement, block, own)
            except _Wrong as wrong:
                self._problems.append(Problem(self._file, wrong.line, wrong.message))
                if len(self._problems) >= MOST_ERRORS:
                    raise InputError(self._problems) from None

    def _statement(self, statement: Tree[Token], block: Block, scope: Scope) -> None:
        children, line = statement.children, statement.meta.line
        match statement.data:
            case "attribute":
                self._attribute(block, str(children[0]), self._value(children[1], scope), line, scope)
            case "block":
                inner = Block(str(children[0]), line)
                block.blocks.append(inner)
                self.body(_body(statement), inner, scope)
            case "adjacency":
                first, second = (self._reference(each, scope) for each in _trees(statement, "reference"))
                block.adjacencies.append(Adjacency((first, second), line))
            case "variable":
                name = str(children[-2])
                if name in scope:
                    raise _Wrong(line, f"the variable {quote(name)} is there already; one that changes cannot be read")
                scope[name] = self._value(children[-1], scope)
            case _:
                name, values = self._rounds(statement, scope)
                self._left -= len(values)
                for value in values:
                    self.body(_body(statement), block, {**scope, name: value})

    def _attribute(self, block: Block, name: str, value: Value, line: int, scope: Scope) -> None:
        if name in scope and not block.attributes and name not in ("id", "location", "description"):
            raise _Wrong(line, f"the variable {quote(name)} is set again; one that changes cannot be read")
        if (first := block.attributes.get(name)) is not None:
            raise _Wrong(line, f"{quote(name)} is given twice, first on line {first.line}")
        block.attributes[name] = Attribute(name, value, line)

    def _reference(self, reference: Tree[Token], scope: Scope) -> str:
        words = [self._text(_word(each), scope, each.meta.line) for each in _trees(reference, "word")]
        words = ".".join(words).split(".")
        # Two words are a resource and its port, even if the resource is called `this`.
        return ".".join(words[1:] if words[0] == "this" and len(words) > 2 else words)

    def _rounds(self, statement: Tree[Token], scope: Scope) -> tuple[str, list[Value]]:
        """The variable of a loop, and its values one after the other."""
        children, line = statement.children, statement.meta.line
        if statement.data == "loop":
            return str(_trees(statement, "typed")[0].children[-1]), self._many(children[1], scope, line)
        if statement.data == "counting":
            return self._counted(statement, scope)
        over, method = self._value(children[0], scope), str(children[1])
        arguments, parameters = _trees(statement, "arguments"), _trees(statement, "parameters")
        name = str(parameters[0].children[0]) if parameters else "it"
        given = [self._value(each, scope) for each in arguments[0].children] if arguments else []
        if method == "each" and isinstance(over, list) and not given:
            return name, over
        if method == "times" and isinstance(over, Decimal) and not given:
            return name, self._from_to(Decimal(0), over - 1, line) if over >= 1 else []
        if method == "upto" and isinstance(over, Decimal) and given and isinstance(given[0], Decimal):
            return name, self._from_to(over, given[0], line) if over <= given[0] else []
        raise _Wrong(
            line, f"{quote(method)} of {_kind(over)}: loops are `(1..4).each {{…}}`, `4.times {{…}}`, `1.upto(4) {{…}}`"
        )

    def _counted(self, statement: Tree[Token], scope: Scope) -> tuple[str, list[Value]]:
        typed, first, tested, comparison, last, counted = statement.children[:6]
        assert isinstance(typed, Tree)
        name, line = str(typed.children[-1]), statement.meta.line
        if str(tested) != name or str(counted) != name:
            raise _Wrong(
                line,
                f"this loop has several variables: write `for (int {name[:40]} = 0; {name[:40]} < 4; {name[:40]}++)`",
            )
        least, most = self._number(first, scope), self._number(last, scope)
        most -= comparison == "<"
        return name, self._from_to(least, most, line) if least <= most else []

    def _many(self, value: object, scope: Scope, line: int) -> list[Value]:
        over = self._value(value, scope)
        if not isinstance(over, list):
            raise _Wrong(
                line, f"a loop goes over a list or from one number to another, as in 1..4, not over {_kind(over)}"
            )
        return over

    def _from_to(self, first: Decimal, last: Decimal, line: int) -> list[Value]:
        if first % 1 or last % 1 or abs(last - first) >= MOST_ENTRIES:
            raise _Wrong(
                line,
                f"from {quote(groovy_text(first))} to {quote(groovy_text(last))}: not up to {MOST_ENTRIES} whole "
                "numbers",
            )
        step = 1 if first <= last else -1
        return [Decimal(number) for number in range(int(first), int(last) + step, step)]

    def _number(self, tree: object, scope: Scope) -> Decimal:
        value = self._value(tree, scope)
        if not isinstance(value, Decimal):
            raise _Wrong(_line(tree), f"{_kind(value)} where a number is wanted")
        return value

    def _value(self, tree: object, scope: Scope, depth: int = 0) -> Value:
        assert isinstance(tree, Tree)
        line = tree.meta.line
        if depth > _DEEPEST:
            raise _Wrong(line, "values are nested too deep")
        below = [self._value(each, scope, depth + 1) for each in tree.children if isinstance(each, Tree)]
        leaves: dict[str, Callable[[str, Scope, int], Value]] = {
            "number": lambda text, _, line: _bounded(Decimal(text[:40]), line),
            "string": self._text,
            "named": self._named,
        }
        if (leaf := leaves.get(str(tree.data))) is not None:
            return leaf(str(tree.children[0]), scope, line)
        words = [str(each) for each in tree.children if isinstance(each, Token)]
        return self._put_together(str(tree.data), below, words, line)

    def _put_together(self, rule: str, values: list[Value], words: list[str], line: int) -> Value:
        """The value of a rule of `gts.lark`, from the values in it."""
        result: Value
        match rule:
            case "list":
                result = values[:MOST_ENTRIES]
            case "negative":
                result = _bounded(-_plain_number(values[0], line), line)
            case "range":
                first, last = (_plain_number(each, line) for each in values)
                end = last - 1 if words == ["..<"] else last
                result = self._from_to(first, end, line) if first < last or end == last else []
            case "indexed":
                result = self._indexed(values[0], values[1], line)
            case "size":
                result = self._size(values[0], words[0], line)
            case _:  # sum, product, only
                result = self._folded(values, words, line)
        return result

    def _named(self, name: str, scope: Scope, line: int) -> Value:
        if name in scope:
            return scope[name]
        if name in ("true", "false", "null"):
            return name
        raise _Wrong(
            line,
            f'no variable {quote(name)}{did_you_mean(name, [*scope][:MOST_ERRORS])}; a text is written "{name[:40]}"',
        )

    def _indexed(self, over: Value, index: Value, line: int) -> Value:
        if isinstance(over, list) and isinstance(index, Decimal) and not index % 1 and -len(over) <= index < len(over):
            return over[int(index)]
        raise _Wrong(
            line,
            f"no entry {quote(groovy_text(index))} in {_kind(over)}"
            f"{f' of {len(over)}' if isinstance(over, list) else ''}",
        )

    def _size(self, over: Value, method: str, line: int) -> Value:
        if method in ("size", "length") and not isinstance(over, Decimal):
            return Decimal(len(over))
        if method == "toUpperCase" and isinstance(over, str):
            return over.upper()[:LONGEST_TEXT]
        if method == "toLowerCase" and isinstance(over, str):
            return over.lower()[:LONGEST_TEXT]
        raise _Wrong(
            line, f"{quote(method)}() is Groovy that cannot be read; size(), toUpperCase() and toLowerCase() can"
        )

    def _folded(self, values: list[Value], operators: list[str], line: int) -> Value:
        result = values[0]
        for operator, value in zip(operators, values[1:], strict=True):
            if operator == "+" and (isinstance(result, str) or isinstance(value, str)):
                result = _short(groovy_text(result) + groovy_text(value), line)
            elif operator == "+" and isinstance(result, list) and isinstance(value, list):
                result = [*result, *value][:MOST_ENTRIES]
            else:
                result = _calculated(_plain_number(result, line), operator, _plain_number(value, line), line)
        return result

    def _text(self, literal: str, scope: Scope, line: int) -> str:
        """The content of a text in quotation marks; in double ones with the values of `$name` and `${name + 1}`."""
        if literal[:1] not in ("'", '"'):
            return literal
        marks = 3 if literal[:3] in ('"""', "'''") else 1
        inside = literal[marks:-marks]
        pattern = _PLACES if literal[0] == '"' else _ESCAPE

        def put(found: re.Match[str]) -> str:
            groups = found.groupdict()
            if (escape := groups["escape"]) is not None:
                return _ESCAPED.get(escape, escape)
            if (name := groups["name"]) is not None:
                return groovy_text(self._named(name, scope, line))
            tree = gts_syntax.value(groups["value"] or "")
            if tree is None:
                raise _Wrong(line, f"{quote(found[0])} cannot be read: what stands in it is no value")
            try:
                return groovy_text(self._value(tree, scope))
            except _Wrong as wrong:
                raise _Wrong(line, wrong.message) from None

        return _short(pattern.sub(put, inside), line)


def _calculated(a: Decimal, operator: str, b: Decimal, line: int) -> Decimal:
    if operator in ("/", "%") and not b:
        raise _Wrong(line, "a division by 0")
    match operator:
        case "+":
            return _bounded(a + b, line)
        case "-":
            return _bounded(a - b, line)
        case "*":
            return _bounded(a * b, line)
        case "/":
            return _bounded(a / b, line)
        case _:
            return a % b


def _bounded(value: Decimal, line: int) -> Decimal:
    if abs(value) > LARGEST:
        raise _Wrong(line, f"a number beyond {LARGEST:.0e}, which no topology needs")
    return value


def _plain_number(value: Value, line: int) -> Decimal:
    if not isinstance(value, Decimal):
        raise _Wrong(line, f"{_kind(value)} where a number is wanted")
    return value


def _short(text: str, line: int) -> str:
    if len(text) > LONGEST_TEXT:
        raise _Wrong(line, f"a text of more than {LONGEST_TEXT} characters")
    return text


def _kind(value: Value) -> str:
    return (
        "a list"
        if isinstance(value, list)
        else f"the text {quote(value)}"
        if isinstance(value, str)
        else quote(groovy_text(value))
    )


def _trees(tree: Tree[Token], rule: str) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree) and child.data == rule]


def _body(tree: Tree[Token]) -> Tree[Token]:
    return _trees(tree, "body")[0]


def _word(tree: Tree[Token]) -> str:
    return str(tree.children[0])


def _line(tree: object) -> int:
    return tree.meta.line if isinstance(tree, Tree) else 1


def all_blocks(block: Block) -> Iterator[Block]:
    """The block, and all below it."""
    yield block
    for each in block.blocks:
        yield from all_blocks(each)
