"""A legend lies within its figure, however its labels fall into columns."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from minigts.report import style

SIX = ["no overlay", "vxlan", "flannel", "flannel-wireguard", "calico", "calico-wireguard"]
CEILINGS = [f"ceiling by the plan, {name}" for name in SIX]


@pytest.mark.parametrize(
    "labels",
    [SIX, [*SIX[:2], *CEILINGS[:2]], [*SIX[:3], *CEILINGS[:2]], [*SIX, *CEILINGS[:5]], SIX[:4], [*SIX, "published"]],
)
def test_a_legend_lies_within_its_figure(labels: list[str]) -> None:
    with style.sheet(3.0) as figure:
        axes = figure.add_subplot()
        for number, label in enumerate(labels):
            axes.plot([0, 1], [number, number], label=label)
        style.legend(figure, [axes], SIX)
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        box = figure.legends[0].get_window_extent(renderer)
    assert (box.x0 >= 0, box.x1 <= figure.bbox.width) == (True, True)
