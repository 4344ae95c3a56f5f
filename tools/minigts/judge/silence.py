"""Which machine explains best that echo requests have no answer: it filters, bridges or does not forward. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan

FORWARDER, TARGET, SOURCE = range(3)
"""What a machine is for a pair; of several that explain as many pairs, the first kind is the likelier."""
_MOST_NAMED = 4


@dataclass(frozen=True)
class Silence:
    """Pairs without an answer, and the machines that explain them: one, or several that explain them equally well."""

    machines: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    """(source, target) of the echo requests."""

    @property
    def in_words(self) -> str:
        """`not reached: b from a, b from c: does b forward or filter?`"""
        named = [f"{target} from {source}" for source, target in self.pairs]
        return f"not reached: {_listed(named)}: {question(self.machines)}"


def question(machines: Sequence[str]) -> str:
    """`does b forward or filter?`"""
    return f"{'does' if len(machines) == 1 else 'do'} {_joined(machines)} forward or filter?"


def explain_silence(
    plan: Plan, silent: Sequence[tuple[str, str]], over: Mapping[tuple[str, str], Path]
) -> list[Silence]:
    """The pairs in `silent`, by the machine that explains most of those that are left. `over` has the path of a pair
    that is not the plan's, such as that over one link."""
    found, left = [], list(dict.fromkeys(silent))
    roles = {pair: _roles(plan, over.get(pair) or plan.path(*pair)) for pair in left}
    while left:
        ours: dict[str, list[tuple[str, str]]] = {}
        for pair in left:
            for name in roles[pair]:
                ours.setdefault(name, []).append(pair)
        likely = {name: (len(pairs), *_counts(roles[pair][name] for pair in pairs)) for name, pairs in ours.items()}
        first = max(likely, key=lambda name: likely[name])
        alike = [name for name in ours if likely[name] == likely[first] and ours[name] == ours[first]]
        found.append(Silence(tuple(alike), tuple(ours[first])))
        left = [pair for pair in left if pair not in ours[first]]
    return found


def _counts(kinds: Iterable[int]) -> tuple[int, int]:
    """How often each kind but the last is there, the likeliest first."""
    counted = Counter(kinds)
    return counted[FORWARDER], counted[TARGET]


def _roles(plan: Plan, path: Path) -> dict[str, int]:
    """The machines of every way of a path, there and back, and what each is."""
    links = (*path.links, *path.crossed)
    ends = dict.fromkeys(name for link in links for name in plan.ends_of(link))
    return {**dict.fromkeys(ends, FORWARDER), path.target: TARGET, path.source: SOURCE}


def _joined(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} or {len(names) - _MOST_NAMED} others"
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)


def _listed(named: Sequence[str]) -> str:
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
