"""Every command of minigts on a page is one: its verb, its options and the number of its words, by the real command
line. So are those in the workflows for users."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_documentation import PAGES, PROJECT

from minigts.cli import verbs

COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\./|minigts/)?minigts (?P<words>.*)$")
SPAN = "in a sentence: "
"""What a code span begins with here. A sentence may leave out words of its command, a block may not."""
WORKFLOWS = [*(PROJECT / "docs" / "examples").rglob("*.yml"), PROJECT / ".gitlab-ci.yml"]


def blocks(text: str) -> Iterator[str]:
    """The lines of a page's code blocks, which are between ``` or, after an empty line, behind four blanks; and its
    code spans."""
    fenced = indented = False
    empty_before = True
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line
        else:
            indented = line.startswith("    ") and (indented or empty_before)
            if indented:
                yield line
            else:
                yield from (f"{SPAN}{span}" for span in re.findall(r"`([^`]+)`", line))
        empty_before = not line.strip()


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """What follows `minigts` in each command, and whether that is all of it: `['exec', 'ams', '--', 'uptime'], True`. A
    line may have several, and none where words stand for others (`play …`)."""
    for line in re.sub(r"\\\n\s*", "", "\n".join(blocks(text))).splitlines():
        whole, block = line.strip().removeprefix(SPAN), not line.startswith(SPAN)
        for part in re.split(r"; (?=\S*minigts )|&& (?=\S*minigts )| \| (?=\S*minigts )", whole):
            if (found := COMMAND.match(part.strip())) and "…" not in part:
                words = words_of(found["words"])
                if words and re.fullmatch(r"-?-?[a-z][a-z-]*", words[0]):
                    yield words, block


def words_of(command: str) -> list[str]:
    """The words as a shell parts them, without a comment; to the end of minigts' own command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation that ends on another line
        words = command.split()
    ends = [index for index, word in enumerate(words) if re.fullmatch(r"[|;&<>]+", word)]
    words = words[: ends[0]] if ends else words
    return [word for word in words if word != "etc."]


def fault(words: list[str], whole: bool = True) -> str | None:
    """What is wrong with a command, or None. One that is not `whole` may lack words."""
    name, *rest = words
    if name.startswith("-"):
        return None if name in ("--help", "--version", "-h", "-v", "--verbose") else f"no option {name}"
    if name not in verbs.names():
        return f"no verb {name!r}"
    command: Any = verbs.verb(name).command_named(name)
    while rest and not rest[0].startswith("-") and (below := getattr(command, "commands", None)):
        if rest[0] not in below:
            return f"{name} has no {rest[0]!r}"
        command, rest = below[rest[0]], rest[1:]
    # A verb's name alone speaks of the verb.
    return fault_of_words(command, rest, whole) if rest and not {"--help", "-h"} & set(rest) else None


def fault_of_words(command: Any, words: list[str], whole: bool) -> str | None:
    """What is wrong with the words behind a verb, by the parser that reads them when the verb runs."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    context.resilient_parsing = False
    try:
        given, left, _ = command.make_parser(context).parse_args(list(words))
    except Exception as error:  # every UsageError of click, of whichever copy typer brings
        lacks = type(error).__name__ == "BadOptionUsage" and "requires" in str(error)
        return None if lacks and not whole else str(getattr(error, "message", error))
    if left and not context.ignore_unknown_options and not context.allow_extra_args:
        return f"these words are too many: {' '.join(left)}"
    lacking = [each.name for each in command.params if each.required and given.get(each.name) is None]
    return f"{', '.join(lacking)} is missing" if lacking and whole else None


@pytest.mark.parametrize("page", [*PAGES, *WORKFLOWS], ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_command_on_a_page_is_one_of_minigts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".yml":
        text = "\n".join(f"`{line.strip('- ').removeprefix('run: ')}`" for line in text.splitlines())
    wrong = [
        f"minigts {shlex.join(words)}: {found}" for words, whole in commands(text) if (found := fault(words, whole))
    ]
    assert wrong == []


def test_commands_are_found_and_judged() -> None:
    page = """
    ./minigts up a.yaml --overlay swarm   # a comment
    $ minigts exec ams -- ping -c 3 bra | tail -n 1
    minigts kill mil; ./minigts start mil

```
MINIGTS_LAB=x minigts status --json
```
Type `minigts plan --json`, or `minigts run … --x`.
"""
    assert [words[0] for words, _ in commands(page)] == ["up", "exec", "kill", "start", "status", "plan"]
    assert [fault(words, whole) for words, whole in commands(page)] == [None] * 6
    for wrong in (
        "upp a.yaml",
        "up --colour red",
        "down --keep=3",
        "image burn",
        "kill a b c d --for 3 --odd",
        "--odd",
    ):
        assert fault(shlex.split(wrong)), wrong


def test_many_commands_are_looked_at() -> None:
    found = [words for page in PAGES for words, _ in commands(page.read_text(encoding="utf-8"))]
    assert len(found) > 400
    assert {words[0] for words in found} > {"up", "run", "set", "lesson", "image", "capture"}
