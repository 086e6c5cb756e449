"""Calibration: points are those of the metrics, and unknown entries are left out."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deeptobit import CensoredTargets
from deeptobit.arrays import FloatArray
from deeptobit.inspection import draw_calibration
from deeptobit.inspection.calibration import at_bound
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import bound_calibration, pit
from deeptobit.metrics.inputs import some_predictive, some_targets


def problem(missing: bool = True) -> tuple[CensoredTargets, FloatArray]:
    rng = np.random.default_rng(0)
    latent = rng.normal(1.0, 1.0, size=(200, 2))
    Y = np.clip(latent + rng.normal(size=latent.shape), 0.0, 2.5)
    Y[::7, 1] = np.where(missing, np.nan, Y[::7, 1])
    return CensoredTargets.from_bounds(Y, lower=0, upper=[2.5, np.inf]), latent


def predictive_of(targets: CensoredTargets, latent: FloatArray) -> Predictive:
    bounds = targets.lower_bounds, targets.upper_bounds
    return Predictive(Gaussian(), latent, np.ones(latent.shape[1]), *bounds)


def panels_of(ax: Axes) -> list[Axes]:
    panels = [panel for panel in ax.child_axes if isinstance(panel, Axes)]
    assert len(panels) == 3
    return panels


def test_points_are_those_of_the_metric() -> None:
    targets, latent = problem()
    predictive = predictive_of(targets, latent)
    ax = draw_calibration(targets, predictive, ax=Figure().subplots())
    counts, reliability, _ = panels_of(ax)
    expected = bound_calibration(
        np.where(targets.missing, np.nan, targets.at_lower), predictive.at_lower()
    )
    _, lower, upper = reliability.lines
    assert (lower.get_label(), upper.get_label()) == ("at lower bound", "at upper bound")
    places = np.asarray(lower.get_xydata(), dtype=float)
    np.testing.assert_allclose(places, np.column_stack([expected.predicted, expected.observed]))
    heights = np.array([bar.get_height() for bar in counts.patches])  # type: ignore[attr-defined]
    np.testing.assert_allclose(heights[: len(expected.count)], expected.count)
    # Of the upper bound the first target alone has something to say.
    assert heights[len(expected.count) :].sum() == 200.0
    assert reliability.get_xlabel() == "predicted probability of the bound"


def test_the_histogram_is_that_of_the_transform() -> None:
    targets, latent = problem()
    ax = draw_calibration(
        targets, predictive_of(targets, latent), n_bins=5, random_state=3, ax=Figure().subplots()
    )
    *_, histogram = panels_of(ax)
    values = pit(targets, latent, 1.0, random_state=3)
    known = values[~np.isnan(values)]
    heights = [bar.get_height() for bar in histogram.patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(heights, np.histogram(known, 5, (0.0, 1.0))[0] / len(known))
    assert histogram.get_ylabel() == f"share of {len(known)} entries"


def test_without_bounds_the_left_panel_says_so() -> None:
    targets = CensoredTargets.from_bounds(np.linspace(-1.0, 1.0, 20)[:, None])
    ax = draw_calibration(
        targets, predictive_of(targets, np.zeros((20, 1))), ax=Figure().subplots()
    )
    _, reliability, histogram = panels_of(ax)
    assert [text.get_text() for text in reliability.texts] == ["no target has a bound"]
    assert len(histogram.patches) == 10


def test_what_is_not_known_of_a_bound_is_left_out() -> None:
    low = [[-np.inf], [-np.inf], [1.0], [1.0], [np.nan], [2.0]]
    high = [[0.0], [0.5], [1.0], [2.0], [np.nan], [np.inf]]
    targets = CensoredTargets.from_intervals(low, high, lower=0)
    found = at_bound(targets, targets.at_lower, targets.lower_bounds)
    np.testing.assert_array_equal(found.ravel(), [1.0, np.nan, 0.0, np.nan, np.nan, 0.0])
    open_side = at_bound(targets, targets.at_upper, targets.upper_bounds)
    assert np.isnan(open_side).all()


def test_some_targets_keep_bounds_and_limits_of_their_own() -> None:
    Y = np.array([[1.0, 2.0, 3.0]])
    limits = np.array([[0.1, 0.2, 0.3]])
    targets = CensoredTargets.from_bounds(Y, upper=[5, 6, 7], entry_lower=limits)
    chosen = some_targets(targets, [2, 0])
    assert chosen.names == ("y2", "y0")
    assert chosen.values.tolist() == [[3.0, 1.0]]
    assert chosen.upper.tolist() == [7.0, 5.0]
    assert chosen.lower_bounds.tolist() == [[0.3, 0.1]]
    predictive = some_predictive(predictive_of(targets, Y), [2, 0])
    assert predictive.latent.tolist() == [[3.0, 1.0]]
    assert np.asarray(predictive.lower).tolist() == [[0.3, 0.1]]
    assert np.asarray(predictive.upper).tolist() == [7.0, 5.0]
