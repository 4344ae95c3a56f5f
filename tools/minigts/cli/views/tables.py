"""Tables on the terminal: of the window's width, with no figure cut apart; for a program a line a row, parted by tabs.

A table that is too wide for the window first lets its longest text go over several lines, then leaves columns out that
it can do without, and at last puts each row's cells below each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.errors import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

NO_STYLES: Mapping[str, str] = {}
LEAST_TEXT = 24
"""A column of text may become as narrow as this, and no column of figures narrower than it is."""

Row = tuple[str, ...]


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    optional: Sequence[str] = (),
    styles: Mapping[str, str] = NO_STYLES,
) -> None:
    """A line and a table below it, as `fitted`; for a program the headings and rows in lines, their cells parted by a
    tab."""
    out = console.out()
    if title:
        out.print(title, style="bold", markup=False, soft_wrap=True)
    cells = [tuple(map(printable, row)) for row in rows]
    if console.has_window():
        out.print(fitted(columns, cells, out.width, optional=optional, styles=styles))
    else:
        print("\n".join(piped(columns, cells)), end="\n\n")


def piped(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The headings, if there are any, and the rows; no cell is padded, and none has a tab or a line feed in it."""
    names = [_name(column) for column in columns]
    lines = [names] if any(names) else []
    return ["\t".join(" ".join(printable(cell).split()) for cell in line) for line in (*lines, *rows)]


def fitted(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    optional: Sequence[str] = (),
    styles: Mapping[str, str] = NO_STYLES,
) -> Group | Table:
    """A table no wider than `width`; a column whose heading starts with `>` is aligned to the right. Cells are taken
    literally; `styles` has rich's for whole cells. Of the `optional` headings the first is left out first, and a line
    below says so."""
    from rich.console import Group
    from rich.text import Text

    sheet = _Sheet(tuple(columns), tuple(tuple(row) for row in rows))
    left_out: list[str] = []
    waiting = [name for name in optional if name in sheet.names]
    while not sheet.fits(width) and waiting:
        left_out.append(waiting.pop(0))
        sheet = sheet.without(left_out[-1])
    made = sheet.table(width, styles) if sheet.fits(width) else sheet.below_each_other(width)
    if not left_out:
        return made
    said = f"no room for: {', '.join(left_out)}; a wider window shows them, and so does a pipe"
    return Group(made, Text(said, style="dim"))


@dataclass(frozen=True)
class _Sheet:
    """Headings and rows that may become a table."""

    columns: Row
    rows: tuple[Row, ...]

    @property
    def names(self) -> Row:
        return tuple(_name(column) for column in self.columns)

    @property
    def widths(self) -> list[int]:
        from rich.cells import cell_len

        return [
            max(map(cell_len, (name, *(row[at] for row in self.rows if at < len(row)))))
            for at, name in enumerate(self.names)
        ]

    @property
    def around(self) -> int:
        """What a table of so many columns takes beside its cells: blanks on both sides of each, one between them."""
        return 3 * len(self.columns)

    @property
    def text(self) -> int | None:
        """The place of the column that may go over several lines: the widest of those aligned to the left."""
        long = [
            (width, at)
            for at, (width, column) in enumerate(zip(self.widths, self.columns, strict=True))
            if width > LEAST_TEXT and not column.startswith(">")
        ]
        return max(long)[1] if long else None

    def fits(self, width: int) -> bool:
        widths = self.widths
        if (text := self.text) is not None:
            widths[text] = LEAST_TEXT
        return sum(widths) + self.around <= width

    def without(self, name: str) -> _Sheet:
        kept = [at for at, own in enumerate(self.names) if own != name]
        return _Sheet(tuple(self.columns[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in self.rows))

    def table(self, width: int, styles: Mapping[str, str]) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        made = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(self.names))
        text, widths = self.text, self.widths
        if text is not None:
            widths[text] = min(widths[text], width - self.around - sum(widths) + widths[text])
        for at, (column, own) in enumerate(zip(self.columns, widths, strict=True)):
            made.add_column(
                _name(column),
                justify="right" if column.startswith(">") else "left",
                width=own,
                no_wrap=at != text,
                overflow="fold",
            )
        for row in self.rows:
            made.add_row(*(Text(printable(cell), style=styles.get(cell, "")) for cell in row))
        return made

    def below_each_other(self, width: int) -> Table:
        """Each row as a block: a line for each cell that is not empty, behind its heading."""
        from rich.table import Table
        from rich.text import Text

        made = Table(box=None, pad_edge=False, show_header=False)
        heading = max(map(len, self.names))
        made.add_column(width=heading, no_wrap=True)
        made.add_column(width=max(LEAST_TEXT, width - heading - 3), overflow="fold")
        for row in self.rows:
            for name, cell in zip(self.names, row, strict=True):
                if cell:
                    made.add_row(Text(name), Text(printable(cell)))
            made.add_row("", "")
        return made


def _name(column: str) -> str:
    return column.removeprefix(">")
