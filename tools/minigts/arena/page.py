"""The page of incidents that were played: points by family and agent, what it has cost, and a row for each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from minigts.arena import families
from minigts.arena.scores import SHARES, ArenaScore
from minigts.arena.transcript import Transcript
from minigts.foreign import printable
from minigts.language.figures import digits


def page(played: Sequence[Transcript]) -> str:
    """The page as Markdown. Names in it that a file chose are shown as code."""
    return "\n".join([*_lines(played), ""])


def _lines(played: Sequence[Transcript]) -> Iterator[str]:
    agents = list(dict.fromkeys(each.ticket.agent for each in played))
    yield "# Incidents that were played"
    yield ""
    yield "Points are the mean of four shares: whether it was seen that anything is wrong, the right hosts, the right"
    yield "kinds, and what is mended. Solved is what has all points, with nobody left who complains. Calls and"
    yield "seconds of the lab are medians."
    for agent in agents:
        of_agent = [each for each in played if each.ticket.agent == agent]
        yield from ("", f"## {_code(agent)}", "")
        yield from table(of_agent)
    yield from ("", "## Each incident", "")
    yield from heading("incident", "agent", "solved", "points", *SHARES, "left", "broken", "calls", "lab, s")
    for each in sorted(played, key=_order):
        found = each.end.score
        yield cells(
            _code(each.ticket.incident),
            _code(each.ticket.agent),
            "yes" if found.solved else "no",
            f"{found.points:.2f}",
            *(digits(getattr(found, name), 2) for name in SHARES),
            *(found.left, found.broken, found.calls),
            f"{found.lab_s:.1f}",
        )


def table(played: Sequence[Transcript]) -> Iterator[str]:
    """A row for each family that was played, and one for all."""
    yield from heading("family", "incidents", "solved", "points", *SHARES, "broken", "calls", "lab, s")
    for family in families.FAMILIES:
        if found := [each.end.score for each in played if each.ticket.incident.startswith(f"{family}/")]:
            yield _row(family, found)
    yield _row("all", [each.end.score for each in played])


def _row(name: str, scores: Sequence[ArenaScore]) -> str:
    return cells(
        name,
        len(scores),
        sum(each.solved for each in scores),
        f"{_mean(each.points for each in scores):.2f}",
        *(f"{_mean(getattr(each, share) for each in scores):.2f}" for share in SHARES),
        sum(each.broken for each in scores),
        f"{median(each.calls for each in scores):g}",
        f"{median(each.lab_s for each in scores):.1f}",
    )


def heading(*names: str) -> Iterator[str]:
    """The two lines that begin a table of Markdown."""
    yield cells(*names)
    yield "|---" * len(names) + "|"


def cells(*words: object) -> str:
    """A row of a table of Markdown."""
    return f"| {' | '.join(map(str, words))} |"


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _order(each: Transcript) -> tuple[str, int, str]:
    family, _, seed = each.ticket.incident.partition("/")
    return family, int(seed) if seed.isdigit() else 0, each.ticket.agent


def _code(word: str) -> str:
    return f"`{printable(word).replace('`', '').replace('|', '')}`"
