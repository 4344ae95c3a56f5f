"""Help before there is a virtual environment: read from the source of this package, without an import of it.

The launcher runs this file as a script, with the arguments of minigts. Exit code 0: help was asked for and printed; 2:
there is no such verb, and a message says so; RUNS: the arguments name a verb to run. Uses only the standard library.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill

RUNS = 10
MINIMUM_COLUMNS = 40
HELP = ("-h", "--help")
VERSION = "--version"
ROOT_OPTIONS = ("-v", "--verbose", VERSION)
_STATUS = "labs that are up, and their hosts, are listed by: minigts status"
_DOWN = "a lab is taken down by: minigts down"
_UP = "a lab is brought up by: minigts up TOPOLOGY"
_SHELL = "a shell on a host is opened by: minigts shell HOST; a command runs there by: minigts exec HOST -- COMMAND"
_PLAN = "what a topology means, with a drawing, is shown by: minigts plan TOPOLOGY"
SPOKEN = {
    **dict.fromkeys(("ps", "ls", "list", "inspect", "show"), _STATUS),
    **dict.fromkeys(("destroy", "delete", "stop", "rm"), _DOWN),
    **dict.fromkeys(("deploy", "create"), _UP),
    **dict.fromkeys(("ssh", "login", "connect", "attach"), _SHELL),
    "graph": _PLAN,
}
"""Verbs of similar programs that minigts lacks, with the advice for each."""
AFTERWARDS = (
    "Options are shown once minigts has its virtual environment. The first verb that runs makes it, in half a "
    "minute; `./minigts doctor` is one that starts nothing."
)


@dataclass
class SourceVerb:
    """`about` is the verb's help, `verbs` its subverbs, `place` its place in the list. A `greedy` verb reads no options
    after its first argument."""

    about: str = ""
    place: int = 0
    greedy: bool = False
    hidden: bool = False
    verbs: dict[str, SourceVerb] = field(default_factory=dict)


def verbs(directory: Path = Path(__file__).parent) -> SourceVerb:
    """The program with its verbs in the order of the list; hidden verbs are left out."""
    files = {file.stem.rstrip("_").replace("_", "-"): file for file in (directory / "verbs").glob("[!_]*.py")}
    found = {name: _verb(ast.parse(file.read_text(encoding="utf-8"))) for name, file in files.items()}
    root = ast.parse((directory / "app.py").read_text(encoding="utf-8"))
    about = next(node for node in root.body if isinstance(node, ast.FunctionDef) and node.name == "root")
    text = (ast.get_docstring(about) or "").replace("[bold]", "").replace("[/bold]", "")
    return SourceVerb(text, verbs=dict(sorted(_shown(found).items(), key=lambda each: each[1].place)))


def version(package: Path = Path(__file__).parents[1]) -> str:
    """The program's version."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    return str(next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)))


def _verb(module: ast.Module) -> SourceVerb:
    """The verb that a file declares: `verb = Verb(LABS, 40)`, and one function, or one for each subverb."""
    verb, below = SourceVerb(), dict[str, SourceVerb]()
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name("verb")], value=ast.Call(args=[_, ast.Constant(int(place))]) as call):
                verb = SourceVerb(str(_keyword(call, "help") or ""), place)
            case ast.FunctionDef(decorator_list=[ast.Call(ast.Attribute(ast.Name("verb"), "command")) as call]):
                name = next((str(each.value) for each in call.args if isinstance(each, ast.Constant)), "")
                below[name] = _function(node, call)
    return replace(below[""], place=verb.place) if "" in below else replace(verb, verbs=_shown(below))


def _function(node: ast.FunctionDef, decorator: ast.Call) -> SourceVerb:
    settings = _keyword(decorator, "context_settings")
    greedy = isinstance(settings, dict) and settings.get("allow_interspersed_args") is False
    return SourceVerb(ast.get_docstring(node) or "", greedy=greedy, hidden=bool(_keyword(decorator, "hidden")))


def _shown(verbs: dict[str, SourceVerb]) -> dict[str, SourceVerb]:
    return {name: each for name, each in verbs.items() if not each.hidden}


def _keyword(call: ast.Call, name: str) -> object:
    return next((ast.literal_eval(each.value) for each in call.keywords if each.arg == name and _literal(each)), None)


def _literal(keyword: ast.keyword) -> bool:
    return not any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(keyword.value))


def answer(arguments: Sequence[str], verb: SourceVerb) -> int:
    """Print help or an error; return the exit code."""
    name, words = "minigts", list(arguments)
    while verb.verbs:
        word = next(iter(words), HELP[0])
        if word in HELP:
            break
        if word == VERSION and name == "minigts":
            sys.stdout.write(f"minigts {version()}\n")
            return 0
        words = words[1:]
        if word in verb.verbs:
            verb, name = verb.verbs[word], f"{name} {word}"
        elif word not in ROOT_OPTIONS or name != "minigts":
            close = get_close_matches(word, verb.verbs, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            if name == "minigts" and word in SPOKEN:
                hint = f": {SPOKEN[word]}."
            what = "option" if word.startswith("-") else "verb"
            sys.stderr.write(f"{name}: no {what} {word!r}{hint} Verbs are: {', '.join(verb.verbs)}\n")
            return 2
    if not verb.verbs and not set(HELP) & set(_own(words, verb.greedy)):
        return RUNS
    about = (_wrapped(paragraph) for paragraph in verb.about.split("\n\n"))
    parts = [f"Usage: {name} …", *about, *(["\n".join(_listed(verb))] if verb.verbs else []), _wrapped(AFTERWARDS)]
    sys.stdout.write("\n\n".join(parts) + "\n")
    return 0


def _own(words: Sequence[str], greedy: bool) -> Iterator[str]:
    """The words that belong to the verb itself, and not to a command that it runs."""
    for word in words:
        if word == "--" or (greedy and not word.startswith("-")):
            return
        yield word


def _listed(verb: SourceVerb) -> Iterator[str]:
    width = max(map(len, verb.verbs), default=0)
    for name, each in verb.verbs.items():
        first = each.about.partition("\n\n")[0]
        yield _wrapped(first, f"  {name:{width}}  ", " " * (width + 4))


def _wrapped(text: str, before: str = "", below: str = "") -> str:
    """The text in lines of the window's width, the first of them after `before`, the others after `below`."""
    columns = max(get_terminal_size().columns, MINIMUM_COLUMNS)
    lines = " ".join(text.splitlines())
    return fill(lines, columns, initial_indent=before, subsequent_indent=below, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], verbs()))
