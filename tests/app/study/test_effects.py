"""Effects in units, and errors in subgroups."""

import numpy as np
import pandas as pd
import pytest

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkRegressor,
    TobitRegressor,
)
from deeptobit.app.report.effects import effect_rows, part_rows
from deeptobit.app.study import HeldOut, effects
from deeptobit.app.study.comparison import _is_tied
from deeptobit.app.study.data import EncodedColumn, Encoder
from deeptobit.app.study.effects import learn_effects, learn_ranges, measure_parts, stable_loadings
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets
from tests.app.report.studies import fit_text

NUMBER = EncodedColumn("volume", (), None, (3.0,), False, (False,))
SITE = EncodedColumn("site", ("B", "C"), "A", (0.3, 0.2), False, (False, False))
ENCODER = Encoder((NUMBER, SITE), "impute")


def _rows(n: int = 400) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    rng = np.random.default_rng(0)
    site = rng.choice(["A", "A", "B", "C"], n)
    X = pd.DataFrame({"volume": rng.normal(3.0, 0.13, n)})
    X["site=B"], X["site=C"] = (site == "B").astype(float), (site == "C").astype(float)
    y = 20.0 + 8.0 * (X["volume"] - 3.0) + 3.0 * X["site=B"] + rng.normal(size=n)
    return X, y


@pytest.mark.parametrize(
    "model", [TobitRegressor(lower=None), AutoTobitRegressor(lower=None, members=["stack"], cv=2)]
)
def test_without_bounds_an_effect_is_a_coefficient(
    model: TobitRegressor | AutoTobitRegressor,
) -> None:
    X, y = _rows()
    model.fit(X, y)
    found = learn_effects(model, X, ENCODER)
    np.testing.assert_array_equal(found.step, [0.1, 1.0, 1.0])
    np.testing.assert_allclose(found.effect, model.coef_ * found.step, rtol=1e-6)
    if isinstance(model, TobitRegressor):
        low = model.conf_int()["ci_low"].to_numpy()[:3] * found.step
        np.testing.assert_allclose(found.low[0], low)
    else:
        low = model.marginal_effects(X, n_boot=100)["ci_low"].to_numpy() * found.step
        np.testing.assert_allclose(found.low[0], low, rtol=1e-6)


def test_where_the_spread_grows_with_the_score_an_effect_counts_both() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"volume": rng.normal(size=1500)})
    score = 1.0 + X["volume"].to_numpy()
    y = np.maximum(score + 0.6 * np.exp(0.6 * score) * rng.normal(size=1500), 0.0)
    model = AutoTobitRegressor(lower=0.0, members=["stack"], cv=2, random_state=0).fit(X, y)
    assert model.noise_.spread is not None  # type: ignore[attr-defined]
    found = learn_effects(model, X, Encoder((NUMBER,), "impute"))
    expected = model.marginal_effects(X, n_boot=2)["effect"].to_numpy()
    np.testing.assert_allclose(found.effect[0], expected * found.step, rtol=1e-9)


def test_effects_of_a_mixed_model_have_the_intervals_of_its_coefficients() -> None:
    X, y = _rows()
    person = np.arange(len(y)) // 4
    y += np.random.default_rng(1).normal(size=100)[person]
    model = MixedTobitRegressor(lower=None).fit(X, y, groups=person)
    found = learn_effects(model, X, ENCODER)
    ends = model.summary().loc["y"].loc[list(X.columns)]
    np.testing.assert_allclose(found.low[0], ends["ci_low"] * found.step)
    np.testing.assert_allclose(found.high[0], ends["ci_high"] * found.step)


def test_random_slopes_find_their_time_among_the_features() -> None:
    X, y = _rows()
    person, time = np.arange(len(y)) // 4, np.arange(len(y)) % 4.0
    X["site=B"] = time  # as in a study, where time is a feature
    y += np.random.default_rng(1).normal(size=100)[person] * time
    model = MixedTobitRegressor(lower=None, random_effects="slope")
    model._visit_columns = {"time": "site=B"}
    model.fit(X, y, groups=person, time=time)
    found = learn_effects(model, X, ENCODER)
    np.testing.assert_allclose(found.effect[0], model.coef_[0] * found.step, rtol=1e-6)


def test_stable_loadings_are_those_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _rows()
    model = AutoTobitRegressor(lower=None, members=["stack"], cv=2).fit(X, y)
    expected = model.subspace_stability(0, n_boot=100, n_splits=5).stable()
    stable = stable_loadings(model, X)
    assert stable is not None
    np.testing.assert_array_equal(stable, expected.loc[list(X.columns)])
    assert stable.any()
    monkeypatch.setattr(effects, "_MOST_RESAMPLED", 100)
    assert stable_loadings(model, X) is None
    assert np.isnan(learn_effects(model, X, ENCODER).low).all()


def test_differences_of_a_network_are_those_of_its_predictions() -> None:
    X, y = _rows()
    bent = np.clip(y - 18.0, 0.0, 6.0)
    Y = np.column_stack([bent, np.clip(30.0 - y, 0.0, 12.0)])
    model = SubspaceNetworkRegressor(2, 2, prune_layers=False, random_state=0).fit(X, Y)
    found = learn_effects(model, X, ENCODER)
    up, down = X.copy(), X.copy()
    up["volume"], down["volume"] = X["volume"] + 0.05, X["volume"] - 0.05
    expected = (model.predict(up) - model.predict(down)).mean(axis=0)
    np.testing.assert_allclose(found.effect[:, 0], expected, rtol=1e-9)
    in_B, in_A = X.copy(), X.copy()
    in_B[["site=B", "site=C"]], in_A[["site=B", "site=C"]] = [1.0, 0.0], 0.0
    expected = (model.predict(in_B) - model.predict(in_A)).mean(axis=0)
    np.testing.assert_allclose(found.effect[:, 1], expected, rtol=1e-9)


def test_errors_of_a_part_are_those_of_its_rows() -> None:
    X, y = _rows()
    targets = CensoredTargets.from_bounds(y.to_numpy()[:, None], lower=None, names=["y"])
    latent = np.full((len(y), 1), 20.0)
    predictive = Predictive(Gaussian(), latent, np.ones((len(y), 1)))
    held_out = HeldOut(targets, predictive, predictive, (latent,), 0.9)
    found = measure_parts(held_out, X, ENCODER, ("clinic", np.arange(len(y)).astype(str)))
    assert [part.column for part in found] == ["site"] * 3  # a clinic of one row is no part
    assert [part.level for part in found] == ["A", "B", "C"]
    in_B = (X["site=B"] == 1.0).to_numpy()
    assert found[1].error[0] == pytest.approx(np.abs(20.0 - y[in_B]).mean())
    assert found[1].bias[0] == pytest.approx((20.0 - y[in_B]).mean())
    assert found[1].rows % 10 == 0


def test_too_small_parts_are_left_out() -> None:
    X, y = _rows(40)
    X["site=B"] = (np.arange(40) < 10).astype(float)
    X["site=C"] = 0.0
    targets = CensoredTargets.from_bounds(y.to_numpy()[:, None], lower=None, names=["y"])
    predictive = Predictive(Gaussian(), np.zeros((40, 1)), np.ones((40, 1)))
    held_out = HeldOut(targets, predictive, predictive, (np.zeros((40, 1)),), 0.9)
    assert measure_parts(held_out, X, ENCODER) == ()


def test_a_category_of_all_rows_is_no_part() -> None:
    X, y = _rows(40)
    table = pd.DataFrame({"volume": X["volume"], "site": "A", "MMSE": np.clip(y, 0, 30)})
    text = "[model]\nkind = 'tobit'\ncv = 2\n[targets.MMSE]\nlower = 0\nupper = 30\n"
    assert fit_text(table.to_csv(index=False), text).subgroups == ()


def test_a_report_speaks_of_them() -> None:
    X, y = _rows(200)
    site = np.where(X["site=B"] == 1.0, "B", "A")
    table = pd.DataFrame({"volume": X["volume"], "site": site, "MMSE": np.clip(y, 0, 30)})
    text = "[model]\nkind = 'tobit'\ncv = 2\n[targets.MMSE]\nlower = 0\nupper = 30\n"
    fitted = fit_text(table.to_csv(index=False), text)
    (volume,) = (row for row in effect_rows(fitted, {}) if row[1].key == "volume")
    assert volume[1].text == "+0.1 volume"
    assert volume[2].text.startswith("+0.")
    low, high = (float(part) for part in volume[3].text.strip("[]").split(", "))
    assert low < float(volume[2].text) < high
    assert effect_rows(fitted, {})[0][1].text == "site: B"
    parts = part_rows(fitted, fitted.held_out.table())
    assert [row[1].text for row in parts] == ["A", "B"]


def test_ranges_hide_what_few_rows_have() -> None:
    flag = np.zeros(60)
    flag[:3] = 1.0
    X = pd.DataFrame({"volume": np.linspace(0.0, 1.0, 60), "rare": flag})
    rare = EncodedColumn("rare", (), None, (0.05,), False, (True,))
    found = learn_ranges(X, Encoder((NUMBER, rare), "impute"))
    assert np.isfinite(found.low).tolist() == [True, False]
    assert (X["volume"] < found.low[0]).sum() >= 5
    assert found.scale[1] == 0.0
    assert not np.isfinite(learn_ranges(X.iloc[:15], Encoder((NUMBER, rare), "impute")).low).any()


def test_a_tie_is_what_splits_cannot_tell_apart() -> None:
    index = pd.MultiIndex.from_product([[0.8], range(5)], names=["share", "repeat"])
    clear = pd.Series([1.0, 1.1, 0.9, 1.05, 0.95], index)
    assert not _is_tied(clear)
    assert _is_tied(clear - 0.97)
    assert not _is_tied(clear.iloc[:1] - 1.0)  # one split tells nothing
