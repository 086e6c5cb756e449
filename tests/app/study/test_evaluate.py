from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from deeptobit import CensoredTargets
from deeptobit.app.study import (
    EvaluationData,
    Protocol,
    Regression,
    draw_splits,
    evaluate,
    inner_folds,
    make_methods,
    summarise,
)
from deeptobit.app.study.comparison import verdict
from deeptobit.app.study.evaluation import Evaluation
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import anmse, crps
from tests.app.study.evaluations import QUICK, small_data

METHODS = ["null", "lasso", "tobit"]


def _without_time(results: pd.DataFrame) -> pd.DataFrame:
    return results.drop(columns="seconds")


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return evaluate(small_data(), make_methods(METHODS), QUICK)


def test_one_row_for_every_share_repeat_method_and_target(found: Evaluation) -> None:
    keys = found.results[["share", "repeat", "method", "target"]]
    assert len(keys) == len(keys.drop_duplicates()) == 2 * 2 * 3 * 3
    assert keys["method"].tolist()[::3] == METHODS * 4
    assert np.isfinite(found.results.select_dtypes("number").to_numpy()).all()
    assert found.skipped == ()
    null = found.results[found.results["method"] == "null"]
    assert null["r2"].max() < 0.02
    others = found.results[found.results["method"] != "null"]
    assert (others.groupby(["target", "method"])["r2"].mean() > 0.05).all()
    assert (found.results["warnings"] == 0).all()


def test_workers_change_nothing() -> None:
    data, methods = small_data(), make_methods(["null", "lasso"])
    short = replace(QUICK, train_shares=(0.5,))
    one, two = (evaluate(data, methods, short, n_jobs=jobs) for jobs in (1, 2))
    assert_frame_equal(_without_time(one.results), _without_time(two.results))


def test_the_measures_are_those_of_the_model_by_hand(found: Evaluation) -> None:
    data = small_data()
    split = draw_splits(len(data.targets), None, QUICK)[-1]
    X = data.features(split.train)
    folds = inner_folds(len(split.train), random_state=0)
    model = Regression("lasso", cv=folds).fit(X[split.train], data.targets[split.train])
    test = data.targets[split.test]
    rows = found.results.query("share == 0.7 and repeat == 1 and method == 'lasso'")
    point = model.predict(X[split.test])
    assert_allclose(rows["anmse"], anmse(test, point, multioutput="raw_values"))
    latent = model.predict(X[split.test], kind="latent")
    expected = crps(test, latent, model.sigma_, multioutput="raw_values")
    assert_allclose(rows["crps"], expected)
    predictive = Predictive(Gaussian(), latent, model.sigma_, test.lower, test.upper)
    low, high = predictive.quantile([0.05, 0.95])
    inside = np.where(test.missing, np.nan, (test.values >= low) & (test.values <= high))
    assert_allclose(rows["coverage"], np.nanmean(inside, axis=0))
    assert_allclose(rows["width"], np.nanmean(np.where(test.missing, np.nan, high - low), axis=0))


def test_gaps_are_filled_from_training_rows_alone() -> None:
    data = small_data()
    train = np.arange(40)
    filled = data.features(train)
    assert np.isfinite(filled).all()
    gaps = np.isnan(data.X)
    means = np.nanmean(data.X[train], axis=0)
    assert_allclose(filled[gaps], np.broadcast_to(means, data.X.shape)[gaps])
    assert_array_equal(filled[~gaps], data.X[~gaps])
    nothing = replace(data, X=np.where(np.arange(80)[:, None] < 40, np.nan, data.X))
    assert_array_equal(nothing.features(train)[:40], 0.0)


def test_a_target_that_cannot_be_compared_is_left_out_of_that_split() -> None:
    data = small_data()
    low, high = data.targets.low.copy(), data.targets.high.copy()
    low[:, 0] = high[:, 0] = 0.5  # constant
    low[5:, 1] = high[5:, 1] = np.nan  # hardly there
    broken = replace(data, targets=replace(data.targets, low=low, high=high))
    found = evaluate(broken, make_methods(["null", "lasso"]), QUICK)
    assert set(found.results["target"]) == {"c"}
    reasons = {(skipped.target, skipped.reason) for skipped in found.skipped}
    assert reasons == {
        ("a", "its values to train on are all the same"),
        ("b", "fewer than 10 values to train on"),
    }
    assert len(found.skipped) == 2 * 4
    nothing = np.full_like(low, np.nan)
    hopeless = replace(data, targets=replace(data.targets, low=nothing, high=nothing))
    with pytest.raises(ValueError, match="no split of small can compare anything"):
        evaluate(hopeless, make_methods(["null"]), QUICK)


def test_whole_groups_and_limits_that_differ_by_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    limit = rng.uniform(-1.0, 0.0, (90, 1))
    Y = np.maximum(X[:, :1] + rng.standard_normal((90, 1)), limit)
    targets = CensoredTargets.from_bounds(Y, entry_lower=limit, names=["assay"])
    groups = np.repeat(np.arange(15), 6)
    data = EvaluationData("assays", X, targets, groups)
    methods = make_methods(["null", "lasso", "tobit", "network"])
    found = evaluate(data, methods, Protocol(train_shares=(0.6,), repeats=1))
    by_method = found.results.set_index("method")
    assert (by_method["n_train"] == 54).all()
    assert (by_method["r2"].drop("null") > 0.1).all()
    assert (by_method["coverage"] > 0.7).all()


def test_summary_and_verdict_tell_who_wins(found: Evaluation) -> None:
    summary = summarise(found)
    rows = found.results.query("share == 0.5 and method == 'lasso'")
    by_repeat = rows.groupby("repeat")["anmse"].mean()
    row = summary.query("share == 0.5 and method == 'lasso' and measure == 'anmse'").iloc[0]
    assert_allclose([row["mean"], row["sd"]], [by_repeat.mean(), by_repeat.std()])
    best = summary.query("measure == 'r2' and best")
    assert best["share"].tolist() == [0.5, 0.7]
    assert "null" not in set(best["method"])
    assert not summary.query("measure == 'width'")["best"].any()
    alone = found.results.query("method == 'lasso'")
    assert verdict(replace(found, results=alone)) == []  # nothing to compare with
    renamed = found.results.replace({"method": {"lasso": "network"}})
    won = renamed.assign(anmse=renamed["anmse"].where(renamed["method"] != "network", 0.0))
    assert verdict(replace(found, results=won))[0] == "Lowest ANMSE: network (50%, 70%)."
    lost = renamed.assign(
        anmse=renamed["anmse"].where(renamed["method"] != "network", 9.0),
        r2=renamed["r2"].where(renamed["method"] != "network", -9.0),
    )
    sentences = verdict(replace(found, results=lost))
    assert sentences[0] == "Lowest ANMSE: tobit (50%, 70%)."
    assert sentences[1].startswith("Highest R² over all splits: ")
    assert "network" not in sentences[1]


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(ValueError, match="there is no method 'boost'"):
        make_methods(["ridge", "boost"])
    with pytest.raises(ValueError, match="no method to compare"):
        make_methods([])
