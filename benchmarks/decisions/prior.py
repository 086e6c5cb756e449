"""The prior that AutoTobitRegressor learns: its parts, one by one, and a grid of penalties."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.cohort import COHORTS, Split, draw, split_cohort
from benchmarks.decisions.help_split import draw_help
from benchmarks.decisions.table import Table
from deeptobit import AutoTobitRegressor, SubspaceNetworkCV
from deeptobit.arrays import FloatArray
from deeptobit.auto import stack
from deeptobit.auto.path import PATH, settings
from deeptobit.datasets import make_subspace
from deeptobit.metrics import centred_anmse

SEEDS = range(100, 103)  # the comparison with peers has seeds 0 to 9


def measure() -> Table:
    """Centred ANMSE of one layer, mean over splits."""
    yield "data", *VARIANTS
    for name, split_of in DATA.items():
        splits = [split_of(seed) for seed in SEEDS]
        means = []
        for change, choice in VARIANTS.values():
            with change():
                means.append(float(np.mean([_error(split, choice) for split in splits])))
        yield name, *means


def _error(split: Split, choice: dict[str, Any]) -> float:
    kind = SubspaceNetworkCV if choice else partial(AutoTobitRegressor, members=("stack",))
    model = kind(lower=split.lower, upper=split.upper, cv=split.folds, noise="gaussian", **choice)
    return float(centred_anmse(split.Y_test, model.fit(split.X, split.Y).predict(split.X_test)))


def _only(name: str, *wanted: object) -> AbstractContextManager[Any]:
    """Leave members of other settings out of the stack."""
    keep = [place for place, prior in enumerate(PATH) if settings(prior, 1.0)[name] in wanted]
    return patch.object(stack, "promising_priors", lambda products, weight, n_members: keep)


def _draw_wide(seed: int) -> Split:
    """More features than rows, half of the entries at the floor."""
    X, Y, _ = make_subspace(250, 250, 50, 5, latent_sd=3.0, random_state=seed)
    return _at_the_floor(X, Y, seed)


def _at_the_floor(X: FloatArray, Y: FloatArray, seed: int) -> Split:
    names = [str(task) for task in range(Y.shape[1])]
    lower, upper = (dict.fromkeys(names, bound) for bound in (0.0, np.inf))
    return split_cohort(X, pd.DataFrame(Y, columns=names), lower, upper, seed)


def _draw_sparse(n_used: int, seed: int) -> Split:
    """163 rows to train on and 230 features, of which a few matter to 58 outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(272, 230))
    latent = X[:, :n_used] @ rng.normal(size=(n_used, 5)) @ rng.normal(size=(5, 58))
    noise = np.sqrt(5.0 * n_used) * rng.normal(size=latent.shape)
    return _at_the_floor(X, np.maximum(latent + noise, 0.0), seed)


DATA: dict[str, Callable[[int], Split]] = {
    "cohort": lambda seed: draw(seed, COHORTS["linear"]),
    "small cohort": lambda seed: draw(seed, COHORTS["small"]),
    "HELP": draw_help,
    "wide, half at the floor": _draw_wide,
    "wide, 8 features of 230 matter": partial(_draw_sparse, 8),
    "wide, 30 features of 230 matter": partial(_draw_sparse, 30),
}
VARIANTS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], dict[str, Any]]] = {
    "taken": (nullcontext, {}),
    "one ω": (lambda: _only("feature_variance", "shared"), {}),
    "own ω": (lambda: _only("feature_variance", "own", "sparse"), {}),
    "not sparse": (lambda: _only("feature_variance", "shared", "own"), {}),
    "R learned": (lambda: _only("noise", "correlated", "either"), {}),
    "R = I": (lambda: _only("noise", "independent", "either"), {}),
    "ρ = 1": (lambda: _only("shrinkage", 1.0), {}),
    "grid of penalties": (nullcontext, {"max_layers": 1}),
}
