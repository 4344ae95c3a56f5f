"""The effects of a hostile kernel's calls as a table: a row for each change, with calls, descriptors and grounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .effects import Effect, Tried
from .permitted_effects import reason


@dataclass(frozen=True)
class Row:
    calls: tuple[str, ...]
    changed: str
    by: tuple[str, ...]
    grounds: tuple[str, ...]
    reason: str
    """Why it is permitted; empty if it is not."""


def of(raw: dict[str, Any]) -> Tried:
    effects = [Effect(**{**each, "changed": tuple(each["changed"])}) for each in raw["effects"]]
    return Tried(**{**raw, "effects": effects})


def document(found: Iterable[Tried]) -> list[dict[str, Any]]:
    return [asdict(each) for each in found]


def read(path: Path) -> list[Tried]:
    return [of(each) for each in json.loads(path.read_text())]


def rows(found: Iterable[Tried]) -> list[Row]:
    """One for each change and reason, and the calls that make it by the same descriptors on the same grounds."""
    by: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    for each in found:
        for effect in each.effects:
            for changed in effect.changed:
                why = reason(effect.call, effect.by, changed)
                places = by.setdefault((changed, why, effect.call), {})
                places.setdefault(effect.by, set()).add(f"{effect.user}, {effect.time} time")
    together: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (changed, why, call), places in by.items():
        grounds = tuple(sorted(set().union(*places.values())))
        together.setdefault((changed, why, tuple(sorted(places)), grounds), []).append(call)
    return [
        Row(tuple(calls), changed, places, grounds, why) for (changed, why, places, grounds), calls in together.items()
    ]


def gone(before: Iterable[Tried], after: Iterable[Tried]) -> list[Row]:
    """The rows of what had an effect before, and has none now."""
    now = {(effect.call, effect.by, changed) for each in after for effect in each.effects for changed in effect.changed}
    rest = [
        Tried(
            each.ground,
            effects=[
                Effect(effect.call, effect.by, effect.user, effect.time, changed)
                for effect in each.effects
                if (changed := tuple(word for word in effect.changed if (effect.call, effect.by, word) not in now))
            ],
        )
        for each in before
    ]
    return rows(rest)


def page(before: Sequence[Tried], after: Sequence[Tried]) -> str:
    """The page, with what an earlier program allowed beside it."""
    return "\n".join(_lines(before, after)) + "\n"


def _lines(before: Sequence[Tried], after: Sequence[Tried]) -> Iterable[str]:
    yield from HEAD.splitlines()
    yield ""
    yield "| user, time | calls tried | had an effect | what the kernel could not open |"
    yield "|---|---|---|---|"
    for each in after:
        yield f"| {each.ground} | {each.calls or 'not counted'} | {len(each.effects)} | {len(each.refused)} kinds |"
    yield ""
    yield from _table("Permitted effects", [row for row in rows(after) if row.reason], with_reason=True)
    unknown = [row for row in rows(after) if not row.reason]
    if unknown:
        yield from _table("Not permitted, and possible", unknown)
    if before:
        yield from _table("Possible before, and no more", gone(before, after))


def _table(title: str, found: Sequence[Row], *, with_reason: bool = False) -> Iterable[str]:
    yield f"## {title}"
    yield ""
    if not found:
        yield "None."
        yield ""
        return
    yield "| change | call | by | where |" + (" why it is permitted |" if with_reason else "")
    yield "|---|---|---|---|" + ("---|" if with_reason else "")
    for row in sorted(found, key=lambda row: (row.changed, row.calls)):
        where = "everywhere" if len(row.grounds) == 4 else "; ".join(row.grounds)
        line = f"| {row.changed} | {', '.join(row.calls)} | {', '.join(row.by)} | {where} |"
        yield line + (f" {row.reason} |" if with_reason else "")
    yield ""


HEAD = """\
# What a taken kernel can change

A kernel of a lab that its guest has taken over makes system calls of this machine. This page lists what each call
changed. `bench/run effects` writes it, and `tests/live/test_effects.py` fails for an effect that is not listed here
with a reason. [What a host can reach](reach.md) has the whole.

Each call was made by a descriptor of every kind that a kernel holds, inherits or can open, and by paths of the user's
files, the cache, the lab and devices; as root of the machine and as a plain user, in virtual time and in real time.
After each call these were compared: modes, owners, times, links, sizes, contents, extended attributes and flags of
files; locks; flags and positions of the open files of the lab's supervisor, clock and other kernel; queued signals. A
kernel's own files were compared without their contents, sizes and times."""
