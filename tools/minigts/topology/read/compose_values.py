"""How each value of a Compose file may be written, and what a lab makes of it. Variables in a value are put in first.
What is wrong with one is a ValueError, or Misplaced where it lies further below. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BeforeValidator

from minigts.language.fields import unknown
from minigts.language.problems import Finding, Misplaced, quote
from minigts.language.quantities import is_whole_number
from minigts.topology.containers import (
    CONTAINERS_VARIABLE,
    CONTAINERS_VARIABLE_HINT,
    LONGEST_TEXT,
    REFERENCE,
    VARIABLE,
    is_path,
)
from minigts.topology.fields import NAME, NAME_HINT

_ENTRY = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=(.*))?", re.ASCII)
_QUOTED = re.compile(r"""(?:'([^']*)'|"([^"\\$]*)")\s*(?:\#.*)?""", re.ASCII)


def substitute(written: str, variables: Mapping[str, str]) -> str:
    """The text with `$NAME` and `${NAME:-default}` substituted, as in the Compose Specification, *Interpolation*.
    Raises ValueError, also for a variable that has neither a value nor a default."""
    filled, rest = "", written
    while "$" in rest:
        before, _, rest = rest.partition("$")
        filled += before
        if rest.startswith("$"):
            filled, rest = f"{filled}$", rest[1:]
        elif rest.startswith("{"):
            inside, rest = _braced(rest, written)
            filled += _value_of(inside, written, variables)
        elif name := VARIABLE.match(rest):
            filled, rest = filled + _required(name[0], variables), rest[name.end() :]
        else:
            raise ValueError(f"{quote(written)} has a $ that begins no variable: write $$ for the character itself")
    return filled + rest


def _braced(rest: str, written: str) -> tuple[str, str]:
    """Split `rest` into the content of the braces at its beginning, and the text after them."""
    depth = 0
    for index, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:index], rest[index + 1 :]
    raise ValueError(f"{quote(written)} has a brace that does not end: write it as in ${{PORT:-8080}}")


def _value_of(inside: str, written: str, variables: Mapping[str, str]) -> str:
    name = VARIABLE.match(inside)
    action = inside[name.end() :] if name else ""
    if name is None or (action and not re.match(r":?[-?+]", action)):
        raise ValueError(f"{quote(written)} names no variable: write it as in ${{PORT:-8080}}")
    if not action:
        return _required(name[0], variables)
    value = variables.get(name[0])
    empty_is_none = action.startswith(":")
    kind, word = action[empty_is_none], action[1 + empty_is_none :]
    there = value is not None and not (empty_is_none and not value)
    if kind == "+":
        return substitute(word, variables) if there else ""
    if there:
        return value or ""
    if kind == "?":
        said = f": {substitute(word, variables)}" if word else ""
        raise ValueError(f"this host has no variable {name[0]}, which is required{said}")
    return substitute(word, variables)


def _required(name: str, variables: Mapping[str, str]) -> str:
    if name not in variables:
        raise ValueError(
            f"this host has no variable {name}: write it under the host's `environment:`, or a default, as in "
            f"${{{name}:-1}}; your shell's variables are not used"
        )
    return variables[name]


def entries(path: str, content: str) -> Iterator[tuple[str, str | None]]:
    """The variables in lines `NAME=VALUE`. Raises ValueError where Compose would substitute or unescape characters."""
    for number, line in enumerate(content.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(stripped)
        if entry is None:
            raise ValueError(f"{path}:{number}: {quote(stripped)} is no variable: write NAME=VALUE")
        value = None if entry[2] is None else entry[2].strip()
        if value is None:
            yield entry[1], None
        elif quoted := _QUOTED.fullmatch(value):
            yield entry[1], quoted[1] if quoted[2] is None else quoted[2]
        elif re.search(r"[\\$]|^['\"]", value):
            wanted = "a lab substitutes nothing here: write the value in single quotes, in one line"
            raise ValueError(f"{path}:{number}: {quote(stripped)}: {wanted}")
        else:
            yield entry[1], re.split(r"\s+#", value)[0].rstrip()


_ORDER_ONLY = (
    "a lab starts services in order and waits for nothing else: write service_started, and let the program try again, "
    "or `restart: on-failure`"
)
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h))+", re.ASCII)
_UNITS_NS = {"us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PORTS = re.compile(r"([0-9]{1,5}):([0-9]{1,5})", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)


def _each(
    value: object, parse: Callable[[object], Any], wanted: str, *, mapping: Callable[[str, object], Any] | None = None
) -> tuple[Any, ...]:
    """The parsed entries of a list, or of a mapping if `mapping` parses those. Raises ValueError, Misplaced."""
    entries: list[tuple[str | int, Callable[[], Any]]]
    if isinstance(value, list):
        entries = [(index, partial(parse, one)) for index, one in enumerate(value)]
    elif isinstance(value, dict) and mapping is not None:
        entries = [(key, partial(mapping, key, one)) for key, one in value.items()]
    else:
        raise ValueError(f"{quote(value)} where {wanted} is wanted")
    findings: list[Finding] = []
    made = []
    for place, read_one in entries:
        try:
            made.append(read_one())
        except Misplaced as error:
            findings.extend(((place, *below), message) for below, message in error.findings)
        except ValueError as error:
            findings.append(((place,), str(error)))
    if findings:
        raise Misplaced(findings)
    return tuple(made)


def image(value: object) -> str:
    if not isinstance(value, str) or not REFERENCE.fullmatch(value):
        raise ValueError(f"{quote(value)} names no image: write it as in redis:7")
    return value


def command(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        words = _each(value, a_text, "a list")
    else:
        try:
            words = tuple(shlex.split(a_text(value)))
        except ValueError as error:
            raise ValueError(f"{quote(value)} is no command: {error}") from error
    if not words:
        raise ValueError("an empty command: leave it out for the image's own")
    return words


def a_text(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError(f"{quote(value)} is no text of at most {LONGEST_TEXT} characters")
    return value


def pairs(value: object) -> dict[str, str | None]:
    """Variables from a mapping, or from a list of `A=1` and `A`. None stands for the host's value of that name."""

    def named(name: str, content: object) -> tuple[str, str | None]:
        if not CONTAINERS_VARIABLE.fullmatch(name):
            raise ValueError(f"{quote(name)} is no variable's name: {CONTAINERS_VARIABLE_HINT}")
        return name, None if content is None else a_text(content)

    def parse(one: object) -> tuple[str, str | None]:
        name, equals, content = a_text(one).partition("=")
        return named(name, content if equals else None)

    return dict(_each(value, parse, "a mapping or a list of NAME=VALUE", mapping=named))


def labels(value: object) -> dict[str, str]:
    def named(name: str, content: object) -> tuple[str, str]:
        if not _LABEL.fullmatch(name):
            raise ValueError(f"{quote(name)} is no label: write letters, digits, dots, hyphens and slashes")
        return name, a_text("" if content is None else content)

    def parse(one: object) -> tuple[str, str]:
        name, _, content = a_text(one).partition("=")
        return named(name, content)

    return dict(_each(value, parse, "a mapping or a list of NAME=VALUE", mapping=named))


def env_files(value: object) -> tuple[str, ...]:
    def parse(one: object) -> str:
        if not isinstance(one, dict):
            return a_text(one)
        _require_keys(one, ("path",))
        return a_text(one.get("path"))

    return _each(value if isinstance(value, list) else [value], parse, "a file, or a list of them")


def truth(value: object) -> bool:
    if value not in ("true", "false"):
        raise ValueError(f"{quote(value)} is neither true nor false")
    return value == "true"


def _require_keys(one: Mapping[str, object], known: Sequence[str]) -> None:
    findings = [((key,), unknown("key", "keys here", key, known)) for key in one if key not in known]
    if findings:
        raise Misplaced(findings)


def ports(value: object) -> tuple[str, ...]:
    return _each(value, _port, "a list of ports")


def _port(one: object) -> str:
    if isinstance(one, dict):
        _require_keys(one, ("target", "published", "protocol", "name"))
        one = f"{one.get('published') or ''}:{one.get('target') or ''}/{one.get('protocol') or 'tcp'}"
    written = a_text(one)
    ports, _, protocol = written.partition("/")
    if protocol not in ("", "tcp"):
        raise ValueError(
            f"{quote(written)}: a host publishes TCP ports only; over the overlay containers have every protocol"
        )
    if is_whole_number(ports) or ports.startswith(":"):
        number = ports.removeprefix(":")
        raise ValueError(f"{quote(written)} leaves the host's port to chance: write both, as in {number}:{number}")
    if not _PORTS.fullmatch(ports):
        raise ValueError(
            f"{quote(written)} is no port: write the host's and the container's, one each, without an address, as in "
            "8080:80"
        )
    return ports


def exposed_ports(value: object) -> tuple[str, ...]:
    return _each(value, a_text, "a list of ports")


def volumes(value: object) -> tuple[str, ...]:
    return _each(value, _volume, "a list of volumes")


def _volume(one: object) -> str:
    """A volume as a topology has it, `SOURCE:TARGET:ro`."""
    if isinstance(one, dict):
        kind = one.get("type")
        if kind not in ("bind", "volume"):
            raise ValueError(f"{quote(kind)} is no kind of volume that a lab has: write bind or volume")
        _require_keys(one, ("type", "source", "target", "read_only"))
        source, target = a_text(one.get("source")), a_text(one.get("target"))
        if (kind == "bind") != _from_here(source):
            wanted = "a path, as in ./site" if kind == "bind" else "a name, as in data"
            raise ValueError(f"{quote(source)} is no source of the kind {kind}: write {wanted}")
        mode = "ro" if truth(one.get("read_only", "false")) else "rw"
    else:
        source, _, rest = a_text(one).partition(":")
        target, _, mode = rest.partition(":")
        if not rest:
            raise ValueError(f"{quote(one)} has no name: write one in front, as in data:{source}")
        if mode in ("z", "Z", "ro,z", "ro,Z"):
            raise ValueError(f"{quote(one)}: hosts have no SELinux: leave {mode.rpartition(',')[2]} out")
    if source.startswith("~"):
        raise ValueError(f"{quote(source)}: a lab has no home directory: write a path from the file on, as in ./site")
    if _from_here(source) and not is_path(source):
        source = f"./{source}"
    return f"{source}:{target}{':ro' if mode == 'ro' else f':{mode}' if mode else ''}"


def _from_here(source: str) -> bool:
    return source in (".", "..") or source.startswith(("/", "./", "../", "~"))


def depends(value: object) -> tuple[str, ...]:
    def named(name: str, settings: object) -> str:
        if isinstance(settings, dict):
            _require_keys(settings, ("condition", "required", "restart"))
            if settings.get("condition", "service_started") != "service_started":
                raise Misplaced([(("condition",), f"{quote(settings['condition'])}: {_ORDER_ONLY}")])
            for key, usual in (("required", "true"), ("restart", "false")):
                if settings.get(key, usual) != usual:
                    raise Misplaced([((key,), f"only {usual} is possible: leave it out")])
        return name

    return _each(value, a_text, "a list of services", mapping=named)


def networks(value: object) -> dict[str, tuple[str, ...]]:
    """The service's aliases by network."""

    def named(name: str, settings: object) -> tuple[str, tuple[str, ...]]:
        if settings is None:
            return name, ()
        if not isinstance(settings, dict):
            raise ValueError(f"{quote(settings)} where a mapping is wanted, as in {{aliases: [db]}}")
        for key in settings:
            if key != "aliases":
                raise Misplaced([((key,), "only `aliases` are honoured: the overlay gives addresses; leave it out")])
        try:
            return name, _each(settings.get("aliases"), a_name, "a list of names")
        except Misplaced as error:
            raise Misplaced([(("aliases", *below), message) for below, message in error.findings]) from error

    return dict(_each(value, lambda one: (a_text(one), ()), "a list or a mapping of networks", mapping=named))


def a_name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"{quote(value)} is not {NAME_HINT}")
    return value


def duration_ns(value: object) -> int:
    if not isinstance(value, str) or len(value) > 40 or not _DURATION.fullmatch(value):
        raise ValueError(f"{quote(value)} is not a duration: write it as in 1m30s or 500ms")
    parts = re.findall(r"([0-9.]+)([a-z]+)", value)
    found = round(sum(float(number) * _UNITS_NS[unit] for number, unit in parts))
    if not 10**6 <= found <= 24 * 3600 * 10**9:
        raise ValueError(f"{quote(value)} is out of range: a duration is from 1ms to 24h")
    return found


def test(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return "CMD-SHELL", a_text(value)
    words = _each(value, a_text, "a list")
    if not words or words[0] not in ("NONE", "CMD", "CMD-SHELL") or (len(words) < 2) != (words[0] == "NONE"):
        raise ValueError('a test is a text, or a list as in ["CMD", "redis-cli", "ping"]')
    return words


def nothing_below(reason: str, usual: Mapping[str, str]) -> BeforeValidator:
    """Validate a mapping of names without settings, apart from settings that repeat the defaults in `usual`."""

    def check(value: object) -> object:
        if isinstance(value, dict):
            below: list[Finding] = [
                ((name, key), reason)
                for name, each in value.items()
                if isinstance(each, dict)
                for key, said in each.items()
                if said != usual.get(key, ())
            ]
            below += [((name,), reason) for name, each in value.items() if each and not isinstance(each, dict)]
            if below:
                raise Misplaced(below)
            return dict.fromkeys(value)
        return value

    return BeforeValidator(check)
