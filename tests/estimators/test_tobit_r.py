"""Against R: survival::survreg and AER::tobit, by way of the values in tests/reference/r."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from deeptobit import CensoredTargets, TobitRegressor

FOLDER = Path(__file__).parents[1] / "reference" / "r"
DATA = pd.read_csv(FOLDER / "data.csv")
EXPECTED = pd.read_csv(FOLDER / "tobit_expected.csv")
FEATURES = ["age", "volume", "apoe4", "marker"]
TERMS = {name: name for name in FEATURES} | {"intercept": "(intercept)"}
INTERVALS = CensoredTargets.from_intervals(DATA["interval_low"], DATA["interval_high"])
WEIGHTED = {"sample_weight": DATA["weight"]}
ROBUST = {"cov_type": "robust"}
CLUSTER = {"cov_type": "cluster", "groups": DATA["visit_of"]}


class Call(NamedTuple):
    """How a problem is posed to TobitRegressor."""

    y: Any
    settings: dict[str, Any]
    fit: dict[str, Any]
    inference: dict[str, Any]


CALLS = {
    "left": Call(DATA["left"], {}, {}, {}),
    "right": Call(DATA["right"], {"lower": None, "upper": 30}, {}, {}),
    "both": Call(DATA["both"], {"lower": 0, "upper": 30}, {}, {}),
    "limit": Call(DATA["limit"], {"lower": None}, {"lower": DATA["limit_of"]}, {}),
    "interval": Call(INTERVALS, {}, {}, {}),
    "left_logistic": Call(DATA["left"], {"noise": "logistic"}, {}, {}),
    "left_t4": Call(DATA["left"], {"noise": "student_t"}, {}, {}),
    "left_weighted": Call(DATA["left"], {}, WEIGHTED, {}),
    "left_robust": Call(DATA["left"], {}, {}, ROBUST),
    "left_cluster": Call(DATA["left"], {}, {}, CLUSTER),
    "left_weighted_robust": Call(DATA["left"], {}, WEIGHTED, ROBUST),
    "left_weighted_cluster": Call(DATA["left"], {}, WEIGHTED, CLUSTER),
}


@cache
def found(problem: str) -> dict[tuple[str, str], float]:
    """Everything R was asked for, from TobitRegressor."""
    call = CALLS[problem]
    model = TobitRegressor(**call.settings).fit(DATA[FEATURES], call.y, **call.fit)
    table = model.summary(small_sample=False, **call.inference).loc[model.target_names_[0]]
    wald = model.wald_test(["age", "volume"], small_sample=False, **call.inference).iloc[0]
    ratio = model.likelihood_ratio_test(small_sample=False).iloc[0]
    values = {
        ("sigma", "model"): model.sigma_[0],
        ("log_sigma_std_error", "model"): table.loc["log(sigma)", "std_err"],
        ("log_likelihood", "model"): model.log_likelihood_[0],
        ("null_log_likelihood", "model"): ratio["restricted_log_likelihood"],
        ("lr", "slopes"): ratio["statistic"],
        ("lr_p_value", "slopes"): ratio["p_value"],
        ("wald", "age+volume"): wald["statistic"],
        ("wald_p_value", "age+volume"): wald["p_value"],
    }
    for theirs, ours in TERMS.items():
        values["coefficient", theirs] = table.loc[ours, "coef"]
        values["std_error", theirs] = table.loc[ours, "std_err"]
    return {key: float(value) for key, value in values.items()}


def test_every_problem_that_r_solved_is_compared() -> None:
    assert set(EXPECTED["problem"]) == set(CALLS)


@pytest.mark.parametrize(
    ("problem", "quantity", "term", "value"),
    list(EXPECTED.itertuples(index=False, name=None)),
    ids=EXPECTED[["problem", "quantity", "term"]].agg("-".join, axis=1).tolist(),
)
def test_tobit_agrees_with_r(problem: str, quantity: str, term: str, value: float) -> None:
    # A p of 1e-60 magnifies the error of its statistic by about half the statistic.
    rtol = 1e-4 if quantity.endswith("p_value") else 1e-6
    np.testing.assert_allclose(found(problem)[quantity, term], value, rtol=rtol)


def test_degrees_of_freedom_of_both_tests() -> None:
    model = TobitRegressor().fit(DATA[FEATURES], DATA["left"])
    assert model.wald_test(["age", "volume"])["df"].tolist() == [2]
    assert model.likelihood_ratio_test()["df"].tolist() == [4]
