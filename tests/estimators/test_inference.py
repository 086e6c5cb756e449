"""Tables and tests of a fitted Tobit, against closed forms, differences and other fits."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, norm, t

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import (
    assert_close,
    bounded,
    censored,
    moved,
    numerical_covariance,
    one_task,
)

NAMES = ["age", "volume", "marker"]


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two named outcomes of three named features."""
    X, Y = censored()
    return pd.DataFrame(X, columns=NAMES), pd.DataFrame(Y, columns=["MMSE", "errors"])


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
@pytest.mark.parametrize("kind", ["bounds", "intervals"])
def test_standard_errors_invert_the_hessian_of_the_log_likelihood(noise: str, kind: str) -> None:
    X, y = one_task()
    targets: Any = y
    if kind == "intervals":
        step = np.floor(y)
        targets = CensoredTargets.from_intervals(
            np.where(y <= 0.0, -np.inf, step), np.where(y >= 3.0, np.inf, step + 1.0)
        )
    model = bounded(noise=noise).fit(X, targets)
    expected = np.sqrt(np.diag(numerical_covariance(model, X, targets)))
    np.testing.assert_allclose(model.summary()["std_err"], expected, rtol=1e-4)


def test_the_columns_of_the_summary_follow_from_estimate_and_error() -> None:
    table = bounded().fit(*frames()).summary(confidence=0.9, small_sample=False)
    reach = norm.ppf(0.95) * table["std_err"]
    np.testing.assert_allclose(table["z"], table["coef"] / table["std_err"])
    np.testing.assert_allclose(table["p_value"], 2.0 * norm.sf(np.abs(table["z"])))
    np.testing.assert_allclose(table["ci_low"], table["coef"] - reach)
    np.testing.assert_allclose(table["ci_high"], table["coef"] + reach)


def test_the_summary_holds_the_fitted_values_by_target_and_term() -> None:
    model = bounded().fit(*frames())
    table = model.summary()["coef"].unstack("term")
    assert model.summary().index.names == ["target", "term"]
    np.testing.assert_allclose(table[NAMES], model.coef_)
    np.testing.assert_allclose(table["(intercept)"], model.intercept_)
    np.testing.assert_allclose(table["log(sigma)"], np.log(model.sigma_))
    assert table.index.tolist() == ["MMSE", "errors"]


@pytest.mark.parametrize(
    ("settings", "terms"),
    [
        ({}, ["x0", "x1", "x2", "(intercept)", "log(sigma)"]),
        ({"fit_intercept": False}, ["x0", "x1", "x2", "log(sigma)"]),
        ({"sigma": 1.0}, ["x0", "x1", "x2", "(intercept)"]),
    ],
)
def test_terms_that_were_not_estimated_are_not_shown_nor_counted(
    settings: dict[str, Any], terms: list[str]
) -> None:
    X, y = one_task()
    model = bounded(**settings).fit(X, y)
    assert model.summary().index.get_level_values("term").tolist() == terms
    np.testing.assert_allclose(model.aic(), 2 * len(terms) - 2 * model.log_likelihood_)


def sandwich(X: FloatArray, residuals: FloatArray, groups: Any) -> FloatArray:
    """(XᵀX)⁻¹ Σ_g (Σ_i∈g x_i e_i)(…)ᵀ (XᵀX)⁻¹, without a small-sample factor."""
    design = np.column_stack([X, np.ones(len(X))])
    scores = np.vstack(
        [(design * residuals[:, None])[groups == g].sum(axis=0) for g in np.unique(groups)]
    )
    bread = np.linalg.inv(design.T @ design)
    return np.asarray(bread @ scores.T @ scores @ bread)


def test_without_censoring_standard_errors_are_those_of_least_squares() -> None:
    X, Y = censored()
    y = X @ [1.0, 2.0, 3.0] + Y[:, 0]
    model = TobitRegressor(lower=None).fit(X, y)
    residuals, groups = y - model.predict(X), np.arange(len(X)) // 5
    design = np.column_stack([X, np.ones(len(X))])
    plain = model.sigma_[0] ** 2 * np.linalg.inv(design.T @ design)
    expected = {
        "observed": plain,
        "robust": sandwich(X, residuals, np.arange(len(X))),
        "cluster": sandwich(X, residuals, groups),
    }
    for kind, covariance in expected.items():
        table = model.summary(cov_type=kind, groups=groups)  # type: ignore[arg-type]
        np.testing.assert_allclose(table["std_err"][:4], np.sqrt(np.diag(covariance)), rtol=1e-6)
    errors = model.summary()["std_err"]
    np.testing.assert_allclose(errors.iloc[4], 1.0 / np.sqrt(2.0 * len(X)), rtol=1e-6)


def test_small_samples_without_censoring_have_the_exact_reference_of_linear_regression() -> None:
    rng = np.random.default_rng(3)
    n, X = 20, rng.normal(size=(20, 3))
    y = X @ [1.0, 0.0, 0.4] + rng.normal(size=n)
    design = np.column_stack([X, np.ones(n)])
    beta, squares = np.linalg.lstsq(design, y)[:2]
    error = np.sqrt(squares / (n - 4) * np.linalg.inv(design.T @ design).diagonal())
    model = TobitRegressor(lower=None).fit(X, y)
    table = model.summary().loc["y"]
    p_values = 2.0 * t.sf(np.abs(beta / error), n - 4)
    np.testing.assert_allclose(table["p_value"][:4], p_values, rtol=1e-6)
    np.testing.assert_allclose(table["ci_high"][:4], beta + t.ppf(0.975, n - 4) * error, rtol=1e-6)
    ends = 0.5 * np.log(squares / chi2.ppf([0.975, 0.025], n - 4))
    np.testing.assert_allclose(table.loc["log(sigma)", ["ci_low", "ci_high"]], ends, rtol=1e-5)
    without = TobitRegressor(lower=None).fit(X[:, :2], y)
    both = model.wald_test(["x2"]), model.likelihood_ratio_test(without)
    np.testing.assert_allclose([test["p_value"] for test in both], p_values[2], rtol=1e-5)


def test_degrees_of_freedom_of_clusters_ridges_and_given_scales() -> None:
    X, y = one_task()
    groups = np.arange(len(X)) % 8
    table = bounded().fit(X, y).summary(cov_type="cluster", groups=groups)
    n, p = len(X), 4
    reach = (table["ci_high"] - table["coef"]) / table["std_err"]
    factor = np.sqrt(8 / 7 * (n - 1) / (n - p))
    np.testing.assert_allclose(reach.iloc[:p], t.ppf(0.975, 7) * factor, rtol=1e-9)
    strong = bounded(alpha=1e6).fit(X, y).summary()  # nothing but an intercept is left
    reach = (strong["ci_high"] - strong["coef"]) / strong["std_err"]
    np.testing.assert_allclose(reach.iloc[0], t.ppf(0.975, n - 1) * np.sqrt(n / (n - 1)), rtol=1e-4)
    known = bounded(sigma=1.0).fit(X, y)
    assert_close(known.summary(), known.summary(small_sample=False), 1e-12)
    ratios = known.likelihood_ratio_test(), known.likelihood_ratio_test(small_sample=False)
    assert_close(*ratios, 1e-12)


@pytest.mark.parametrize("labels", ["numbers", "words"])
def test_clusters_of_one_row_are_robust(labels: str) -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    groups = [f"id{i}" if labels == "words" else 7 * i for i in range(len(X))]
    cluster = model.summary(cov_type="cluster", groups=groups, small_sample=False)
    robust = model.summary(cov_type="robust", small_sample=False)
    np.testing.assert_allclose(cluster, robust, rtol=1e-9)


def test_a_row_twice_in_one_cluster_counts_like_a_row_of_weight_two() -> None:
    X, y = one_task()
    twice = bounded().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    groups = np.tile(np.arange(len(X)), 2)
    clusters = twice.summary(cov_type="cluster", groups=groups, small_sample=False)
    once = bounded().fit(X, y).summary(cov_type="robust", small_sample=False)
    np.testing.assert_allclose(clusters, once, rtol=1e-5)


def test_weights_of_two_halve_the_variance() -> None:
    X, y = one_task()
    once = bounded().fit(X, y).summary()["std_err"]
    twice = bounded().fit(X, y, sample_weight=np.full(len(X), 2.0)).summary()["std_err"]
    np.testing.assert_allclose(twice, once / np.sqrt(2.0), rtol=1e-6)


@pytest.mark.parametrize("cov_type", ["observed", "robust"])
def test_the_wald_test_of_one_feature_is_its_squared_z(cov_type: Any) -> None:
    model = bounded().fit(*frames())
    test = model.wald_test(["volume"], cov_type=cov_type)
    summary = model.summary(cov_type=cov_type).xs("volume", level="term")
    np.testing.assert_allclose(test["statistic"], summary["z"] ** 2, rtol=1e-9)
    np.testing.assert_allclose(test["p_value"], summary["p_value"], rtol=1e-7)
    assert test["df"].tolist() == [1, 1]
    assert test.index.tolist() == ["MMSE", "errors"]


def test_the_wald_test_of_all_features_uses_their_covariance() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    covariance = numerical_covariance(model, X, y)[:3, :3]
    expected = model.coef_[0] @ np.linalg.solve(covariance, model.coef_[0])
    found = model.wald_test(small_sample=False).iloc[0]
    np.testing.assert_allclose(found["statistic"], expected, rtol=1e-4)
    assert found["df"] == 3
    np.testing.assert_allclose(found["p_value"], chi2.sf(found["statistic"], 3), rtol=1e-9)


@pytest.mark.parametrize(
    "scale",
    [1e-3, 1e3, 1e9],
)
def test_the_wald_test_does_not_depend_on_units(scale: float) -> None:
    X, Y = censored()
    units = np.array([scale, 1.0, 1.0])
    expected, found = bounded().fit(X, Y).wald_test(), bounded().fit(X * units, Y).wald_test()
    np.testing.assert_allclose(found["statistic"], expected["statistic"], rtol=1e-6)
    assert found["df"].tolist() == [3, 3]


@pytest.mark.parametrize("noise", ["gaussian", "logistic"])
def test_the_default_null_of_the_likelihood_ratio_is_intercept_only(noise: str) -> None:
    X, y = one_task()
    model = bounded(noise=noise).fit(X, y)

    def nll(point: FloatArray) -> float:
        return -len(X) * moved(model, np.r_[0.0, 0.0, 0.0, point]).score_log(X, y)

    best = minimize(nll, np.array([0.5, 0.0]), method="Nelder-Mead", tol=1e-10)
    test = model.likelihood_ratio_test(small_sample=False).iloc[0]
    np.testing.assert_allclose(test["restricted_log_likelihood"], -best.fun, rtol=1e-9)
    np.testing.assert_allclose(
        test["statistic"], 2.0 * (model.log_likelihood_[0] + best.fun), rtol=1e-7
    )
    assert test["df"] == 3
    np.testing.assert_allclose(test["p_value"], chi2.sf(test["statistic"], 3), rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"sigma": 1.2}, {"fit_intercept": False}])
def test_the_likelihood_ratio_with_a_nested_model(settings: dict[str, Any]) -> None:
    X, Y = frames()
    full = bounded(**settings).fit(X, Y)
    nested = bounded(**settings).fit(X[["age"]], Y)
    test = full.likelihood_ratio_test(nested, small_sample=False)
    np.testing.assert_allclose(
        test["statistic"], 2.0 * (full.log_likelihood_ - nested.log_likelihood_), rtol=1e-9
    )
    np.testing.assert_allclose(test["restricted_log_likelihood"], nested.log_likelihood_)
    assert test["df"].tolist() == [2, 2]
    np.testing.assert_allclose(test["p_value"], chi2.sf(test["statistic"], 2))


def test_two_nested_steps_add_up_to_the_test_against_the_null() -> None:
    X, Y = frames()
    full, nested = bounded().fit(X, Y), bounded().fit(X[["age"]], Y)
    steps = full.likelihood_ratio_test(nested) + nested.likelihood_ratio_test()
    both = full.likelihood_ratio_test()
    np.testing.assert_allclose(both["statistic"], steps["statistic"], rtol=1e-6)
    assert both["df"].tolist() == steps["df"].tolist()


def test_wald_and_likelihood_ratio_agree_on_a_weak_effect_in_large_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 1))
    y = np.clip(0.03 * X[:, 0] + 0.5 + rng.normal(size=5000), 0.0, 3.0)
    model = bounded().fit(X, y)
    wald, ratio = model.wald_test().iloc[0], model.likelihood_ratio_test().iloc[0]
    np.testing.assert_allclose(wald["statistic"], ratio["statistic"], rtol=0.02)


def test_criteria_count_parameters_and_known_entries() -> None:
    X, Y = censored()
    Y[:50, 1] = np.nan
    model = bounded().fit(X, Y)
    np.testing.assert_allclose(model.aic(), 2 * 5 - 2 * model.log_likelihood_)
    np.testing.assert_allclose(model.bic(), 5 * np.log([150, 100]) - 2 * model.log_likelihood_)


def test_standard_errors_of_a_ridge_invert_the_hessian_of_its_objective() -> None:
    X, y = one_task()
    model = bounded(alpha=0.5).fit(X, y)
    expected = np.sqrt(np.diag(numerical_covariance(model, X, y)))
    np.testing.assert_allclose(model.summary()["std_err"], expected, rtol=1e-4)


def test_print_summary_prints_every_target_term_and_statistic(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X, Y = frames()
    Y.loc[:9, "errors"] = np.nan
    model = bounded().fit(X, Y)
    model.print_summary(cov_type="robust", digits=3)
    first, second = capsys.readouterr().out.strip().split("\n\n")
    for task, (name, text) in enumerate({"MMSE": first, "errors": second}.items()):
        assert text.startswith(f"{name}: ")
        for term in [*NAMES, "(intercept)", "log(sigma)"]:
            coef = model.summary()["coef"].loc[name, term]
            line = next(line for line in text.splitlines() if line.startswith(term))
            assert line.split()[1] == f"{coef:.3g}"
        assert f"log likelihood {model.log_likelihood_[task]:.2f}" in text
        assert f"AIC {model.aic()[task]:.2f}, BIC {model.bic()[task]:.2f}" in text
        assert f"{(Y[name] == 0.0).sum() / Y[name].notna().sum():.1%} at the lower bound" in text
        assert "standard errors: robust" in text
    assert "140 entries" in second
    assert "10 missing" in second


def test_groups_are_ignored_unless_asked_for() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    assert_close(model.summary(groups=np.arange(len(X))), model.summary(), 1e-12)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.summary(cov_type="HC3"), "cov_type must be 'observed', 'robust' or 'clust"),
        (lambda m: m.summary(cov_type="cluster"), "needs groups: one label per training row"),
        (
            lambda m: m.summary(cov_type="cluster", groups=[1, 2]),
            r"groups must hold one label per row \(150\); got shape \(2,\)",
        ),
        (lambda m: m.summary(confidence=95), "confidence must lie between 0 and 1; got 95"),
        (lambda m: m.wald_test(["height"]), "unknown feature.* 'height'; the features are 'age'"),
        (lambda m: m.wald_test(cov_type="HC3"), "cov_type must be"),
        (
            lambda m: m.likelihood_ratio_test("age"),
            "restricted must be a fitted TobitRegressor; got 'age'",
        ),
        (
            lambda m: m.likelihood_ratio_test(bounded(alpha=1).fit(*frames())),
            "needs unpenalised models",
        ),
        (
            lambda m: bounded(alpha=1).fit(*frames()).likelihood_ratio_test(m),
            "needs unpenalised models",
        ),
        (
            lambda m: m.likelihood_ratio_test(bounded().fit(*censored(seed=1))),
            "must be fitted to the same outcomes",
        ),
        (
            lambda m: bounded().fit(frames()[0][["age"]], frames()[1]).likelihood_ratio_test(m),
            "more parameters than this one; swap them",
        ),
    ],
)
def test_inference_refuses_what_it_cannot_answer(ask: Any, message: str) -> None:
    model = bounded().fit(*frames())
    with pytest.raises(ValueError, match=message):
        ask(model)
