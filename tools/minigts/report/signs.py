"""Signs that every figure uses alike: samples that do not count, points to doubt, published values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minigts.report import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Places = Sequence[tuple[float, float]]


def excluded(axes: Axes, at: Places) -> None:
    """Samples that are in no median: a grey cross at each one's own value."""
    _sign(axes, at, "x", 4.2, style.FAINT, "machine too busy", 2.5)


def doubtful(axes: Axes, at: Places) -> None:
    """Points that rest on such samples alone: a grey ring around each."""
    _sign(axes, at, "o", 10, style.FAINT, "machine too busy throughout", 2.5)


def published(axes: Axes, at: Places) -> None:
    """Published values: open diamonds."""
    _sign(axes, at, "D", 5.6, style.INK, "published", 3.5)


def _sign(axes: Axes, at: Places, marker: str, size: float, colour: str, label: str, zorder: float) -> None:
    if at:
        axes.plot(
            [x for x, _ in at],
            [y for _, y in at],
            color=style.FAINT,
            marker=marker,
            markersize=size,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.0,
            linestyle="none",
            label=label,
            zorder=zorder,
        )


def legend(figure: Figure, panels: Sequence[Axes], first: Sequence[str]) -> None:
    """Every label once, above the panels: the series, then what else is drawn."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    if len(entries) > 1 or any(label != style.PLAIN_LABEL for label in entries):
        order = sorted(entries, key=lambda label: label not in first)
        across = max(1, style.LETTERS_ACROSS // (max(map(len, order)) + 7))
        ncols = min(3, across, len(order))
        figure.legend([entries[label] for label in order], order, loc="outside upper left", ncols=ncols)
