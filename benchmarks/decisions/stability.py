"""Which loadings are called stable: signs that hold in a fresh cohort, and what is kept."""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.decisions.table import Table
from benchmarks.inference import DRAWN, separated
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.inspection import subspaces

SEEDS = range(9000, 9008)  # others than those of `python -m benchmarks inference`
Sureness = Callable[[FloatArray], float]


def measure() -> Table:
    """The share of signs that hold, and of loadings beyond a tenth of the largest that are kept."""
    yield "cohorts", "signs hold with", "stable", "held", "held in the closest", "kept"
    priors: dict[str, Sureness] = {
        "Φ(z/√2), flat prior": lambda _: float(np.sqrt(0.5)),
        "Φ(az), a of the halves": subspaces._sureness,
    }
    for name, (draw, n_people) in DRAWN.items():
        for prior, sureness in priors.items():
            with patch.object(subspaces, "_sureness", sureness):
                found = [one for seed in SEEDS for one in separated(draw(n_people, seed))]
            for as_set in (False, True):
                masks = [chosen(one.loadings["sign_probability"], as_set) for one in found]
                pairs = list(zip(found, masks, strict=True))
                held = np.concatenate([one.held[mask] for one, mask in pairs])
                closest = np.concatenate([one.held_closest[mask] for one, mask in pairs])
                kept = np.concatenate([mask[one.large()] for one, mask in pairs])
                shares = [float(some.mean()) for some in (held, closest, kept)]
                yield name, prior, "mean of the set ≥ 95 %" if as_set else "each ≥ 95 %", *shares


def chosen(sure: "pd.Series[float]", as_set: bool) -> BoolArray:
    """Loadings that are stable if these are the probabilities that their signs hold."""
    found = sure.to_numpy()
    return subspaces._largest_set(found, 0.95) if as_set else np.asarray(found >= 0.95)
