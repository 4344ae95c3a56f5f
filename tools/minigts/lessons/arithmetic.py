"""The arithmetic of a lesson's file: numbers, names, + - * / and a few functions. Pure; it can do nothing else."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping

LONGEST = 200
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}


def checked(text: str) -> str:
    """`text`, if it is a valid expression. Raises ValueError."""
    names(text)
    return text


def names(text: str) -> frozenset[str]:
    """The names in an expression. Raises ValueError for an invalid expression."""
    return frozenset(_names(_parsed(text)))


def value(text: str, known: Mapping[str, float]) -> float:
    """The value of an expression such as `2 * (first + second)`. Raises KeyError for a name without a value, ValueError
    for an invalid expression and for a division by zero."""
    try:
        return _value(_parsed(text), known)
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is no expression: write it as in 2 * (first + second)") from None


def _names(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=int() | float()):
            return
        case ast.Name(id=name):
            yield name
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            yield from _names(left)
            yield from _names(right)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in _FUNCTIONS and arguments:
            for argument in arguments:
                yield from _names(argument)
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is no number, name, sum, difference, product or quotient")


def _value(node: ast.expr, known: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            return _OPERATORS[type(operation)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=function), args=arguments) if function in _FUNCTIONS:
            return float(_FUNCTIONS[function](*(_value(argument, known) for argument in arguments)))
    raise ValueError(f"{ast.unparse(node)!r} is no number, name, sum, difference, product or quotient")
