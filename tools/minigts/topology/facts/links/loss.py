"""How many packets are lost."""

from __future__ import annotations

from minigts.language.quantities import LOSS_PERCENT
from minigts.topology.link_setting import (
    LOSS_OF_ALL,
    Argv,
    Options,
    Setting,
    Tc,
    Way,
    WireField,
    percent,
    shown_share,
    wire_share,
)


def _words(way: Way) -> Argv:
    """The arguments of netem for losses, each on its own or in bursts."""
    if way.bursts is not None:
        begins, ends = (percent(100 * chance) for chance in way.bursts)
        return ("loss", "gemodel", begins, ends, percent(way.burst_loss_percent), percent(way.burst_between_percent))
    return ("loss", "random", percent(way.loss_percent)) if way.loss_percent else ()


def _shown(netem: Options) -> float:
    """The loss in per cent; for bursts the mean, by the chances that one begins and ends with a packet."""
    if (gilbert := netem.get("loss-gemodel")) is None:
        return shown_share(netem, "loss-random", "loss")
    begins, ends = gilbert["p"], gilbert["r"]
    return float(100 * (begins * gilbert.get("1-h", 1.0) + ends * gilbert.get("1-k", 0.0)) / (begins + ends))


LOSS = Setting(
    word="loss",
    kind=LOSS_PERCENT,
    unit="%",
    about="Share of packets lost at random, in each direction or {to: 0%, from: 1%}. Default: 0%.",
    page="""\
optional · loss, or one for each direction · default: `0%` · `loss: 0.1%`

Share of packets lost at random, in each direction: each on its own, or in [bursts](#linksburst).""",
    tc=Tc(
        words=_words,
        read=_shown,
        # Of bursts tc shows two chances with six digits, from which the loss is worked out.
        slack=lambda way: 1e-6 if way.bursts is None else 1e-4 * way.loss_percent,
    ),
    wire=(WireField(name="loss", value=lambda way: wire_share(way.loss_percent), per=LOSS_OF_ALL / 100, unit="%"),),
)
