"""A symptom in a user's words, made of what does not hold in the lab. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minigts.arena.chance import Chance
from minigts.arena.expectations import Complaint, What
from minigts.topology.plan.plan import Plan

MOST = 2
"""Of how many kinds of complaints a ticket tells at most."""
_OPENINGS = ("Since this morning", "Since last night", "For an hour now", "After lunch it began:", "Since the weekend")
_WORDS: Mapping[What, tuple[str, ...]] = {
    "reach": ("{a} gets no answer from {b}", "I do not reach {b} from {a}"),
    "slow": ("{b} answers {a} only after {figure:.0f} ms", "all that goes from {a} to {b} is slow"),
    "fast": ("{b} answers {a} after {figure:.2f} ms, which is too good for the distance", "what {b} tells {a} is odd"),
    "large": (
        "small things get from {a} to {b} and large ones do not",
        "mails from {a} to {b} hang when they are long",
    ),
    "pieces": ("very large packets do not get from {a} to {b}", "large pictures never get from {a} to {b}"),
    "service": ("the service on {b} does not let {a} in", "{a} cannot open the service on {b}"),
    "transfer": ("the service on {b} lets {a} in and then says nothing", "{a} gets nothing out of the service on {b}"),
    "rate": ("copies from {a} to {b} crawl along at {figure:.1f} Mbit/s", "copying from {a} to {b} takes for ever"),
    "loss": ("some of what {a} asks {b} gets no answer", "calls between {a} and {b} have gaps"),
    "twice": ("{a} gets some answers of {b} twice", "some of what {b} answers {a} comes twice"),
    "order": ("answers of {b} reach {a} in the wrong order", "{a} hears {b} in a muddle"),
    "jitter": ("{b} answers {a} now at once and now late", "calls from {a} to {b} stutter"),
    "name": ("{a} does not find {b} by its name", "on {a} the name {b} leads nowhere, or to the wrong place"),
    "record": ("programs on {a} cannot resolve {b}", "on {a} a look-up of {b} fails or is wrong"),
    "ports": ("{a} cannot open a second connection to {b}", "on {a} every second program fails to reach {b}"),
    "link": ("{a} does not reach the near end of {b}, on the link between them", "{a} and {b} part on their own link"),
    "open": (
        "{a} gets into {b}, which the policy forbids",
        "{a} may not speak with {b}, says the policy, and it does",
    ),
    "disk": ("nobody can save anything on {a}", "{a} says that it has no room"),
    "clock": ("the time on {a} is wrong", "files from {a} have strange dates"),
    "site": ("the Service {b} lets nobody in who comes from {a}", "from {a} the Service {b} is not reached"),
    "server": ("{a} gets no answer from the server {b}", "of what {a} asks, all that {b} should answer is lost"),
    "servers": (
        "kubectl on {a} shows {figure:.0f} servers of {b} that are ready",
        "{a} says that servers of {b} are missing",
    ),
    "lookup": ("{a} does not find {b} by its name", "on {a} a look-up of {b} fails or is wrong"),
    "node": ("kubectl on {a} says that {b} is not ready", "{a} does not count {b} among the nodes that are ready"),
    "enter": ("kubectl on {a} gets into no pod on {b}", "logs of pods on {b} cannot be read from {a}"),
}
_OF_CLUSTER = ("site", "server", "servers", "lookup", "node", "enter")
"""Complaints of a cluster's users: what is inside of a host is a pod, and the other end has a name of its own."""
_WORRIES = (
    "{a} felt slow to me when I spoke with {b}. It may be only me. Is anything wrong?",
    "Somebody says that {b} was not there for {a} yesterday. Please have a look.",
    "We show the network to visitors tomorrow. Is all well, from {a} to {b} above all?",
)


def ticket(plan: Plan, found: Sequence[Complaint], name: str) -> str:
    """The ticket of an incident of that name; of one in which all holds, a worry about nothing."""
    chance = Chance(f"ticket/{name}")
    if not found:
        first, second = chance.mix([host.name for host in plan.hosts])[:2]
        return chance.pick(_WORRIES).format(a=first, b=second)
    kinds = list(dict.fromkeys(each.what for each in found))
    told = [_told(chance, [each for each in found if each.what == what]) for what in chance.mix(kinds)[:MOST]]
    places = len({(each.source, each.target) for each in found})
    more = f" It is so in {places} places that I know of." if places > 1 else ""
    return f"{chance.pick(_OPENINGS)} {', and '.join(told)}.{more} Please find out what it is, and mend it."


def _told(chance: Chance, alike: Sequence[Complaint]) -> str:
    one = chance.pick(alike)
    inside = "the container on " if one.inside else ""
    if one.what in _OF_CLUSTER:
        inside = "a pod on " if one.inside else ""
    words = chance.pick([each for each in _WORDS[one.what] if one.figure is not None or "figure" not in each])
    there = one.target if one.what in _OF_CLUSTER else f"{inside}{one.target}"
    return words.format(a=f"{inside}{one.source}", b=there, figure=one.figure or 0.0)
