"""Predictions as a table, residuals, covariances and summaries for papers."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit import AutoTobitRegressor, TobitRegressor, datasets
from deeptobit.estimators import inputs
from deeptobit.metrics import crps, crps_scorer, log_scorer


def _rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Y, _ = datasets.make_subspace(300, 4, 2, 2, sigma=1.0, upper=6.0, random_state=0)
    index = [f"P{row}" for row in range(len(X))]
    return pd.DataFrame(X, index, list("abcd")), pd.DataFrame(Y, index, ["MMSE", "ADAS"])


def test_the_table_holds_what_the_methods_return() -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=6).fit(X, Y)
    table = model.predict_distribution(X, 0.8)
    assert table.index.names == ["row", "target"]
    assert list(table.loc["P7"].index) == ["MMSE", "ADAS"]
    low, high = model.predict_interval(X, 0.8)
    p_lower, p_upper = model.predict_bound_proba(X)
    expected = {"mean": model.predict(X), "low": low, "high": high}
    expected |= {"p_lower": p_lower, "p_upper": p_upper}
    for name, values in expected.items():
        np.testing.assert_array_equal(table[name].unstack("target")[list(Y)].loc[X.index], values)


def test_residuals_of_a_true_model_are_normal_also_at_bounds_and_on_whole_scores() -> None:
    X, Y = _rows()
    assert (Y == 0).to_numpy().mean() > 0.2
    residuals = TobitRegressor(upper=6).fit(X, Y).residuals(X, Y)
    assert residuals.shape == Y.shape
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 0.01
    whole = Y.round()
    model = AutoTobitRegressor(upper=6, members=["stack"], cv=2, random_state=0).fit(X, whole)
    assert stats.kstest(model.residuals(X, whole).ravel(), "norm").pvalue > 0.01


def test_a_missing_outcome_has_no_residual_and_one_target_no_axis() -> None:
    X, Y = _rows()
    y = Y["MMSE"].to_numpy().copy()
    y[3] = np.nan
    model = TobitRegressor(upper=6).fit(X, y)
    residuals = model.residuals(X, y)
    assert residuals.shape == y.shape
    assert np.flatnonzero(np.isnan(residuals)).tolist() == [3]
    np.testing.assert_array_equal(residuals, model.residuals(X, y))


def test_cov_params_are_those_of_the_summary() -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=6).fit(X, Y)
    found = model.cov_params("ADAS")
    errors = np.sqrt(np.diag(found))
    np.testing.assert_allclose(errors, model.summary()["std_err"].loc["ADAS"].to_numpy())
    with pytest.raises(ValueError, match="target must be one of 'MMSE', 'ADAS'"):
        model.cov_params("CDR")


def test_a_summary_for_a_page_and_for_a_paper(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=6).fit(X, Y.rename(columns={"MMSE": "MMSE <1>"}))
    model.print_summary()
    assert "<0.001" in capsys.readouterr().out
    data = X.assign(MMSE=Y["MMSE"])
    formula = f"MMSE ~ {X.columns[0]}"
    TobitRegressor.from_formula(formula, data, upper=6).print_summary()
    assert capsys.readouterr().out.startswith(formula)
    model.print_summary(style="html")
    page = capsys.readouterr().out
    assert "MMSE &lt;1&gt;" in page
    assert "<td>&lt;0.001</td>" in page
    model.print_summary(style="latex")
    text = capsys.readouterr().out
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert "$<0.001$" in text
    assert r"p\_value" in text


def test_scorers_look_through_a_pipeline() -> None:
    X, Y = _rows()
    alone = TobitRegressor(upper=6).fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), TobitRegressor(upper=6)).fit(X, Y)
    assert log_scorer(alone, X, Y) == alone.score_log(X, Y)
    assert log_scorer(pipeline, X, Y) == pytest.approx(alone.score_log(X, Y), abs=1e-6)
    latent = alone.predict(X, kind="latent")
    direct = crps(Y, latent, alone.sigma_, lower=0, upper=6)
    assert crps_scorer(alone, X, Y) == pytest.approx(-float(direct))
    low, high = pipeline[-1].predict_interval(pipeline[:-1].transform(X))
    np.testing.assert_allclose(low, alone.predict_interval(X)[0], atol=1e-5)
    assert (low <= high).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("noise", ["gaussian", "logistic"])
def test_pseudo_r2_is_the_explained_share_of_the_scores(alpha: float, noise: str) -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=6, alpha=alpha, noise=noise).fit(5.0 * X + 3.0, Y)
    explained = model.predict(5.0 * X + 3.0, kind="latent").var(axis=0)
    whole = explained + model.sigma_**2 * model.noise_.variance()
    np.testing.assert_allclose(model.pseudo_r2(), explained / whole, rtol=1e-6)


def test_features_are_checked_once() -> None:
    X, Y = np.arange(20.0)[:, None], np.arange(20.0)
    model = TobitRegressor().fit(X, Y + np.sin(Y))
    with patch.object(inputs, "read_features", wraps=inputs.read_features) as check:
        model.predict_distribution(X[:1])
    check.assert_called_once()
