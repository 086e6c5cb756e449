"""The low-rank Tobit against R: VGAM's ``rrvglm`` with its ``tobit`` family.

Compared: coefficients UV, intercepts, σ and the log likelihood at the maximum, for ranks 1 to 3 of
four tasks, with outcomes censored below, on both sides, and one of them in 99 % of its rows
(``tests/reference/r/rrvglm.R`` holds log scales out of the reduced-rank part, which makes both
models the same). UV is compared, not U and V, which are determined up to a rotation.

Agreement: coefficients, intercepts and σ to 1e-6 of the largest, log likelihood to 1e-10. For the
rare outcome, where Fisher scoring creeps, 1e-5: the library's log likelihood is the larger one.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from tests.audits.problems import relative_error

FOLDER = Path(__file__).parents[1] / "reference" / "r"
DATA = pd.read_csv(FOLDER / "reduced_rank.csv")
EXPECTED = pd.read_csv(FOLDER / "rrvglm_expected.csv")
PROBLEMS = sorted(set(zip(EXPECTED["problem"], EXPECTED["rank"], strict=True)))
X = DATA.filter(like="x").to_numpy()
LATENT = DATA.filter(like="y").to_numpy()
RARE = [0.0, 0.0, 0.0, float(np.sort(LATENT[:, 3])[-7])]
BOUNDS = {"left": ([0.0] * 4, np.inf), "both": ([0.0] * 4, 2.0), "rare": (RARE, np.inf)}


@pytest.mark.parametrize(("problem", "rank"), PROBLEMS)
def test_the_maximum_is_that_of_rrvglm(problem: str, rank: int) -> None:
    lower, upper = BOUNDS[problem]
    Y = np.clip(LATENT, lower, upper)
    model = SubspaceTobitRegressor(rank, alpha=0.0, solver="batch", lower=lower, upper=upper)
    model.set_params(tol=1e-9).fit(X, Y)

    def expected(quantity: str) -> FloatArray:
        rows = (EXPECTED["problem"] == problem) & (EXPECTED["rank"] == rank)
        return EXPECTED.loc[rows & (EXPECTED["quantity"] == quantity), "value"].to_numpy()

    tolerance = 1e-5 if problem == "rare" else 1e-6
    for quantity, found in {
        "coefficient": model.coef_.ravel(),
        "intercept": model.intercept_,
        "sigma": model.sigma_,
    }.items():
        assert relative_error(found, expected(quantity)) <= tolerance
    maximum, theirs = model.score_log(X, Y) * Y.size, expected("log_likelihood").item()
    np.testing.assert_allclose(maximum, theirs, rtol=1e-10)
    assert maximum >= theirs - 1e-9


def test_the_rare_outcome_is_censored_in_99_percent_of_its_rows() -> None:
    assert (LATENT[:, 3] <= RARE[3]).mean() >= 0.99
