"""The style of figures: a colour, a marker and a line style for each overlay, so that colour is never the only
difference; and the marks that all figures share.

Colours are Okabe and Ito's, which colour-blind readers can tell apart. Sizes are those of print: unless its file says
otherwise, a figure is 5.6 inches wide and no letter is smaller than 8 points. In an SVG letters are paths, in
matplotlib's own font, so that it looks the same everywhere; a PDF embeds the font. A fixed salt and no date make the
same data give the same bytes. matplotlib is loaded when the first sheet is opened, and not before.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from minigts import paths
from minigts.experiment_language.figures import PLAIN_AXIS, PLAIN_STYLE, Axis, Style
from minigts.language.figures import digits

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

INK = "#1f2326"
"""The colour of axes, letters and the plain network; the page replaces it by its text colour, for dark screens."""
PAPER = "#fefefe"
"""The colour of the background; the page replaces it by its own."""
FAINT = "#8a9097"
"""The colour of references: published values, bounds, tolerances."""

SHADE = "#dfe3e7"
"""The colour of filled areas behind the measured points."""

WIDTH_INCH = 5.6
LETTERS_ACROSS = 72
"""The number of letters that fit across a figure of the usual width and letters."""
POINTS = 9.0
"""The usual size of letters."""
FONTS = {"sans": "DejaVu Sans", "serif": "DejaVu Serif", "times": "STIXGeneral", "mono": "DejaVu Sans Mono"}
"""The fonts that matplotlib brings, by the words for them."""
PNG_DPI = 200
METADATA = {"png": {"Software": "minigts"}, "pdf": {"Creator": "minigts", "CreationDate": None}}
SHORT = 100
"""The ratio of its ends below which a logarithmic axis has numbers between the powers of ten."""
PLAIN = "none"
PLAIN_LABEL = "no overlay"
PLAIN_IPV6, PLAIN_IPV6_LABEL = "none-v6", "no overlay, IPv6"

RC: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.4,
    "legend.facecolor": PAPER,
    "legend.edgecolor": "none",
    "legend.framealpha": 1.0,
    "legend.handlelength": 2.2,
    "lines.linewidth": 1.2,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "svg.hashsalt": "minigts",
    "text.parse_math": False,
}


Dashes = Literal["-", "--", "-.", ":"]
SOLID: Dashes = "-"
Places = Sequence[tuple[float, float]]
"""The x and y of several points."""


@dataclass(frozen=True)
class Look:
    """An overlay's own colour, marker, dashes and hatch, and its name in a legend."""

    label: str
    colour: str
    marker: str
    dashes: Dashes
    hatch: str
    filled: bool = True


PLAIN_LOOK = Look(PLAIN_LABEL, INK, "o", "-", "")
OTHERS: tuple[tuple[str, str, Dashes, str], ...] = (
    ("#0072B2", "s", "--", "////"),
    ("#D55E00", "^", "-.", "...."),
    ("#009E73", "v", ":", "\\\\\\\\"),
    ("#CC79A7", "P", "--", "xxxx"),
    ("#E69F00", "X", "-.", "----"),
    ("#56B4E9", "h", ":", "||||"),
    ("#997700", "<", "--", "oo"),
    ("#AA4499", ">", "-.", "++++"),
)


def missing() -> list[str]:
    """The requirements for figures that this installation lacks, a sentence each."""
    if importlib.util.find_spec("matplotlib") is not None:
        return []
    return [
        "reports and figures need matplotlib, which is not installed here; with pipx: pipx inject minigts matplotlib"
    ]


def lacks_font(style: Style) -> str:
    """What is wrong with the style's font on this machine; empty where it is there. Needs matplotlib."""
    from matplotlib import font_manager  # noqa: PLC0415

    if style.font is None or style.font in FONTS:
        return ""
    try:
        font_manager.findfont(style.font, fallback_to_default=False)
    except ValueError:
        return f"no font {style.font!r} is installed here; these need none: {', '.join(FONTS)}"
    return ""


def rc(style: Style) -> dict[Any, Any]:
    """matplotlib's settings for figures of this style."""
    shift = 0.0 if style.font_size_pt is None else style.font_size_pt - POINTS
    sizes = {name: value + shift for name, value in RC.items() if name.endswith("size") and name != "lines.markersize"}
    family = RC["font.family"]
    if style.font is not None and not lacks_font(style):
        family = [FONTS.get(style.font, style.font), *family]
    return RC | sizes | {"font.family": family}


def letters_across(figure: Figure) -> int:
    """The number of letters that fit across a figure; to be asked inside its sheet."""
    import matplotlib  # noqa: PLC0415

    width, points = float(figure.get_figwidth()), float(matplotlib.rcParams["font.size"])
    return max(8, round(LETTERS_ACROSS * width / WIDTH_INCH * POINTS / points))


def letters_up(figure: Figure, share: float) -> int:
    """The number of letters that fit along the height of a panel, which has that share of its figure."""
    per_inch = letters_across(figure) / float(figure.get_figwidth())
    return max(12, round(share * float(figure.get_figheight()) * per_inch))


def note_size() -> float:
    """The size of the smallest letters, those of notes inside a panel; to be asked inside a sheet."""
    import matplotlib  # noqa: PLC0415

    return max(3.0, float(matplotlib.rcParams["font.size"]) - 1)


@contextmanager
def sheet(height_inch: float, style: Style = PLAIN_STYLE, *, constrained: bool = True) -> Iterator[Figure]:
    """An empty figure; everything drawn inside the `with` has this module's style. `height_inch` is that of a figure of
    the usual width; a narrower one is lower, too, and the style may say both."""
    import matplotlib  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    width = WIDTH_INCH if style.width_inch is None else style.width_inch
    height = height_inch * max(0.75, min(1.0, width / WIDTH_INCH)) if style.height_inch is None else style.height_inch
    with matplotlib.rc_context(rc(style)):
        yield Figure(figsize=(width, height), layout="constrained" if constrained else None)


def save(figure: Figure, folder: Path, name: str, style: Style = PLAIN_STYLE) -> str:
    """Writes NAME.svg, NAME.png and NAME.pdf into `folder` and returns the SVG's text.

    The same figure gives the same bytes. Raises OSError.
    """
    text = svg(figure, name, style)
    paths.write_for_user(folder / f"{name}.svg", text)
    for kind in METADATA:
        paths.write_for_user(folder / f"{name}.{kind}", figure_bytes(figure, kind, style))
    return text


def figure_bytes(figure: Figure, kind: str, style: Style = PLAIN_STYLE) -> bytes:
    """The figure as a file of this kind, of `METADATA`; the same figure gives the same bytes."""
    import matplotlib  # noqa: PLC0415

    made = io.BytesIO()
    with matplotlib.rc_context(rc(style)):
        figure.savefig(made, format=kind, dpi=PNG_DPI, metadata=METADATA[kind])
    return made.getvalue()


def svg(figure: Figure, name: str, style: Style = PLAIN_STYLE) -> str:
    """The figure as SVG text; the same figure gives the same text."""
    import matplotlib  # noqa: PLC0415

    text = io.StringIO()
    with matplotlib.rc_context(rc(style) | {"svg.hashsalt": f"minigts-{name}"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "minigts"})
    return text.getvalue()


def looks(overlays: Iterable[str]) -> dict[str, Look]:
    """A look for each overlay, in order. From the ninth overlay on the looks repeat, with open markers."""
    found: dict[str, Look] = {}
    for name in overlays:
        if name == PLAIN:
            found[name] = PLAIN_LOOK
        elif name not in found:
            taken = len(found) - (PLAIN in found)
            found[name] = Look(name, *OTHERS[taken % len(OTHERS)], filled=taken < len(OTHERS))
    return found


def markers(look: Look, *, joined: bool) -> dict[str, Any]:
    """The arguments of `Axes.errorbar` for medians with intervals, with `joined` connected by the look's line style."""
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": 4.6,
        "markerfacecolor": look.colour if look.filled else PAPER,
        "linestyle": look.dashes if joined else "none",
        "linewidth": 1.0,
        "capsize": 2.5,
        "capthick": 0.9,
        "elinewidth": 0.9,
        "zorder": 3,
    }


def offsets(count: int) -> list[float]:
    """The offsets of `count` series from their hop count, so that none hides another."""
    return [_step(count) * (index - (count - 1) / 2) for index in range(count)]


def bar_width(count: int) -> float:
    """The width of a bar of one of `count` series, where hop counts are 1 apart."""
    return 0.76 * _step(count)


def _step(count: int) -> float:
    return min(0.17, 0.8 / max(1, count))


def set_ends(axes: Axes, x: Axis = PLAIN_AXIS, y: Axis = PLAIN_AXIS) -> None:
    """Let the axes begin and end where the figure's file says."""
    if x.limited:
        axes.set_xlim(x.low, x.high)
    if y.limited:
        axes.set_ylim(y.low, y.high)


def plain_numbers(axis: XAxis | YAxis) -> None:
    """Write the numbers of a logarithmic axis without exponents; of a short axis also twos and fives."""

    def between(value: float, _at: float) -> str:
        low, high = axis.get_view_interval()
        return digits(value, 6) if high < SHORT * low and f"{value:e}"[0] in "25" else ""

    axis.set_major_formatter(lambda value, _: digits(value, 6))
    axis.set_minor_formatter(between)


def mark_excluded(axes: Axes, at: Places) -> None:
    """Mark samples that are in no median by a grey cross at their value."""
    _mark(axes, at, "x", 4.2, FAINT, "machine too busy", 2.5)


def mark_doubtful(axes: Axes, at: Places) -> None:
    """Mark points whose samples were all taken while the machine was busy by a grey ring."""
    _mark(axes, at, "o", 10, FAINT, "machine too busy throughout", 2.5)


def mark_published(axes: Axes, at: Places) -> None:
    """Mark published values by open diamonds."""
    _mark(axes, at, "D", 5.6, INK, "published", 3.5)


LEGEND_ROW_INCH = 0.2
MOST_COLUMNS, BESIDE_A_LABEL = 3, 7
"""Of a legend: its columns at most, and the room of a mark beside its label, in letters."""


def _columns(labels: Sequence[str], across: int) -> int:
    """How many columns these labels have in a legend as wide as that many letters; they fill column after column, the
    first ones with one label more where not all can have as many."""
    for columns in range(min(MOST_COLUMNS, len(labels)), 1, -1):
        rows, longer = divmod(len(labels), columns)
        ends = list(itertools.accumulate(rows + (column < longer) for column in range(columns)))
        widths = [max(map(len, labels[first:last])) for first, last in itertools.pairwise((0, *ends))]
        if sum(widths) + BESIDE_A_LABEL * columns <= across:
            return columns
    return 1


def _mark(axes: Axes, at: Places, marker: str, size: float, colour: str, label: str, zorder: float) -> None:
    if at:
        axes.plot(
            [x for x, _ in at],
            [y for _, y in at],
            color=FAINT,
            marker=marker,
            markersize=size,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.0,
            linestyle="none",
            label=label,
            zorder=zorder,
        )


def legend(figure: Figure, panels: Sequence[Axes], first: Sequence[str], rows: int | None = None) -> None:
    """Draw the legend above the panels, each label once: the series, then the other marks. Where the figure's height
    has room for so many `rows`, further ones make it higher."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    if len(entries) > 1 or any(label != PLAIN_LABEL for label in entries):
        order = sorted(entries, key=lambda label: label not in first)
        ncols = _columns(order, letters_across(figure))
        more = 0 if rows is None else max(0, -(-len(order) // ncols) - rows)
        figure.set_figheight(float(figure.get_figheight()) + LEGEND_ROW_INCH * more)
        figure.legend([entries[label] for label in order], order, loc="outside upper left", ncols=ncols)
