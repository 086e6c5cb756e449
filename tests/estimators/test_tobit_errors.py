"""Bad input is refused with a sentence that says what is wrong and where."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from deeptobit import CensoredTargets, TobitRegressor
from tests.estimators.problems import SPARSE_FORMATS, bounded, censored, one_task

NAMES = ["age", "volume", "marker"]


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two named outcomes of three named features."""
    X, Y = censored()
    return pd.DataFrame(X, columns=NAMES), pd.DataFrame(Y, columns=["MMSE", "errors"])


@pytest.mark.parametrize(
    ("value", "what"),
    [(np.nan, "NaN"), (np.inf, "infinity.*"), (-np.inf, "infinity.*")],
)
def test_a_feature_that_is_not_finite_is_named_with_its_row(value: float, what: str) -> None:
    X, Y = frames()
    fitted = bounded().fit(X, Y)
    X.iloc[[4, 9], 1] = value
    for ask in (lambda: bounded().fit(X, Y), lambda: fitted.predict(X)):
        with pytest.raises(ValueError, match=rf"{what}: feature 'volume', row 4 \(2 such"):
            ask()
    with pytest.raises(ValueError, match=rf"{what}: feature 'x1', row 4 \(2 .* values in all"):
        bounded().fit(X.to_numpy(), Y)


@pytest.mark.parametrize("form", SPARSE_FORMATS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_sparse_feature_that_is_not_finite_is_named_with_its_row(form: Any, value: float) -> None:
    X, Y = censored()
    X = np.where(X > 0.5, X, 0.0)
    X[4, 2] = value
    with pytest.raises(ValueError, match=r"feature 'x2', row 4 \(1 such"):
        bounded().fit(form(X), Y)


@pytest.mark.parametrize("dtype", ["object", "category", "str"])
def test_a_word_among_the_features_is_named_with_its_row(dtype: Any) -> None:
    X, Y = frames()
    X["sex"] = pd.Series(["1"] * 7 + ["male"] * (len(X) - 7), dtype=dtype)
    with pytest.raises(ValueError, match=r"'sex' holds 'male' in row 7\. Encode categories"):
        bounded().fit(X, Y)


def test_a_word_in_an_array_is_named_by_its_column() -> None:
    X = np.array([["1", "2"], ["3", "low"]], dtype=object)
    with pytest.raises(ValueError, match="feature 'x1' holds 'low' in row 1"):
        bounded(alpha=1.0).fit(X, [1.0, 2.0])


@pytest.mark.parametrize(
    ("value", "error"), [(date(2026, 11, 17), TypeError), ([1, 2], ValueError)]
)
def test_an_object_among_the_features_is_named_with_its_row(value: Any, error: Any) -> None:
    X, Y = frames()
    X["visit"] = pd.Series([value] * len(X), dtype=object)
    with pytest.raises(error, match=r"feature 'visit' holds .* in row 0\. Encode"):
        bounded().fit(X, Y)


def test_objects_that_are_no_rows_are_refused() -> None:
    with pytest.raises(TypeError, match="X must hold numbers, in rows by features"):
        bounded().fit([date(2026, 11, 17)] * 150, censored()[1])


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (lambda X: X[:, 0], lambda Y: Y, "Expected 2D array, got 1D array"),
        (lambda X: X[None], lambda Y: Y, "Found array with dim 3"),
        (lambda X: ["f", "m"] * 75, lambda Y: Y, "X must hold numbers, in rows by features"),
        (lambda X: X[:0], lambda Y: Y[:0], r"0 sample\(s\)"),
        (lambda X: X[:, :0], lambda Y: Y, r"0 feature\(s\)"),
        (lambda X: pd.DataFrame(X[:, :0]), lambda Y: Y, "X has no column: there is no feature"),
        (lambda X: X, lambda Y: Y[:9], "X has 150 rows but Y has 9"),
        (lambda X: X, lambda Y: Y[:, :0], "Y has no column"),
        (lambda X: X, lambda Y: Y[None], "Y must be 1-d or 2-d"),
        (lambda X: X, lambda Y: None, "Y is None"),
        (lambda X: X, lambda Y: Y * 1j, "Complex data not supported"),
        (lambda X: X, lambda Y: np.where(Y > 2.9, np.inf, Y), "Y contains infinity .*'y1', row 7"),
        (lambda X: X, lambda Y: [["low", "2"]] * 150, "Y must hold numbers .*'low' at row 0"),
    ],
)
def test_wrong_shapes_and_kinds(X: Any, Y: Any, message: str) -> None:
    features, outcomes = censored()
    with pytest.raises(ValueError, match=message):
        bounded().fit(X(features), Y(outcomes))


def test_sparse_outcomes_are_refused() -> None:
    X, Y = censored()
    with pytest.raises(TypeError, match="Y is sparse; pass a dense array"):
        bounded().fit(X, csr_array(Y))


def test_outcomes_beyond_a_bound_are_named_counted_and_located() -> None:
    X, Y = frames()
    Y.loc[[3, 5, 8, 13, 21, 34], "errors"] = [-2.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    with pytest.raises(
        ValueError,
        match=r"'errors': 6 value\(s\) lie below its lower bound \(rows 3, 5, 8, 13, 21, …; "
        r"the first is -2, the bound 0\).*outside='clip'",
    ):
        bounded().fit(X, Y)


def test_outcomes_beyond_the_limit_of_their_row_are_located() -> None:
    X, Y = censored()
    lower = np.full_like(Y, -1.0)
    row = int(np.flatnonzero(Y[:, 1] == 0.0)[0])
    lower[row, 1] = 0.5
    with pytest.raises(ValueError, match=rf"'y1': 1 value.*\(row {row}; .* the bound 0.5\)"):
        TobitRegressor().fit(X, Y, lower=lower)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lower": 3.0, "upper": 0.0}, "'MMSE': the lower bound 3 is not below the upper bound 0"),
        ({"lower": 0.0, "upper": [3.0, 0.0]}, "'errors': the lower bound 0 is not below"),
        ({"lower": {"MSME": 0.0}}, "unknown target.* 'MSME'; the targets are 'MMSE', 'errors'"),
        ({"upper": {"y0": 3.0}}, "upper names unknown target.* 'y0'"),
        ({"lower": [0.0, 0.0, 0.0]}, r"one value per target \(2\); got 3"),
        ({"lower": np.nan}, "lower bound of target 'MMSE' is NaN"),
        ({"outside": "drop"}, "outside must be 'raise' or 'clip'; got 'drop'"),
        ({"noise": "cauchy"}, "noise must be one of 'gaussian', 'logistic', 'student_t'"),
        ({"noise": 3.0}, "or of a class derived from deeptobit.likelihood.Noise"),
        ({"noise": None}, "noise must be one of"),
        ({"alpha": -0.1}, r"alpha must be a number from 0 to 1e\+100; got -0.1"),
        ({"alpha": np.nan}, "alpha must be a number from 0"),
        ({"alpha": np.inf}, "alpha must be a number from 0"),
        ({"alpha": "auto"}, r"alpha must be a number from 0 to 1e\+100; got 'auto'"),
        ({"tol": 0.0}, "tol must be positive; got 0"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
        ({"tol": np.nan}, "tol must be positive; got nan"),
        ({"max_iter": 0}, "max_iter must be a whole number, at least 1; got 0"),
        ({"prediction": "x"}, "prediction: the kind must be 'mean', 'clip' or 'latent'; got 'x'"),
        ({"sigma": "auto"}, "sigma must be 'mle', a number, one per task or a dict; got 'auto'"),
        ({"sigma": 0.0}, "sigma must be positive and finite for every target; got 0"),
        ({"sigma": [1.0, -1.0]}, "sigma must be positive and finite"),
        ({"sigma": np.nan}, "sigma must be positive and finite"),
        ({"sigma": {"MMSE": 1.0}}, "sigma must be positive and finite for every target"),
        ({"sigma": {0: 1.0, "0": 1.0}}, "sigma names target '0' twice"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TobitRegressor(**settings).fit(*frames())


@pytest.mark.parametrize("sigma", [{1: 0.5, 0: 2.0}, pd.Series({1: 0.5, 0: 2.0})], ids=type)
def test_columns_that_are_numbers_are_named_by_numbers(sigma: Any) -> None:
    X, Y = censored()
    model = TobitRegressor(lower={0: 0.0, 1: 0.0}, upper={1: 3.0, 0: 3.0}, sigma=sigma)
    model.fit(X, pd.DataFrame(Y))
    assert model.target_names_ == ["0", "1"]
    assert model.sigma_.tolist() == [2.0, 0.5]
    with pytest.raises(ValueError, match=r"upper names unknown target.* '5'; the targets are '0'"):
        TobitRegressor(upper={5: 3.0}).fit(X, pd.DataFrame(Y))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[1.0, -2.0, np.ones(148)], "weight must be finite and not negative; row 1 has -2"),
        (np.r_[np.ones(148), np.nan, np.inf], r"row 148 has nan \(2 such rows\)"),
        (np.ones(149), r"one weight per row, shape \(150,\); got \(149,\)"),
        (np.ones((150, 1)), r"one weight per row, shape \(150,\); got \(150, 1\)"),
        (2.0, r"one weight per row, shape \(150,\); got \(\)"),
        (np.zeros(150), "sample_weight is zero in every row$"),
        (["heavy"] * 150, "sample_weight must hold numbers, one weight per row"),
        (np.full(150, np.timedelta64(1, "D")), "sample_weight holds dates or durations"),
    ],
    ids=["negative", "not finite", "short", "2-d", "number", "zero", "words", "durations"],
)
def test_weights_that_make_no_sense(weight: Any, message: str) -> None:
    X, Y = censored()
    fitted = bounded().fit(X, Y)
    for ask in (bounded().fit, fitted.score, fitted.score_log):
        with pytest.raises(ValueError, match=message):
            ask(X, Y, sample_weight=weight)


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_limits_per_row_must_have_the_shape_of_the_outcomes(side: str) -> None:
    X, Y = censored()
    fitted = bounded().fit(X, Y)
    wrong: dict[str, Any] = {side: np.ones(150)}
    for ask in (
        lambda: bounded().fit(X, Y, **wrong),
        lambda: fitted.predict(X, **wrong),
        lambda: fitted.predict_quantile(X, 0.5, **wrong),
        lambda: fitted.predict_interval(X, **wrong),
        lambda: fitted.predict_bound_proba(X, **wrong),
        lambda: fitted.sample_y(X, **wrong),
        lambda: fitted.score(X, Y, **wrong),
        lambda: fitted.score_log(X, Y, **wrong),
    ):
        with pytest.raises(ValueError, match=rf"{side} .* the shape of Y, \(150, 2\); got \(150,"):
            ask()


def test_limits_per_row_must_be_numbers_and_in_order() -> None:
    X, Y = censored()
    with pytest.raises(ValueError, match="lower is NaN in row 0, column 0; write -inf"):
        bounded().fit(X, Y, lower=np.full_like(Y, np.nan))
    with pytest.raises(ValueError, match=r"'y0': the lower bound is not below .* in 150 row\(s\)"):
        bounded().fit(X, Y, lower=np.full_like(Y, 3.0))
    with pytest.raises(ValueError, match=r"'y0': the lower bound is not below .* in 150 row\(s\)"):
        bounded().fit(X, Y).predict(X, lower=np.full_like(Y, 5.0))


def test_censored_targets_and_limits_per_row_exclude_each_other() -> None:
    X, Y = censored()
    targets = CensoredTargets.from_bounds(Y, 0.0, 3.0)
    fitted = bounded().fit(X, targets)
    for ask in (bounded().fit, fitted.score, fitted.score_log):
        with pytest.raises(ValueError, match="Y is a CensoredTargets and brings its own bounds"):
            ask(X, targets, lower=np.zeros_like(Y))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["age", "marker", "volume"], "must be in the same order"),
        (["age", "volume", "height"], "unseen at fit time:\n- height"),
        (["age", "volume"], "seen at fit time, yet now missing:\n- marker"),
    ],
)
def test_predict_refuses_other_columns(columns: list[str], message: str) -> None:
    X, Y = frames()
    model = bounded().fit(X, Y)
    other = X.rename(columns={"marker": "height"}) if "height" in columns else X
    with pytest.raises(ValueError, match=message):
        model.predict(other[columns])


def test_predict_refuses_another_number_of_features() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    for ask in (model.predict, model.predict_interval, model.marginal_effects, model.sample_y):
        with pytest.raises(ValueError, match="X has 2 features, but TobitRegressor is expecting 3"):
            ask(X[:, :2])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m, X: m.predict(X, kind="median"), "^kind must be 'mean', 'clip' or 'latent'"),
        (lambda m, X: m.set_params(prediction="x").predict(X), "'latent'; got 'x'"),
        (lambda m, X: m.predict_interval(X, 90), "coverage must lie between 0 and 1; got 90"),
        (lambda m, X: m.predict_interval(X, 1.0), "coverage must lie between 0 and 1"),
        (lambda m, X: m.predict_interval(X, "90%"), "coverage must lie between 0 and 1; got '90%'"),
        (lambda m, X: m.sample_y(X, 0), "n_samples must be a whole number, at least 1; got 0"),
        (lambda m, X: m.predict_quantile(X, 1.5), "quantiles must lie between 0 and 1; got 1.5"),
        (lambda m, X: m.predict_quantile(X, "median"), "between 0 and 1; got 'median'"),
        (lambda m, X: m.predict_quantile(X, [0.5, np.nan]), "quantiles must lie between 0 and 1"),
    ],
    ids=[
        "kind",
        "prediction",
        "coverage",
        "full coverage",
        "text",
        "no draw",
        "quantile",
        "word",
        "NaN",
    ],
)
def test_predictions_that_make_no_sense(ask: Any, message: str) -> None:
    X, y = one_task()
    with pytest.raises(ValueError, match=message):
        ask(bounded().fit(X, y), X)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, X, y: m.predict(X),
        lambda m, X, y: m.predict_bound_proba(X),
        lambda m, X, y: m.predict_quantile(X, 0.5),
        lambda m, X, y: m.predict_interval(X),
        lambda m, X, y: m.predict_mean_interval(X),
        lambda m, X, y: m.sample_y(X),
        lambda m, X, y: m.score(X, y),
        lambda m, X, y: m.score_log(X, y),
        lambda m, X, y: m.summary(),
        lambda m, X, y: m.print_summary(),
        lambda m, X, y: m.wald_test(),
        lambda m, X, y: m.likelihood_ratio_test(),
        lambda m, X, y: m.aic(),
        lambda m, X, y: m.bic(),
        lambda m, X, y: m.marginal_effects(X),
        lambda m, X, y: bounded().fit(X, y).likelihood_ratio_test(m),
    ],
    ids=lambda ask: ask.__code__.co_names[-1],
)
def test_an_unfitted_model_says_so(ask: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(bounded(), *one_task())


def test_a_fit_that_fails_leaves_no_half_fitted_model() -> None:
    X, Y = censored()
    model = bounded()
    with pytest.raises(ValueError, match="above its upper bound"):
        model.fit(X, Y + 1.0)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_value_whose_square_overflows_is_refused() -> None:
    X = np.arange(6.0)[:, None]
    y = np.array([1.0, 2.0, 3.0, 1e200, 5.0, 6.0])
    with pytest.raises(ValueError, match=r"target 'y' is too large in row 3 \(1e\+200\); rescale"):
        TobitRegressor().fit(X, y)
