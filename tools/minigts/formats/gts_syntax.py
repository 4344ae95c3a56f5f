"""Parse GTS's text to statements, or to every syntax error: what stands there, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from minigts.errors import InputError, Problem
from minigts.language.problems import quote, require_none

MOST_ERRORS = 20
MOST_WORDS = 12_000
"""The most words and signs in a file: three hundred links, written out."""
DEEPEST = 30
"""The most brackets in brackets. A topology of GTS has three."""
_WORDS = {
    "{": "{",
    "}": "}",
    "NAME": "a name",
    "STRING": "a text",
    "NUMBER": "a number",
    "BAD": "",
    "ADJACENCY": "adjacency",
    "$END": "the file's end",
}
_GROOVY = {
    **dict.fromkeys(("if", "else", "switch"), "a condition"),
    **dict.fromkeys(("while", "do"), "a loop whose end is not written"),
    **dict.fromkeys(("class", "interface", "enum", "trait", "extends", "implements"), "a class"),
    **dict.fromkeys(("import", "package"), "other people's code"),
    **dict.fromkeys(("new", "return", "try", "throw", "assert", "static", "void", "println", "print"), "a program"),
}
"""Words of Groovy that cannot be read without running it, and what they are."""


def parse(text: str, file: str) -> Tree[Token]:
    """The tree of a file, rule `start` of `gts.lark`. Raises InputError with every error of its syntax."""
    tree, problems = _parsed(text, file, "start")
    require_none(problems, file)
    assert tree is not None  # without one there are problems
    return tree


@lru_cache(maxsize=1000)
def value(text: str) -> Tree[Token] | None:
    """The tree of what stands between `${` and `}`; None when that is no value."""
    return _parsed(text, "", "only")[0]


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    rules = Path(__file__).with_name("gts.lark").read_text(encoding="utf-8")
    return Lark(rules, parser="lalr", lexer="basic", start=["start", "only", "refused"], propagate_positions=True)


@lru_cache(maxsize=1)
def reserved_words() -> frozenset[str]:
    """Words that are names only in quotation marks: the grammar's own, and Groovy's reserved ones."""
    written = (str(terminal.pattern.value) for terminal in _grammar().terminals)
    return frozenset({*filter(str.isidentifier, written), *_GROOVY})


def _parsed(text: str, file: str, start: str) -> tuple[Tree[Token] | None, list[Problem]]:
    """The tree, or all problems. After an error parsing continues with the next line of the same block."""
    problems: list[Problem] = []
    parser = _grammar().parse_interactive("", start=start)
    tokens = [*islice(_grammar().lex(text), MOST_WORDS + 1)]
    if len(tokens) > MOST_WORDS:
        return None, [Problem(file, _line(tokens[-1]), f"more than {MOST_WORDS} words and signs; write loops")]
    too_deep = _deepest(tokens)
    if too_deep is not None:
        return None, [Problem(file, _line(too_deep), f"brackets in brackets, more than {DEEPEST} deep")]
    depths = _depths(tokens)
    at, line, begun = 0, 0, (0, _copy(parser))
    while at < len(tokens) and len(problems) < MOST_ERRORS:
        if _line(tokens[at]) > line:
            line, begun = _line(tokens[at]), (at, _copy(parser))
        try:
            parser.feed_token(tokens[at])
            at += 1
        except UnexpectedToken:
            problems.append(Problem(file, line, _said(tokens, at, parser)))
            if tokens[at].type == "BAD":  # the nesting of braces after it is unknown
                break
            at, parser = _next_line(tokens, depths, at, begun[0]), begun[1]
    if problems:
        return None, problems
    try:
        return _ended(parser, tokens), []
    except UnexpectedToken:
        last = tokens[-1].end_line or 1 if tokens else 1
        return None, [Problem(file, last, _unclosed(tokens, parser))]


# The next functions wrap those for which lark has no types.


def _copy(parser: InteractiveParser) -> InteractiveParser:
    """A copy of the parser, without one of what it has read, which would take longer with each line."""
    copied: InteractiveParser = parser.copy(deepcopy_values=False)  # type: ignore[no-untyped-call]
    return copied


def _ended(parser: InteractiveParser, tokens: list[Token]) -> Tree[Token]:
    tree: Tree[Token] = parser.feed_eof(tokens[-1] if tokens else None)  # type: ignore[no-untyped-call]
    return tree


def _choices(parser: InteractiveParser) -> Iterable[str]:
    found: Iterable[str] = parser.choices()  # type: ignore[no-untyped-call]
    return found


def _next_line(tokens: list[Token], depths: list[int], at: int, begun: int) -> int:
    """The first token of a later line that stands in the block in which the wrong line began, or closes it."""
    depth, line = depths[begun], _line(tokens[at])
    following = at + 1
    while following < len(tokens):
        closes = tokens[following] == "}" and depths[following] == depth
        if _line(tokens[following]) > line and (closes or (depths[following] == depth)):
            break
        following += 1
    return following


def _depths(tokens: list[Token]) -> list[int]:
    """The number of blocks around each token; an opening brace is outside of its block, a closing one inside."""
    depth, found = 0, []
    for token in tokens:
        found.append(depth)
        depth = max(0, depth + (token == "{") - (token == "}"))
    return found


def _deepest(tokens: list[Token]) -> Token | None:
    depth = 0
    for token in tokens:
        depth += (token in ("{", "(", "[")) - (token in ("}", ")", "]"))
        if depth > DEEPEST:
            return token
    return None


def _said(tokens: list[Token], at: int, parser: InteractiveParser) -> str:
    """The message for the wrong token `at`."""
    token, before = tokens[at], tokens[at - 1] if at else None
    for word in (each for each in tokens[: at + 1][-10:] if _line(each) == _line(token)):
        if word.type == "NAME" and str(word) in _GROOVY:
            return (
                f"{quote(str(word))} is Groovy, {_GROOVY[str(word)]}: only what means the same each time can be read, "
                'as in `def n = 3`, `for (i in 1..n) {…}`, `(1..n).each {…}` and "h${i}"'
            )
    if token == "{" and before is not None and before.type == "STRING":
        return f"a closure behind {quote(str(before))}: only loops over numbers and lists can be read"
    if token.type == "BAD" and token in ('"', "'"):
        return "a text that has no end in its line"
    wanted = sorted({_WORDS.get(word, "") or _literal(word) for word in _choices(parser) if _wanted(word)} - {""})
    hint = f"; expected is {', '.join(wanted[:-1])} or {wanted[-1]}" if 1 < len(wanted) <= 5 else ""
    hint = f"; expected is {wanted[0]}" if len(wanted) == 1 else hint
    return f"{quote(str(token))} cannot stand {f'behind {quote(str(before))}' if before is not None else 'here'}{hint}"


def _wanted(word: str) -> bool:
    return word.isupper() or word == "$END"


def _literal(terminal: str) -> str:
    """A terminal as it is written, `LBRACE` as `{`."""
    found = next((each for each in _grammar().terminals if each.name == terminal), None)
    return str(found.pattern.value) if found is not None and found.pattern.type == "str" else terminal.lower()


def _unclosed(tokens: list[Token], parser: InteractiveParser) -> str:
    opened: list[Token] = []
    for token in tokens:
        if token == "{":
            opened.append(token)
        elif token == "}" and opened:
            opened.pop()
    if opened:
        return f"the file ends, and the block that begins on line {_line(opened[-1])} has no }}"
    return _said([*tokens, Token("$END", "the file's end")], len(tokens), parser)


def _line(token: Token) -> int:
    return token.line or 1


def require_something(tree: Tree[Token], file: str) -> Tree[Token]:
    """The file's one topology. Raises InputError for none, and for another."""
    tops = [*_tops(tree)]
    if not tops:
        raise InputError([Problem(file, 0, "nothing in it; a topology of GTS's begins with its name, as in `Pair {`")])
    if len(tops) > 1:
        first = tops[0].meta.line
        raise InputError(
            [
                Problem(
                    file, top.meta.line, f"a second topology begins here, the first on line {first}; one file has one"
                )
                for top in tops[1:]
            ]
        )
    return tops[0]


def _tops(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    return (child for child in tree.children if isinstance(child, Tree))
