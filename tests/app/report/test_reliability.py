from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from deeptobit.app.report.privacy import N_BINS, bound_errors
from deeptobit.app.report.words import reliability_words
from deeptobit.inspection import bound_calibrations, draw_calibration
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import bound_calibration
from deeptobit.targets import CensoredTargets


def _problem(n_rows: int, seed: int) -> tuple[CensoredTargets, Predictive]:
    rng = np.random.default_rng(seed)
    latent = rng.normal(scale=2.0, size=(n_rows, 3))
    Y = np.clip(latent + rng.normal(size=latent.shape), -1.0, 1.5)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    targets = CensoredTargets.from_bounds(
        Y, [-1.0, -1.0, -np.inf], [1.5, np.inf, 1.5], outside="clip"
    )
    return targets, Predictive(Gaussian(), latent, np.ones(3), targets.lower, targets.upper)


@pytest.mark.parametrize("n_rows", [10, 40, 400])
def test_no_bin_is_drawn_in_which_fewer_than_five_are_there_or_not(n_rows: int) -> None:
    targets, predictive = _problem(n_rows, seed=n_rows)
    found = bound_calibrations(targets, predictive, N_BINS)
    _, curves, _ = _drawn(targets, predictive, min_count=5)
    for side, bins in found.items():
        shares = [
            line.get_ydata() for line in curves.lines if line.get_label() == f"at {side} bound"
        ]
        there = np.round(bins.observed * bins.count)
        few = [0 < at < 5 or 0 < off < 5 for at, off in zip(there, bins.count - there, strict=True)]
        wanted = bins.observed[np.logical_not(few)]
        assert len(shares) == min(wanted.size, 1)
        np.testing.assert_array_equal(np.concatenate([*shares, []]), wanted)


def test_where_nothing_is_left_the_picture_says_why() -> None:
    targets, predictive = _problem(4, seed=0)
    _, curves, _ = _drawn(targets, predictive, min_count=5)
    assert [text.get_text() for text in curves.texts] == ["too few entries to show"]


def test_large_bins_stay_as_they_are() -> None:
    targets, predictive = _problem(4000, seed=0)
    some, everything = (_drawn(targets, predictive, min_count=n)[1] for n in (5, 1))
    assert len(some.lines) == 3
    for kept, line in zip(some.lines, everything.lines, strict=True):
        np.testing.assert_array_equal(kept.get_xydata(), line.get_xydata())


def test_the_error_of_a_side_is_not_told_where_few_are_there() -> None:
    """Two of 60 at the upper bound, whose probability is next to 0: the error would be 2/60."""
    Y = np.append(np.linspace(1.0, 20.0, 58), [30.0, 30.0])[:, None]
    targets = CensoredTargets.from_bounds(Y, None, 30.0)
    predictive = Predictive(Gaussian(), np.full((60, 1), 10.0), np.ones(1), -np.inf, 30.0)
    assert bound_errors(targets, predictive) == {"upper": None}
    assert bound_errors(targets, predictive, min_count=1) == {"upper": pytest.approx(2 / 60)}
    assert reliability_words({"upper": None}) == (
        "Too few values are at the upper bound, or off it, for a number."
    )
    both = reliability_words({"lower": 0.01, "upper": None})
    assert both.startswith("On average, predicted and observed shares differ by 1.0 percentage")
    assert both.endswith("at the upper bound, or off it, for a number.")


def _drawn(targets: CensoredTargets, predictive: Predictive, *, min_count: int) -> list[Any]:
    ax = Figure().subplots()
    return draw_calibration(
        targets, predictive, n_bins=N_BINS, min_count=min_count, ax=ax
    ).child_axes


def test_errors_by_side_are_those_of_the_metric() -> None:
    targets, predictive = _problem(500, seed=1)
    happened = np.where(targets.missing, np.nan, targets.at_lower)
    happened[:, 2] = np.nan  # has no lower bound
    expected = bound_calibration(happened, predictive.at_lower()).expected_error
    errors = bound_errors(targets, predictive)
    assert set(errors) == {"lower", "upper"}
    assert errors["lower"] == pytest.approx(expected)
