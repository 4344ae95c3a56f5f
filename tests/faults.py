"""Faults that a module can be given, one at a time: a comparison turned, a call left out, a number one too many.

A fault is a piece of the source with another in its place, so that every other line stays as it is. What only tells
people something (docstrings, annotations, the words of an error) is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
SUMS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
TURNED = {"min": "max", "max": "min", "any": "all", "all": "any"}
"""Functions that take the same and answer otherwise."""


@dataclass(frozen=True, order=True)
class Fault:
    """From byte `begin` to byte `end` of the source stands `instead`; `line` is counted from 1."""

    line: int
    begin: int
    end: int
    instead: str

    def into(self, source: bytes) -> bytes:
        return source[: self.begin] + self.instead.encode() + source[self.end :]

    def in_words(self, source: bytes) -> str:
        """`3: a < b → a <= b`, with the line as it was and as it is."""
        was, now = (text.decode().splitlines() for text in (source, self.into(source)))
        return f"{self.line}: {was[self.line - 1].strip()} → {now[self.line - 1].strip()}"


def faults(source: bytes) -> list[Fault]:
    """Each fault that the module can be given, in order of their places."""
    return sorted(set(_Finder(source).found(ast.parse(source))))


class _Finder:
    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def found(self, node: ast.AST) -> Iterator[Fault]:
        """Of a node and all below it."""
        if isinstance(node, ast.expr | ast.stmt):
            yield from self._of(node)
        for child in _executed(node):
            yield from self.found(child)

    def _of(self, node: ast.expr | ast.stmt) -> Iterator[Fault]:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.BinOp() | ast.AugAssign():
                yield from self._operators(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._at(node, f"({self._text(operand)})")
            case ast.Constant(value=value):
                yield from self._constant(node, value)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield self._at(test, f"(not ({self._text(test)}))")
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self._at(value, "None")
            case ast.Expr(value=ast.Call() as call):
                yield self._at(call, "None")
            case ast.Call(func=function):
                if isinstance(function, ast.Name) and function.id in TURNED:
                    yield self._at(function, TURNED[function.id])
                yield from self._without_a_keyword(node)

    def _operators(self, node: ast.Compare | ast.BoolOp | ast.BinOp | ast.AugAssign) -> Iterator[Fault]:
        match node:
            case ast.Compare(ops=[operator], left=left, comparators=[right]):
                yield self._between(left, right, COMPARISONS[type(operator)])
            case ast.BoolOp(op=operator, values=values):
                word = "or" if isinstance(operator, ast.And) else "and"
                yield from (self._between(left, right, word) for left, right in pairwise(values))
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in SUMS:
                if not any(isinstance(each, ast.JoinedStr) or _is_text(each) for each in (left, right)):
                    yield self._between(left, right, SUMS[type(operator)])
            case ast.AugAssign(op=ast.Add()):
                yield self._between(node.target, node.value, "-=")

    def _constant(self, node: ast.expr, value: object) -> Iterator[Fault]:
        match value:
            case bool():
                yield self._at(node, str(not value))
            case int() | float():
                yield self._at(node, f"({self._text(node)} + 1)")
            case str():
                yield self._at(node, '"of a fault"' if value != "of a fault" else '""')

    def _without_a_keyword(self, call: ast.Call) -> Iterator[Fault]:
        """What is given by name, and might be left to its default."""
        given = sorted([*call.args, *(each.value for each in call.keywords)], key=self._begin)
        for keyword in call.keywords:
            before = [each for each in given if self._begin(each) < self._begin(keyword.value)]
            if keyword.arg is not None and before:
                yield Fault(keyword.value.end_lineno or 0, self._end(before[-1]), self._end(keyword.value), "")

    def _between(self, left: ast.expr, right: ast.expr, word: str) -> Fault:
        """The operator changed between two operands, of which either may stand in parentheses."""
        begin, end = self._end(left), self._begin(right)
        between = self._source[begin:end].decode()
        closing = between[: len(between) - len(between.lstrip(" \n)"))]
        opening = between[len(between.rstrip(" \n(")) :]
        return Fault(_line(left, "end_lineno"), begin, end, f"{closing or ' '}{word}{opening or ' '}")

    def _at(self, node: ast.expr, instead: str) -> Fault:
        return Fault(node.lineno, self._begin(node), self._end(node), instead)

    def _text(self, node: ast.expr) -> str:
        return self._source[self._begin(node) : self._end(node)].decode()

    def _begin(self, node: ast.expr) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr) -> int:
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)


def _line(node: ast.expr, which: str) -> int:
    return int(getattr(node, which))


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """What of a node is run and not only said: no annotation, docstring, import, error's words or f-string's parts."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Raise | ast.Assert):
        return
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "bases"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not (isinstance(child, ast.Expr) and _is_text(child.value)):
                    yield child


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
