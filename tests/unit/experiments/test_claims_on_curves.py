"""Claims on curves: a formula, a slope on logarithmic axes, a share, an order; and what a file may say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy
from experiment_lab import SMALL, chain
from pydantic import ValidationError

from minigts.errors import InputError
from minigts.experiment_language.claims import Claim
from minigts.experiments.claims import evaluate
from minigts.experiments.load import parse
from minigts.experiments.summary import Cell
from minigts.judge import curves
from minigts.judge.samples import Basis
from minigts.judge.statistics import estimate
from minigts.topology.plan.plan import Plan

PLAN = chain()


def cell(*values: float, condition: str = "", metric: str = "", basis: Basis = "samples") -> Cell:
    return Cell(
        overlay="none",
        measurement="tcp",
        quantity="throughput",
        source="ams",
        target="bra",
        hops=1,
        kind="path",
        unit="ms" if metric else "Mbit/s",
        estimate=estimate(values),
        values=values,
        published=None,
        metric=metric,
        condition=condition,
        basis=basis,
    )


def exact(value: float, condition: str = "", **more: str) -> Cell:
    return cell(value, condition=condition, basis="course", **more)  # type: ignore[arg-type]


def verdict(said: dict[str, object], *cells: Cell) -> tuple[str, str]:
    [found] = evaluate([Claim.model_validate(said)], cells, PLAN)
    return found.verdict, found.detail


WINDOW = {"throughput": "follows", "formula": "window / rtt", "unit": "B/s", "range": "90 to 101 %"}


def by_window_mbit(kib: int) -> float:
    """A window over the chain's first round trip of 21.75 ms."""
    return kib * 1024 * 8 / 21.75e-3 / 1e6


def test_a_figure_is_held_against_a_formula_in_its_own_unit() -> None:
    fits = [exact(0.97 * by_window_mbit(kib), f"window={kib}KiB") for kib in (16, 64)]
    word, detail = verdict(WINDOW, *fits)
    assert word == "held"
    assert "97 % of 6.03 Mbit/s by the formula, where 90 to 101 % was expected; exact, one course" in detail
    word, detail = verdict(WINDOW, *fits, exact(0.8 * by_window_mbit(256), "window=256KiB"))
    assert word == "failed"
    assert "of 3 figures 2 hold, 1 do not" in detail and "80 % of 96.4 Mbit/s" in detail


def test_samples_are_tested_against_the_formula() -> None:
    close = [0.95 * by_window_mbit(64) + each / 1000 for each in range(5)]
    assert verdict(WINDOW, cell(*close, condition="window=64KiB"))[0] == "held"
    apart = [0.5 * by_window_mbit(64)] * 2 + [0.95 * by_window_mbit(64)] * 3
    assert verdict(WINDOW, cell(*apart, condition="window=64KiB"))[0] == "undecided"


def test_a_formula_may_name_a_measured_column() -> None:
    said = {**WINDOW, "formula": "window / (rtt_ms / 1000)"}
    waited = exact(43.5, "window=64KiB", metric="rtt_ms")
    assert verdict(said, exact(by_window_mbit(64) / 2, "window=64KiB"), waited)[0] == "held"
    word, detail = verdict(said, exact(by_window_mbit(64) / 2, "window=64KiB"))
    assert word == "undecided" and "has no number for rtt_ms" in detail


def test_a_formula_without_a_value_is_undecided() -> None:
    word, detail = verdict({**WINDOW, "formula": "mss / (rtt * sqrt(p))"}, exact(5.0))
    assert word == "undecided" and "it divides by 0" in detail


@pytest.mark.parametrize(
    ("formula", "word", "said"),
    [
        ("0.5", "held", "98 % of 0.5 Mbit/s by the formula"),
        ("0", "undecided", "the formula gives 0 Mbit/s"),
        ("-1", "undecided", "the formula gives -1 Mbit/s"),
    ],
)
def test_a_figure_is_held_against_any_value_above_0(formula: str, word: str, said: str) -> None:
    found, detail = verdict({**WINDOW, "formula": formula, "unit": "Mbit/s"}, exact(0.49))
    assert found == word and said in detail


SLOPE = {"throughput": "slope", "by": "window", "range": "0.95 to 1.05"}


def law(exponent: float, *noise: float) -> list[Cell]:
    return [
        cell(
            *(2 * kib**exponent * (1 + each) for each in noise or (0.0,)),
            condition=f"window={kib}KiB",
            basis="samples" if noise else "course",
        )
        for kib in (8, 16, 32, 64)
    ]


@pytest.mark.parametrize(("exponent", "word"), [(1.0, "held"), (1.04, "held"), (0.5, "failed"), (-1.0, "failed")])
def test_a_power_law_has_its_exponent_as_slope(exponent: float, word: str) -> None:
    assert verdict(SLOPE, *law(exponent))[0] == word
    found = curves.slope([8, 16, 32, 64], law(exponent))
    assert found is not None and found.exact and found.values == (pytest.approx(exponent),)


def test_a_slope_below_zero_may_be_claimed() -> None:
    assert verdict({**SLOPE, "range": "-0.6 to -0.4"}, *law(-0.5))[0] == "held"


def uneven(exponent: float, *noise: float) -> list[Cell]:
    """As `law`, but only the last place has noise."""
    *others, last = law(exponent, *noise)
    still = [cell(*(each.estimate.median for _ in noise), condition=each.condition) for each in others]
    return [*still, last]


CLOSE, WIDE = (0.0, 0.01, -0.01, 0.005, -0.005), (0.0, 0.4, -0.4, 0.3, -0.3)


def test_a_slope_of_samples_has_a_value_for_each_and_is_told_by_sign_tests() -> None:
    [found] = evaluate([Claim.model_validate(SLOPE)], uneven(1.0, *CLOSE), PLAN)
    assert (found.verdict, found.p) == ("held", pytest.approx(1 / 32))
    assert ", 93.75 %), where" in found.detail and "an exponent of 1 (range 0.99" in found.detail
    assert verdict(SLOPE, *uneven(1.0, *WIDE))[0] == "undecided"
    [found] = evaluate([Claim.model_validate(SLOPE)], uneven(0.5, *CLOSE), PLAN)
    assert (found.verdict, found.p) == ("failed", pytest.approx(1 / 32))


@pytest.mark.parametrize("seed", range(5))
def test_the_p_of_a_slope_is_that_of_scipys_sign_test_on_scipys_slopes(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1, size=(4, 9))
    kib = np.array([8, 16, 32, 64])
    figures = 2 * kib[:, None] * np.exp(noise)
    cells = [
        cell(*row, condition=f"window={place}KiB", basis="replicates") for place, row in zip(kib, figures, strict=True)
    ]
    slopes = [scipy.stats.linregress(np.log(kib), np.log(column)).slope for column in figures.T]
    above, below = (scipy.stats.binomtest(int(n), 9, alternative="greater").pvalue for n in _sides(slopes, 0.95, 1.05))
    [found] = evaluate([Claim.model_validate(SLOPE)], cells, PLAN)
    assert found.p == pytest.approx(max(above, below))
    assert found.verdict == ("held" if max(above, below) <= 0.05 else "undecided")


def _sides(slopes: list[float], low: float, high: float) -> tuple[int, int]:
    return sum(slope >= low for slope in slopes), sum(slope <= high for slope in slopes)


def test_the_p_of_a_slope_is_raised_with_those_of_other_sourced_claims() -> None:
    slope = Claim.model_validate({**SLOPE, "source": "RFC 9438"})
    bounded = Claim.model_validate(
        {"throughput": "bounded", "range": "under 500 Mbit/s", "where": {"window": "64KiB"}, "source": "RFC 9438"}
    )
    cells = uneven(1.0, *CLOSE)
    assert evaluate([slope], cells, PLAN)[0].verdict == "held"
    assert [each.verdict for each in evaluate([slope, bounded], cells, PLAN)] == ["undecided", "undecided"]


def test_a_slope_pairs_the_figures_of_one_replicate() -> None:
    """Each replicate lies on a line of its own; of pairs in another order none would."""
    factors = (1.0, 2.0, 4.0, 8.0, 16.0)
    cells = [
        replace(
            cell(*(kib * factors[key] for key in keys), condition=f"window={kib}KiB", basis="replicates"), keys=keys
        )
        for kib, keys in ((8, (0, 1, 2, 3, 4)), (16, (4, 3, 2, 1, 0)), (32, (2, 0, 4, 1, 3)))
    ]
    found = curves.slope([8, 16, 32], cells)
    assert found is not None and found.values == pytest.approx([1.0] * 5)
    lacking = [*cells[:2], replace(cells[2], keys=(5, 6, 7, 8, 0))]
    found = curves.slope([8, 16, 32], lacking)
    assert found is not None and len(found.values) == 1
    assert curves.slope([8, 16, 32], [*cells[:2], replace(cells[2], keys=(5, 6, 7, 8, 9))]) is None


def test_two_places_have_no_slope() -> None:
    word, detail = verdict(SLOPE, *law(1.0)[:2])
    assert word == "undecided" and "3 values of window" in detail


def along_paths(losses_percent: Sequence[float], rtts_ms: Sequence[float], exponent: float) -> tuple[Plan, list[Cell]]:
    """A chain whose links differ, with a figure of each link by its loss to the exponent."""
    plan = chain(len(losses_percent) + 1)
    links = [
        link.model_copy(update={"loss_percent": loss, "rtt_ms": rtt})
        for link, loss, rtt in zip(plan.links, losses_percent, rtts_ms, strict=True)
    ]
    cells = [
        replace(exact(3 * loss**exponent), source=link.ends[0], target=link.ends[1], kind="segment")
        for link, loss in zip(links, losses_percent, strict=True)
    ]
    return plan.model_copy(update={"links": tuple(links)}), cells


@pytest.mark.parametrize(("exponent", "word"), [(-0.5, "held"), (-1.0, "failed")])
def test_a_slope_may_be_over_the_loss_of_paths(exponent: float, word: str) -> None:
    plan, cells = along_paths((0.1, 0.3, 1.0), (20, 20, 20), exponent)
    said = {"throughput": "slope", "by": "p", "range": "-0.6 to -0.4"}
    [found] = evaluate([Claim.model_validate(said)], cells, plan)
    assert found.verdict == word and f"an exponent of {exponent:.3g}" in found.detail


def test_a_slope_over_paths_leaves_out_those_that_differ_in_more() -> None:
    plan, cells = along_paths((0.1, 0.3, 1.0, 2.0), (20, 20, 20, 90), -0.5)
    odd = [*cells[:3], replace(cells[3], estimate=estimate([99.0]), values=(99.0,))]
    said = {"throughput": "slope", "by": "p", "range": "-0.6 to -0.4"}
    [found] = evaluate([Claim.model_validate(said)], odd, plan)
    assert found.verdict == "held"
    plan, cells = along_paths((0.1, 0.3, 1.0), (20, 30, 40), -0.5)
    [found] = evaluate([Claim.model_validate(said)], cells, plan)
    assert found.verdict == "undecided" and "3 values of p" in found.detail


def test_a_plain_formula_stands_for_a_unit_of_its_own() -> None:
    doubled = [replace(exact(10 * 2.0**turn, f"turn={turn}"), quantity="value", unit="segments") for turn in (0, 1, 2)]
    said = {"value": "follows", "formula": "10 * 2 ** turn", "unit": "1", "range": "99 to 101 %"}
    assert verdict(said, *doubled)[0] == "held"
    assert verdict({**said, "formula": "11 * 2 ** turn"}, *doubled)[0] == "failed"
    assert verdict({**said, "unit": "ms"}, *doubled)[0] == "undecided"


def test_of_both_together_a_figure_has_a_share() -> None:
    said: dict[str, object] = {"throughput": "share", "range": "70 to 90 %"}
    said |= {"where": {"congestion": "bbr"}, "than": {"congestion": "cubic"}}
    cubic = exact(2.0, "congestion=cubic")
    word, detail = verdict(said, exact(8.0, "congestion=bbr"), cubic)
    assert word == "held" and ": 80.0 %, where 70 to 90 % was expected" in detail
    assert verdict(said, exact(3.0, "congestion=bbr"), cubic)[0] == "failed"
    assert verdict({**said, "range": "over 50 %"}, exact(3.0, "congestion=bbr"), cubic)[0] == "held"
    assert verdict({**said, "range": "under 100 %"}, exact(3.0, "congestion=bbr"), cubic)[0] == "held"
    assert verdict(said, exact(8.0, "congestion=bbr"))[0] == "undecided"


ORDER = {"throughput": "ordered", "by": "congestion", "order": ["vegas", "reno", "cubic"]}


@pytest.mark.parametrize(
    ("rates", "word"), [((1.0, 2.0, 3.0), "held"), ((1.0, 3.0, 2.0), "failed"), ((1.0, 2.0, 2.001), "failed")]
)
def test_an_order_holds_when_each_step_rises(rates: tuple[float, ...], word: str) -> None:
    names = ("vegas", "reno", "cubic")
    cells = [exact(rate, f"congestion={name}") for name, rate in zip(names, rates, strict=True)]
    assert verdict(ORDER, *cells)[0] == word


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"throughput": "follows", "range": "90 to 110 %", "unit": "B/s"}, "needs `formula:`"),
        ({"throughput": "follows", "range": "90 to 110 %", "formula": "rate"}, "needs `unit:`"),
        ({**WINDOW, "range": "9 to 10 Mbit/s"}, "needs the unit %"),
        ({**WINDOW, "unit": "furlongs"}, "'furlongs' is no unit of a formula"),
        ({**WINDOW, "formula": "window //"}, "is no formula"),
        ({**SLOPE, "range": "1 to 2 %"}, "needs the unit"),
        ({"throughput": "slope", "range": "1 to 2"}, "needs `by:`"),
        ({**ORDER, "order": ["reno"]}, "too_short"),
        ({"throughput": "falls", "by": "window", "order": ["1", "2"]}, "`order:` is of a claim that says ordered"),
        ({"throughput": "falls", "by": "window", "formula": "rate"}, "`formula:` is of a claim that says follows"),
    ],
)
def test_what_no_such_claim_can_be(said: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Claim.model_validate(said)
    assert any(message in str(each) for each in refused.value.errors())


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            "{throughput: follows, of: tcp, formula: rat * 1, unit: B/s, range: over 5 %}",
            "small.yaml:14: claims[2].formula: no name 'rat'; did you mean 'rate'",
        ),
        (
            "{throughput: follows, of: tcp, formula: rtt, unit: ms, range: over 5 %}",
            "claims[2].unit: ms is no unit of a figure in Mbit/s",
        ),
        (
            "{throughput: ordered, of: tcp, by: window, order: [1kB, 3kB]}",
            "claims[2].order[1]: no value '3kB'",
        ),
    ],
)
def test_names_units_and_values_are_those_of_the_measurement(claim: str, message: str) -> None:
    text = SMALL.replace("options: {duration: 2s, omit: 1s}", "vary: {window: [1kB, 2kB]}")
    text = text.replace("published:\n", f"  - {claim}\npublished:\n")
    with pytest.raises(InputError) as refused:
        parse(text, "small.yaml")
    assert message in str(refused.value)


def test_a_digest_of_older_claims_stays() -> None:
    """A folder of before has the sums of its claims, which new keys must not change."""
    old = Claim.model_validate({"throughput": "falls", "by": "hops"})
    assert old.digest == "3d303615dba2eb1c0f22bb9d180381cfae959e479f7ec28608e564ba1d48b355"
    assert not {"formula", "unit", "order"} & old.model_dump(by_alias=True).keys()
