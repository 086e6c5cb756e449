"""Which loadings are called stable: signs that hold in a fresh cohort, and what is kept."""

import numpy as np
from scipy.stats import t

from benchmarks.decisions.table import Table
from benchmarks.inference import DRAWN, separated
from deeptobit.arrays import BoolArray, FloatArray

SEEDS = range(9000, 9008)  # others than those of `python -m benchmarks inference`
RULES = ((19, 0.95, False), (19, 0.88, False), (9, 0.95, True), (5, 0.95, True), (3, 0.95, True))


def measure() -> Table:
    """The share of signs that hold, and of loadings beyond a tenth of the largest that are kept."""
    yield "cohorts", "degrees of freedom", "rule", "held", "kept"
    for name, (draw, n_people) in DRAWN.items():
        found = [one for seed in SEEDS for one in separated(draw(n_people, seed))]
        for df, probability, as_set in RULES:
            masks = [
                chosen(one.loadings["sign_probability"].to_numpy(), df, probability, as_set)
                for one in found
            ]
            pairs = list(zip(found, masks, strict=True))
            held = np.concatenate([one.held[mask] for one, mask in pairs])
            kept = np.concatenate([mask[one.large()] for one, mask in pairs])
            rule = f"{'mean of the set' if as_set else 'each'} at least {probability:.0%}"
            yield name, df, rule, float(held.mean()), float(kept.mean())


def chosen(sure: FloatArray, df: int, probability: float, as_set: bool) -> BoolArray:
    """Loadings that another rule would call stable, from the probabilities of the one taken."""
    sure = t.cdf(t.ppf(sure, 5), df)
    if not as_set:
        return np.asarray(sure >= probability)
    order = np.argsort(-sure)
    mean = np.cumsum(sure[order]) / np.arange(1, len(sure) + 1)
    return np.isin(np.arange(len(sure)), order[mean >= probability])
