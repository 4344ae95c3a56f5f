"""The model of a figure, as an experiment's `figures:` and the file of `minigts plot` declare it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from minigts.experiment_language.claims import Name, Number, Words
from minigts.language.fields import Strict, choice, number, text, text_schema, unknown
from minigts.language.figures import digits
from minigts.language.problems import Finding, Location, Misplaced, quote
from minigts.language.quantities import Quantity
from minigts.language.source import Language, read_text
from minigts.language.tree import Tree, read_tree
from minigts.language.validation import read_model

LENGTH_INCH = Quantity(
    "a length",
    "8.5cm",
    {"cm": 1 / Decimal("2.54"), "mm": 1 / Decimal("25.4"), "in": Decimal(1)},
    "2cm",
    "100cm",
)
"""A length on paper, parsed to inches."""
SMALLEST_PT, LARGEST_PT = 4.0, 40.0
"""The smallest and the largest size of letters, in points."""
MOST_FIGURES = 200
X, TIME, EXPERIMENT, MEASUREMENT = "x", "time", "experiment", "measurement"
PLACES = ("hops", "path", "overlay")
"""The axes that every measurement has."""
OF_PLACES = ("hops", "path", "overlay", EXPERIMENT, MEASUREMENT)
"""The axes of names, and of hop counts: their places are one apart."""

Length = Annotated[
    str, BeforeValidator(LENGTH_INCH.normal), text_schema(LENGTH_INCH.pattern, LENGTH_INCH.example, "3.5in")
]
Label = Annotated[str, text("a label", 120)]


class Line(Strict):
    """A value drawn as a line across a figure, in the unit of the panel's axis."""

    at: Number
    """The value at which the line is drawn."""
    text: str
    """The text beside the line."""
    y: str | None = None
    """The panel, by its column; by default the first."""


def _is_plain(value: object) -> bool:
    """Whether a key of a figure says nothing, so that it is in no stored document."""
    return not value or value == Style()


class Axis(Strict):
    """One axis of a figure. Numbers are in the axis's unit."""

    label: Label | None = None
    """The text at the axis; by default the name of what it shows, with its unit."""
    low: Annotated[float, *number("where the axis begins")] | None = Field(default=None, alias="from")
    """The number at which the axis begins; by default it follows from what is drawn."""
    high: Annotated[float, *number("where the axis ends")] | None = Field(default=None, alias="to")
    """The number at which the axis ends; by default it follows from what is drawn."""
    scale: Annotated[Literal["linear", "log"], choice("a scale", "linear", "log")] | None = None
    """linear or log; by default log where the numbers of x span a factor of 30."""
    beside: Annotated[str | None, Field(exclude_if=_is_plain)] = None
    """Another column of `y`, in whose panel this one is drawn, dotted, with its axis on the right; over time only."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise Misplaced(
                [
                    (
                        ("to",),
                        f"an axis from {digits(self.low, 6)} to {digits(self.high, 6)} is none: `to` is the larger one",
                    )
                ]
            )
        if self.scale == "log":
            for key, end in (("from", self.low), ("to", self.high)):
                if end is not None and end <= 0:
                    raise Misplaced([((key,), f"{digits(end, 6)} is on no logarithmic axis: write a number above 0")])
        return self

    @property
    def limited(self) -> bool:
        """Whether one of its ends, or both, are given."""
        return self.low is not None or self.high is not None

    def beyond(self, value: float) -> bool:
        """Whether the value lies outside the axis."""
        below = self.low is not None and value < self.low
        above = self.high is not None and value > self.high
        return below or above or (self.scale == "log" and value <= 0)


class Style(Strict):
    """A figure's size and letters."""

    width: Length | None = None
    """The figure's width, in cm, mm or in; by default 5.6in."""
    height: Length | None = None
    """The figure's height; by default it follows from the width and the panels."""
    font: Annotated[str, text("a font", 60, one_line=True)] | None = None
    """sans, serif, times or mono, which look the same on every machine; or the name of a font of this machine."""
    font_size_pt: Annotated[float, *number("a size of letters in points")] | None = Field(
        default=None, alias="font_size"
    )
    """The size of letters in points; by default 9."""

    @model_validator(mode="after")
    def _legible(self) -> Self:
        size = self.font_size_pt
        if size is not None and not SMALLEST_PT <= size <= LARGEST_PT:
            message = (
                f"letters of {digits(size)} points: from {digits(SMALLEST_PT)} to {digits(LARGEST_PT)} are possible"
            )
            raise Misplaced([(("font_size",), message)])
        if self.font is not None and not self.font.strip():
            raise Misplaced([(("font",), "no name of a font; write sans, serif, times, mono, or the name of one")])
        return self

    @property
    def width_inch(self) -> float | None:
        return None if self.width is None else LENGTH_INCH.parse(self.width)

    @property
    def height_inch(self) -> float | None:
        return None if self.height is None else LENGTH_INCH.parse(self.height)

    def merge(self, usual: Style) -> Style:
        """This style, with what it does not say from the `usual` one."""
        return usual.model_copy(update={key: value for key, value in self if value is not None})


PLAIN_STYLE = Style()


class Figure(Strict):
    """One figure, of a measurement or of several with the same unit. Defaults follow from what they vary;
    docs/results.md."""

    of: Annotated[
        Annotated[Name, Tag("one")] | Annotated[tuple[Name, ...], Field(min_length=1), Tag("several")],
        Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
    ]
    """A measurement, or several with the same unit."""
    name: Annotated[Name | None, Field(exclude_if=_is_plain)] = None
    """The name of the figure's files; by default the measurement's and the axis's, as in tcp-by-hops."""
    title: str = ""
    """The heading of the figure."""
    x: str | None = None
    """What the x axis shows: a varied setting, or hops, path, overlay, time or measurement; of several results also
    experiment."""
    y: tuple[str, ...] = ()
    """The columns of samples.csv that are shown, each in a panel."""
    cdf: Annotated[
        Annotated[Literal["samples", "moments"], choice("what is distributed", "samples", "moments")] | None,
        Field(exclude_if=_is_plain),
    ] = None
    """samples: the distribution of the samples' values; moments: of what the tool reported over time."""
    relative_to: str | None = None
    """Shows values as shares: of this overlay's value at the same x, or of the value at this place of the x axis."""
    overlays: tuple[Name, ...] = ()
    """The overlays that are shown; by default all."""
    where: Annotated[Words, Field(exclude_if=_is_plain)] = Field(default_factory=dict)
    """The values of what varies that are shown; by default all."""
    lines: tuple[Line, ...] = ()
    """Values drawn as lines across the figure."""
    axes: Annotated[dict[str, Axis], Field(exclude_if=_is_plain)] = Field(default_factory=dict)
    """The label, the range and the scale of axes: of `x`, or of a column in `y`."""
    names: Annotated[dict[str, Label], Field(exclude_if=_is_plain)] = Field(default_factory=dict)
    """Other names for what the figure shows: for overlays, measurements, experiments, values and paths."""
    style: Annotated[Style, Field(exclude_if=_is_plain)] = PLAIN_STYLE
    """The figure's size and letters."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if findings := list(self._contradictions()):
            raise Misplaced(findings)
        return self

    def _contradictions(self) -> Iterator[Finding]:
        other = "`cdf`" if self.cdf else "a figure over time" if self.x == TIME else ""
        if self.cdf and self.x is not None:
            yield ("x",), "`cdf` has the columns of `y` along its x axes: leave `x` out"
        if other and self.relative_to is not None:
            yield ("relative_to",), f"{other} shows no shares: leave `relative_to` out"
        if self.x == TIME and len(self.measurements) > 1:
            yield ("of",), "a figure over time is of one measurement"
        yield from self._wrong_axes()

    def _wrong_axes(self) -> Iterator[Finding]:
        if self.cdf and X in self.axes:
            yield ("axes", X), "the x axes of `cdf` are called by their columns, as in axes: {value: …}"
        elif self.x in OF_PLACES and X in self.axes:
            along = self.axes[X]
            given = {"scale": along.scale == "log", "from": along.low is not None, "to": along.high is not None}
            for key in (key for key, said in given.items() if said):
                yield ("axes", X, key), f"x is {self.x} here, which has places and no scale: leave `{key}` out"
        for key, axis in self.axes.items():
            yield from ((("axes", key, "beside"), said) for said in self._wrong_beside(key, axis))
        for key in self.axes:
            if self.y and key not in (X, *self.y):
                yield ("axes", key), unknown("axis", "axes", key, (X, *self.y))

    def _wrong_beside(self, key: str, axis: Axis) -> Iterator[str]:
        """Why a column cannot share the panel of another."""
        if axis.beside is None:
            return
        panels = [name for name in self.y if name != key and self.axis(name).beside is None]
        if self.x != TIME:
            yield "only a figure with `x: time` has a second axis in a panel"
        elif key not in self.y or axis.beside not in panels:
            yield f"{quote(axis.beside)} has no panel in which {key} could be drawn: write both into `y`"

    @property
    def measurements(self) -> tuple[str, ...]:
        """The names of the measurements that it shows."""
        return (self.of,) if isinstance(self.of, str) else self.of

    def axis(self, name: str) -> Axis:
        """What it says of an axis; nothing by default."""
        return self.axes.get(name, PLAIN_AXIS)

    def word_name(self, word: str, otherwise: str | None = None) -> str:
        """The name for a word of the results; by default `otherwise`, or the word."""
        return self.names.get(word, word if otherwise is None else otherwise)


PLAIN_AXIS = Axis()
PLAIN_FIGURE = Figure.model_construct(of="")
"""A figure that asks for nothing: what is drawn follows from what was measured."""


@dataclass(frozen=True)
class Known:
    """The words of an experiment, or of results, that figures may use. `words` are all that a figure can show."""

    axes: Sequence[str]
    columns: Sequence[str]
    overlays: Sequence[str]
    settings: Sequence[str]
    words: Sequence[str]


def unknown_words(figure: Figure, known: Known) -> Iterator[Finding]:
    """The words of a figure that mean nothing there, each at its place in the figure."""
    axes = (*known.axes, *((MEASUREMENT,) if len(figure.measurements) > 1 else ()))
    columns = figure.y or known.columns  # the words of `y` itself are told of once
    paths = [name for name in figure.names if "→" in name]
    said: list[tuple[Location, str, str, str, Sequence[str]]] = [
        *((("x",), "axis", "axes here", each, axes) for each in [figure.x] if each is not None),
        *((("y", at), "column", "columns", each, known.columns) for at, each in enumerate(figure.y)),
        *((("overlays", at), "overlay", "overlays", each, known.overlays) for at, each in enumerate(figure.overlays)),
        *((("where", each), "setting", "settings that vary", each, known.settings) for each in figure.where),
        *((("axes", each), "axis", "axes", each, (X, *columns)) for each in figure.axes),
        *((("lines", at, "y"), "column", "columns", each.y, columns) for at, each in enumerate(figure.lines) if each.y),
        *((("names", each), "word", "words shown", each, (*known.words, *paths)) for each in figure.names),
    ]
    twice = [column for column in dict.fromkeys(figure.y) if figure.y.count(column) > 1]
    yield from ((("y", figure.y.index(column)), f"{quote(column)} is given twice") for column in twice)
    for where, what, kind, word, words in said:
        if word not in words:
            yield where, unknown(what, kind, word, words)


class FiguresFile(Strict):
    """The figures that `minigts plot` draws from results."""

    style: Style = PLAIN_STYLE
    """The size and the letters of all figures; a figure's own `style` comes first."""
    figures: Annotated[tuple[Figure, ...], Field(min_length=1, max_length=MOST_FIGURES)]
    """The figures, with the keys of an experiment's `figures`."""

    @property
    def styled(self) -> tuple[Figure, ...]:
        """The figures, each with its own style over that of all."""
        return tuple(figure.model_copy(update={"style": figure.style.merge(self.style)}) for figure in self.figures)


LANGUAGE = Language(
    name="file of figures",
    opening="`figures:`",
    largest_bytes=100_000,
    instead_of_aliases="write out what is meant, or give it to all figures by `style:` at the top",
)


def load(path: Path) -> tuple[FiguresFile, Tree]:
    """The figures in the file, and its tree, which has the line of everything in it. Raises InputError."""
    return parse(read_text(path, LANGUAGE), str(path))


def parse(content: str, name: str) -> tuple[FiguresFile, Tree]:
    """As `load`, for a text; `name` is the file's name in messages. Raises InputError."""
    tree = read_tree(content, name, LANGUAGE)
    return read_model(tree, name, FiguresFile, _given_twice), tree


def _given_twice(file: FiguresFile) -> Iterator[Finding]:
    named = [figure.name for figure in file.figures]
    for index, name in enumerate(named):
        if name is not None and name in named[:index]:
            yield ("figures", index, "name"), f"{name!r} appears twice"
