"""A figure that a test has drawn is not drawn as PNG and PDF again by the tests after it: most of them draw the same
made-up results, and two thirds of a report's time go into these two files. The SVG is drawn each time, and says whether
the figure is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pytest

from minigts.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_svg, _printed = style.svg, style.figure_bytes
_shown: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()
_drawn: dict[tuple[str, str, style.Style], bytes] = {}
"""By a figure's SVG, its kind and style."""


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "svg", _svg_of)
        patch.setattr(style, "figure_bytes", _printed_once)
        yield


@pytest.fixture
def drawn_anew() -> None:
    """For a test that looks at the very bytes."""
    _drawn.clear()


def _svg_of(figure: Figure, name: str, how: style.Style = style.PLAIN_STYLE) -> str:
    _shown[figure] = _svg(figure, name, how)
    return _shown[figure]


def _printed_once(figure: Figure, kind: str, how: style.Style = style.PLAIN_STYLE) -> bytes:
    key = _shown[figure], kind, how
    if key not in _drawn:
        _drawn[key] = _printed(figure, kind, how)
    return _drawn[key]
