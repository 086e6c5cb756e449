from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit.metrics import anmse, censored_log_score, centred_anmse, crps, pit
from deeptobit.targets import CensoredTargets

Y = np.array([[0.0, 3.0], [2.0, np.nan], [5.0, 10.0], [1.0, 4.0]])
LATENT = np.array([[-1.0, 2.0], [2.5, 4.0], [4.0, 9.0], [1.0, 6.0]])

POINT: list[Callable[..., Any]] = [anmse, centred_anmse]
PROBABILISTIC: list[Callable[..., Any]] = [censored_log_score, crps]


def call(measure: Callable[..., Any], Y: Any, latent: Any = LATENT, **options: Any) -> Any:
    return measure(Y, latent, **options) if measure in POINT else measure(Y, latent, 1.5, **options)


def seeded_pit(*args: Any, **options: Any) -> Any:
    return pit(*args, random_state=0, **options)


@pytest.mark.parametrize("measure", [*PROBABILISTIC, seeded_pit])
def test_bounds_may_be_written_in_every_form(measure: Callable[..., Any]) -> None:
    frame = pd.DataFrame(Y, columns=["errors", "score"])
    expected = call(measure, Y, lower=[0.0, 0.0], upper=[np.inf, 10.0])
    for outcomes, lower, upper in [
        (Y, 0, [None, 10]),
        (frame, 0.0, {"score": 10}),
        (Y, np.zeros((4, 2)), [None, 10]),
        (frame, 0, pd.DataFrame({"errors": [np.inf] * 4, "score": [10.0] * 4})),
        (Y.tolist(), [0, 0], np.full((4, 2), [np.inf, 10.0]).tolist()),
        (CensoredTargets.from_bounds(Y, 0, [np.inf, 10]), None, None),
    ]:
        np.testing.assert_array_equal(call(measure, outcomes, lower=lower, upper=upper), expected)


@pytest.mark.parametrize("measure", PROBABILISTIC)
def test_bounds_that_differ_between_rows(measure: Callable[..., Any]) -> None:
    limits = np.array([0.0, 2.0, 1.0, 1.0])
    column = measure(Y[:, 0], LATENT[:, 0], 1.5, lower=limits)
    assert measure(Y[:, :1], LATENT[:, :1], 1.5, lower=limits[:, None]) == column
    one_by_one = [
        measure(y[:1], eta[:1], 1.5, lower=limit)
        for y, eta, limit in zip(Y, LATENT, limits, strict=True)
    ]
    assert np.mean(one_by_one) == pytest.approx(column, rel=1e-14)


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
def test_a_missing_entry_is_as_if_dropped(measure: Callable[..., Any]) -> None:
    known = ~np.isnan(Y[:, 1])
    alone = call(measure, Y[known, 1], LATENT[known, 1])
    assert call(measure, Y, multioutput="raw_values")[1] == pytest.approx(alone, rel=1e-14)


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(measure: Callable[..., Any]) -> None:
    rows = np.repeat(np.arange(4), [2, 1, 0, 3])
    weighted = call(measure, Y, sample_weight=[2, 1, 0, 3], multioutput="raw_values")
    repeated = call(measure, Y[rows], LATENT[rows], multioutput="raw_values")
    np.testing.assert_allclose(weighted, repeated, rtol=1e-13)


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
def test_tasks_are_averaged_as_asked(measure: Callable[..., Any]) -> None:
    each = call(measure, Y, multioutput="raw_values")
    assert each.shape == (2,)
    assert call(measure, Y) == pytest.approx(each.mean(), rel=1e-14)
    assert call(measure, Y, multioutput=[3, 1]) == pytest.approx(0.75 * each[0] + 0.25 * each[1])
    assert call(measure, Y, multioutput=[0.0, 2.0]) == each[1]


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
def test_one_column_is_one_task_in_either_shape(measure: Callable[..., Any]) -> None:
    y, eta = Y[:, 0], LATENT[:, 0]
    assert isinstance(call(measure, y, eta), float)
    assert call(measure, pd.Series(y), eta) == call(measure, y, eta)
    assert call(measure, y[:, None], eta) == call(measure, y, eta[:, None])
    assert call(measure, y, eta, multioutput="raw_values").shape == (1,)


def test_sigma_may_be_a_number_per_task_or_per_entry() -> None:
    expected = crps(Y, LATENT, [1.0, 2.0])
    assert crps(Y, LATENT, np.full((4, 2), [1.0, 2.0])) == expected
    assert crps(Y, LATENT, 1.0) == crps(Y, LATENT, [1.0, 1.0])
    per_row = np.array([1.0, 2.0, 3.0, 4.0])
    assert crps(Y[:, 0], LATENT[:, 0], per_row) == crps(Y[:, :1], LATENT[:, :1], per_row[:, None])


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [1, 1]}, r"one weight per row, shape \(4,\); got \(2,\)"),
        ({"sample_weight": [1, -1, 1, 1]}, "finite and not negative; row 1 has -1"),
        ({"sample_weight": [1, 1, np.nan, 1]}, "finite.* row 2 has nan"),
        ({"sample_weight": np.ma.masked_equal([1, 1, 7, 1], 7)}, "finite.* row 2 has nan"),
        ({"sample_weight": [0, 0, 0, 0]}, "zero in every row"),
        ({"sample_weight": [0, 1, 0, 0]}, r"'y1' has no known entry .* to score; leave it out"),
        ({"multioutput": "mean"}, "multioutput must be 'uniform_average'.* got 'mean'"),
        ({"multioutput": [1, 1, 1]}, "one finite weight per target"),
        ({"multioutput": [1, -1]}, r"not negative and not all 0; got \[1, -1\]"),
        ({"multioutput": [0, 0]}, "not all 0"),
        ({"multioutput": [1, np.nan]}, "one finite weight per target"),
    ],
)
def test_bad_weights_are_refused(
    measure: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(measure, Y, **options)


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC, pit])
def test_bad_predictions_are_refused(measure: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"must have the shape of Y, \(4, 2\); got \(4,\)"):
        call(measure, Y, LATENT[:, 0])
    with pytest.raises(ValueError, match=r"must have the shape of Y, \(4, 1\); got \(3,\)"):
        call(measure, Y[:, 0], LATENT[:3, 0])
    broken = np.where([[0, 1]], np.nan, LATENT)
    with pytest.raises(ValueError, match=r"is nan .* 'y1' in row 0; predictions must be finite"):
        call(measure, Y, broken)
    with pytest.raises(ValueError, match="is inf for target 'b' in row 0"):
        call(measure, pd.DataFrame(Y, columns=["a", "b"]), np.where([[0, 1]], np.inf, LATENT))
    masked = np.ma.masked_greater(LATENT, 8.0)
    with pytest.raises(ValueError, match=r"is nan .* 'y1' in row 2; predictions must be finite"):
        call(measure, Y, masked)
    swapped = pd.DataFrame(LATENT, columns=["b", "a"])
    with pytest.raises(ValueError, match="are b, a, but the targets are a, b, in this order"):
        call(measure, pd.DataFrame(Y, columns=["a", "b"]), swapped)


@pytest.mark.parametrize("measure", [*POINT, *PROBABILISTIC])
def test_a_task_without_a_known_entry_is_named(measure: Callable[..., Any]) -> None:
    empty = pd.DataFrame(Y, columns=["MMSE", "ADAS"]).assign(ADAS=np.nan)
    with pytest.raises(ValueError, match="target 'ADAS' has no known entry"):
        call(measure, empty)


@pytest.mark.parametrize("measure", [*PROBABILISTIC, pit])
def test_bad_scales_and_bounds_are_refused(measure: Callable[..., Any]) -> None:
    for sigma, got in [(0.0, "0 for target 'y0'"), ([1.0, -2.0], "-2 for target 'y1'")]:
        with pytest.raises(ValueError, match=f"sigma must be finite and positive; got {got}"):
            measure(Y, LATENT, sigma)
    with pytest.raises(ValueError, match="sigma must be finite and positive; got nan"):
        measure(Y, LATENT, [1.0, np.nan])
    with pytest.raises(ValueError, match="finite and positive; got nan for target 'y1'"):
        measure(Y, LATENT, np.ma.masked_equal([1.0, 2.0], 2.0))
    with pytest.raises(ValueError, match="upper is NaN in row 2, column 1"):
        measure(Y, LATENT, 1.0, upper=np.ma.masked_greater(LATENT + 20.0, 28.0))
    with pytest.raises(ValueError, match=r"Y, which has shape \(4, 2\); got shape \(4,\)"):
        measure(Y, LATENT, np.ones(4))
    targets = CensoredTargets.from_bounds(Y, 0)
    with pytest.raises(ValueError, match="with a plain array only"):
        measure(targets, LATENT, 1.0, lower=0)
    advice = r"with outside='clip', of the model or of CensoredTargets\.from_bounds"
    with pytest.raises(ValueError, match=f"lie above its upper bound .* {advice}"):
        measure(Y, LATENT, 1.0, upper=5)
    with pytest.raises(ValueError, match=r"shape of Y, \(4, 2\); got \(3, 2\)"):
        measure(Y, LATENT, 1.0, upper=np.ones((3, 2)))
    with pytest.raises(ValueError, match="noise must be one of"):
        measure(Y, LATENT, 1.0, noise="cauchy")
