"""Arithmetic that a file writes: `0.75 * mss / (rtt * sqrt(p))`. Parsed by Python's own parser, of whose language only
numbers, names, + - * / **, signs and a few functions are allowed; nothing is ever run as a program.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from minigts.language.problems import did_you_mean, list_names, quote

LONGEST, MOST_PARTS = 300, 120
FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "exp": math.exp,
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}
_OF_TWO: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_OF_SEVERAL = ("min", "max")
_ALLOWED = f"numbers, names, + - * / **, brackets, and {', '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class Formula:
    """A formula as it is written, and the names that it needs."""

    written: str
    names: tuple[str, ...]

    def value(self, known: Mapping[str, float]) -> float:
        """The formula's value, where each of its names has one. Raises ValueError where there is none, as when it
        divides by 0, KeyError for a name without a value."""
        try:
            found = _value(_parsed(self.written), known)
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"{self.written} has no value here: {_reason(error)}") from error
        if not math.isfinite(found):
            raise ValueError(f"{self.written} has no value here: it is too large")
        return found


def formula(given: object) -> Formula:
    """`0.75 * mss / (rtt * sqrt(p))` as a formula that needs mss, rtt and p. Raises ValueError, which says where."""
    if isinstance(given, Formula):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST:
        raise ValueError(f"{quote(given)} is no formula of 1 to {LONGEST} characters, as in 8 * window / rtt")
    tree = _parsed(given)
    parts = list(ast.walk(tree))
    if len(parts) > MOST_PARTS:
        raise ValueError(f"{quote(given)} has {len(parts)} parts; at most {MOST_PARTS} are possible")
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    for part in parts:
        _require_allowed(part)
    names = [part.id for part in parts if isinstance(part, ast.Name) and id(part) not in called]
    return Formula(given, tuple(dict.fromkeys(names)))


def _parsed(written: str) -> ast.expr:
    try:
        return ast.parse(written.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ValueError(f"{quote(written)} is no formula: {error.msg}{where}") from error
    except ValueError as error:  # a null byte, or more digits than Python reads
        raise ValueError(f"{quote(written)} is no formula: {str(error).partition(';')[0]}") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"{quote(written)} is no formula that can be read: it is nested too deep") from error


def _require_allowed(part: ast.AST) -> None:
    allowed = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.expr_context, *_OF_TWO, ast.UAdd, ast.USub)
    number = not isinstance(part, ast.Constant) or (type(part.value) in (int, float))
    if not isinstance(part, allowed) or not number:
        raise ValueError(f"{_word(part)}is not possible in a formula; possible are {_ALLOWED}")
    if isinstance(part, ast.Constant) and not abs(part.value) <= 1e300:  # type: ignore[arg-type]
        raise ValueError(f"{quote(part.value)} is too large for a formula")
    if isinstance(part, ast.Call):
        name = part.func.id if isinstance(part.func, ast.Name) else ""
        if name not in FUNCTIONS:
            known = list(FUNCTIONS)
            raise ValueError(
                f"no function {quote(name)}{did_you_mean(name, known) or f'; there are {list_names(known)}'}"
            )
        wanted = len(part.args) >= 2 if name in _OF_SEVERAL else len(part.args) == 1
        if part.keywords or not wanted:
            raise ValueError(f"{name} takes {'two numbers or more' if name in _OF_SEVERAL else 'one number'}")


def _word(part: ast.AST) -> str:
    try:
        return f"{quote(ast.unparse(part))} "
    except (AttributeError, ValueError, RecursionError):
        return f"{type(part).__name__} "


def _value(part: ast.expr, known: Mapping[str, float]) -> float:
    match part:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=sign, operand=operand):
            return -_value(operand, known) if isinstance(sign, ast.USub) else _value(operand, known)
        case ast.BinOp(left=left, op=operation, right=right):
            return _OF_TWO[type(operation)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return float(FUNCTIONS[name](*(_value(each, known) for each in arguments)))
    raise ValueError("no formula")


def _reason(error: Exception) -> str:
    return "it divides by 0" if isinstance(error, ZeroDivisionError) else str(error)
