"""Tables on the terminal fit the window, and no figure in them is broken. In a file or a pipe a row is a line, with
tabs between the cells.

A table that is too wide for the window first wraps its longest text, then leaves out optional columns, and at last
prints each row's cells below each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.foreign import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

NO_STYLES: Mapping[str, str] = {}
LEAST_TEXT = 24
"""The least width of the column of text that is wrapped. Columns of figures keep their width."""

Row = tuple[str, ...]


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    optional: Sequence[str] = (),
    styles: Mapping[str, str] = NO_STYLES,
) -> None:
    """Print a title and a table as `table_of_width`; in a file or a pipe, the title and the lines of
    `tab_separated_lines`."""
    out = console.out()
    if title:
        out.print(title, style="bold", markup=False, soft_wrap=True)
    cells = [tuple(map(printable, row)) for row in rows]
    if console.has_window():
        out.print(table_of_width(columns, cells, out.width, optional=optional, styles=styles))
    else:
        print("\n".join(tab_separated_lines(columns, cells)), end="\n\n")


def tab_separated_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of the headings, if there are any, and of the rows: tabs separate the cells, which have no padding and
    no tab or line feed within."""
    names = [_name(column) for column in columns]
    lines = [names] if any(names) else []
    return ["\t".join(" ".join(printable(cell).split()) for cell in line) for line in (*lines, *rows)]


def table_of_width(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    optional: Sequence[str] = (),
    styles: Mapping[str, str] = NO_STYLES,
) -> Group | Table:
    """A table at most `width` wide; a column whose heading starts with `>` is aligned to the right. Cells are literal
    text; `styles` maps a whole cell to a style of rich. The `optional` columns are left out in their order, and a line
    below names them."""
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
    """The headings and rows of a table."""

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
        """The width of the blanks around all cells: one on each side of a cell, one between two."""
        return 3 * len(self.columns)

    @property
    def text(self) -> int | None:
        """The index of the column that may be wrapped: the widest one aligned to the left; None if all are narrow."""
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
        """Each row as a block: a line for each cell that is not empty, after its heading."""
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
