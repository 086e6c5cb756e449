"""Who chooses among settings, and what is recorded of the choice."""

import re
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from deeptobit import CensoredTargets, SubspaceNetworkCV
from deeptobit.app.study import EvaluationData, InterceptOnly, Protocol, Regression, draw_splits
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse
from paper.baselines import GroupLassoBaseline, PenalisedBaseline, TraceNormBaseline
from paper.comparison import Comparison, compare
from paper.methods import Method, reading, shallow_methods, with_choices
from paper.section import Context

SPLITS = Protocol(train_shares=(0.4, 0.6), repeats=1)
PENALISED = [
    TraceNormBaseline(),
    TraceNormBaseline(censored=True),
    GroupLassoBaseline(),
    GroupLassoBaseline(censored=True),
]


def _data() -> EvaluationData:
    X, Y, _ = make_subspace(100, 12, 4, 2, sigma=4.0, random_state=3)
    return EvaluationData("small", X, CensoredTargets.from_bounds(Y, 0.0))


def _compare(methods: dict[str, Method], choice: Literal["honest", "paper"]) -> pd.DataFrame:
    return compare(Comparison("test", _data(), methods, SPLITS, choice), Context())


def test_no_method_is_behind_its_honest_choice_once_test_rows_choose() -> None:
    methods = shallow_methods(uncensored=True)
    honest, paper = (_compare(methods, choice) for choice in ("honest", "paper"))
    gain = (honest["anmse"] - paper["anmse"]).groupby(honest["row"]).agg(["min", "max"])
    assert (gain["min"] >= 0.0).all()
    fixed = {"least squares", "least squares, clipped", "Tobit"}
    assert set(gain.index[gain["max"] == 0.0]) == fixed


@pytest.mark.parametrize("model", PENALISED, ids=repr)
def test_what_is_recorded_is_what_was_fitted_to_the_training_rows(model: PenalisedBaseline) -> None:
    results = _compare({"m": Method((model,), {"m": reading("clip")})}, "paper")
    data = _data()
    for row, split in zip(
        results.itertuples(), draw_splits(len(data.targets), None, SPLITS), strict=True
    ):
        found = re.fullmatch(r"(\w+\(.*\)) alpha=(\S+)", str(row.settings))
        assert found is not None
        assert found[1] == repr(model)
        again = type(model)(censored=model.censored, alpha=float(found[2]))
        again.fit(data.X[split.train], data.targets[split.train])
        predicted = again.predict(data.X[split.test], kind="clip")
        assert anmse(data.targets[split.test], predicted) == pytest.approx(row.anmse, rel=1e-3)


def test_estimators_say_what_they_chose() -> None:
    X, targets = _data().X, _data().targets
    lasso = Regression("lasso").fit(X, targets)
    alphas = [model.alpha for model in lasso.model_.models]
    assert with_choices("lasso", lasso) == f"'lasso' alpha={[float(alpha) for alpha in alphas]}"
    assert len(set(alphas)) == 4
    ridge = Regression("ridge", cv=2).fit(X, targets)
    assert with_choices("ridge", ridge) == f"'ridge' alpha={float(ridge.model_.models[0].alpha)}"
    nothing = InterceptOnly().fit(X, targets)
    assert with_choices(InterceptOnly(), nothing) == "InterceptOnly()"
    network = SubspaceNetworkCV(ranks=[1], alphas=[1.0], max_layers=1, cv=2).fit(X, targets)
    words = with_choices(SubspaceNetworkCV(), network)
    chosen = " ".join(f"{name}={value!r}" for name, value in network.best_params_.items())
    assert words == f"SubspaceNetworkCV() {chosen}"
    assert "rank=1" in words
    assert np.isfinite(network.best_score_)
